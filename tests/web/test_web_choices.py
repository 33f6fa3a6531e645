"""Choices in JavaScript against the library: the same bits of every number, and of damaged bytes too."""

import base64
import struct
from functools import cache

import numpy as np
import pytest
from tests.choice.oracle import STEPS, tensors
from tests.web.compare import unequal_bits

from strongticket import choice
from strongticket.choice.blocks import HEADER
from strongticket.errors import TicketError
from strongticket.ticket import Ticket

SEED = 2**63 + 5
BLOCKS = {
    "two": (1100, 1024),
    "two by their rows": (1100, 2048),
    "three": (3584, 512),
    "long rows": (2, 700_000),
}


@cache
def coded_ticket(states: int) -> Ticket:
    more = {"many lanes": np.random.default_rng(0).standard_normal((257, 300), np.float32)}
    choices = {
        f"{name}, {step:.2g}": choice.encode(numbers, SEED, f"{name}, {step:.2g}", step, states, **options)
        for name, numbers in (tensors() | more).items()
        for step, options in STEPS
    }
    return Ticket(SEED, "relu", {}, {}, {}, choices=choices)


@pytest.mark.parametrize("states", choice.STATES)
def test_every_number_is_equal_to_the_last_bit(javascript, states):
    ticket = coded_ticket(states)
    size = sum(int(np.prod(shape)) for shape in ticket.shapes().values())
    assert unequal_bits(javascript, ticket.to_bytes(), ticket) == (size, 0)


def test_every_way_to_code_is_there():
    """The tests above read each of them."""
    headers = [
        HEADER.unpack_from(block)
        for states in choice.STATES
        for choices in coded_ticket(states).choices.values()
        for block in choices.blocks
        if block
    ]
    packings, mores = ({header[i] for header in headers} for i in (0, 1))
    assert {packing & 3 for packing in packings} == {0, 1, 2, 3}  # states
    assert {packing >> 2 & 3 for packing in packings} == {0, 1, 2}  # offset bits
    assert {packing >> 4 for packing in packings} >= {0, 4}  # lanes
    assert {more >> 2 & 1 for more in mores} == {0, 1}  # by parity
    assert len({more & 3 for more in mores}) > 1  # digits
    assert {more >> 3 > 0 for more in mores} == {False, True}  # a scale for each row, or one for all
    assert max(first + tokens for *_, first, tokens, _ in headers) > 150  # raw bits


@pytest.mark.parametrize("name", BLOCKS)
def test_tensors_of_several_blocks(node, name):
    numbers = np.random.default_rng(1).standard_normal(BLOCKS[name], np.float32)
    choices = {each: choice.encode(numbers, 3, each, 0.5, 4, transposed=each == "t") for each in ("w", "t")}
    headers = [HEADER.unpack_from(block) for each in choices.values() for block in each.blocks]
    assert len(headers) > 2
    assert max(packing >> 4 for packing, *_ in headers) > 4  # many lanes
    assert max(more & 3 for _, more, *_ in headers) == 3  # the finest tables
    ticket = Ticket(3, "relu", {}, {}, {}, choices=choices)
    assert unequal_bits(node, ticket.to_bytes(), ticket) == (2 * numbers.size, 0)


def library_numbers(block: bytes, first: int, shape: tuple[int, int]) -> str:
    out = np.empty(shape, np.float32)
    try:
        choice.decode_rows(block, first, SEED, "w", out)
    except TicketError:
        return "refused"
    return base64.b64encode(out.tobytes()).decode()


def assert_alike(node, blocks: list[bytes], shape: tuple[int, int], first: int = 0) -> list[str]:
    """Both readers refuse the same blocks and read the same numbers of the others; return the answers."""
    about = {"seed": str(SEED), "name": "w", "first": first, "rows": shape[0], "columns": shape[1]}
    (answers,) = node({"do": "blocks", "blocks": blocks} | about)
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    found = [answer.split(":")[0] for answer in answers]
    with np.errstate(all="ignore"):
        assert found == [library_numbers(block, first, shape) for block in blocks]
    return found


@pytest.mark.parametrize("states", choice.STATES)
def test_flipped_and_truncated_blocks(node, states):
    numbers = np.random.default_rng(2).standard_t(2, (12, 40)).astype(np.float32)
    numbers[::5] = 0
    block = choice.encode_rows(numbers, 7, SEED, "w", 0.05, states)
    flipped = [
        block[:at] + bytes([block[at] ^ 1 << bit]) + block[at + 1 :]
        for at in range(len(block))
        for bit in (at % 8, (at + 3) % 8)
    ]
    cut = [block[:length] for length in range(len(block))] + [block + b"\0", block + b"\0" * 9]
    found = assert_alike(node, [block, *flipped, *cut], numbers.shape, 7)
    assert found[0] != "refused"
    assert set(found[-len(cut) + 1 :]) == {"refused"}  # all but no bytes, which are zeros


@pytest.mark.parametrize("shape", [(1, 1), (9, 1), (1, 64), (30, 64), (0, 5), (5, 0)])
def test_random_blocks(node, shape):
    """Noise, and noise behind a header that could be right: numbers or an error, and the same from both readers."""
    rng = np.random.default_rng(3)
    blocks = [rng.bytes(int(size)) for size in rng.integers(0, 300, 100)]
    for _ in range(200):
        offset_bits, lanes, width = rng.integers([3, 7, 17])
        first, count = rng.integers([200, 60])
        header = struct.pack(
            "<BBfhBBI",
            int(rng.integers(4)) | int(offset_bits) << 2 | int(lanes) << 4,
            int(rng.integers(8)) | int(width) << 3,
            np.float32(10.0 ** rng.integers(-40, 38)),
            int(rng.integers(-600, 600)),
            int(first),
            int(count),
            int(rng.integers(0, 40)),
        )
        blocks.append(header + rng.bytes(int(rng.integers(0, 3000))))
    assert_alike(node, blocks, shape)


def test_streams_that_lack_words_or_raw_bits(node):
    """The only damage that a coder cannot see before it reads: more is asked for than there is."""
    numbers = np.random.default_rng(4).standard_normal((30, 64)).astype(np.float32)
    block = choice.encode_rows(numbers, 0, SEED, "w", 1e-4, 8)
    *head, words = HEADER.unpack_from(block)
    blocks = []
    for less in (1, 7, words):
        header = HEADER.pack(*head, words - less)
        blocks += [header + block[HEADER.size : -2 * less], header + block[HEADER.size :]]
    assert set(assert_alike(node, blocks, numbers.shape)) == {"refused"}
