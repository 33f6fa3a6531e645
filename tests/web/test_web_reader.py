"""The JavaScript reader against the library: the same bits, and the same files refused."""

import hashlib

import numpy as np
import pytest
from tests import crafted
from tests.crafted import index_lines, with_index
from tests.faults.corruption import WAYS
from tests.masks_of_all_kinds import masks_of_all_kinds
from tests.web.compare import GALLERY, unequal_bits
from tests.web.samples import KNOWN, language_ticket

from strongticket import choice
from strongticket.errors import TicketError
from strongticket.files import parse_json
from strongticket.seeds import Constant, Hadamard, Normal, SignedConstant, Uniform, draw
from strongticket.ticket import Ticket, container, mask_codec

LAWS = [Uniform(3**0.25), Normal(0.02), SignedConstant(0.05), Hadamard(0.05), Constant(0.05)]
EDGES = {
    "all kept": np.ones((5, 3), bool),
    "none": np.zeros(9, bool),
    "empty": np.zeros((0, 4), bool),
    "empty lines": np.zeros((4, 0), bool),
    "single": np.array(True),
    "blocks": np.arange(400) // 25 == np.arange(16)[:, None],
    "one of many": np.arange(70_000) == np.array([[3], [69_999]]),
    "whole rows": np.arange(40)[:, None] % 3 < np.ones(9, int),
    "nearly all": np.arange(70_000) != 12_345,
    "four axes": np.random.default_rng(1).random((3, 4, 5, 6)) < 0.5,
}


def ticket_of_everything(law, edges=EDGES) -> Ticket:
    masks = masks_of_all_kinds() | edges
    floats = {"größe": np.array([[0.1, -2.0]], np.float32), "𝄞": np.float32([1e-40])}
    rng, seed = np.random.default_rng(2), 2**64 - 1
    choices = {
        name: choice.encode(rng.standard_normal(shape).astype(np.float32), seed, name, 0.1)
        for name, shape in {"chosen": (9, 40), "größer": (5,)}.items()
    }
    return Ticket(seed, "relu", {"dims": [1, 1]}, dict.fromkeys(masks, law), masks, floats, choices=choices)


def size_of(ticket: Ticket) -> int:
    return sum(int(np.prod(shape)) for shape in ticket.shapes().values())


def test_the_known_file_is_equal_to_the_last_bit(javascript):
    assert unequal_bits(javascript, KNOWN.read_bytes(), Ticket.load(KNOWN)) == (12, 0)


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_is_equal_to_the_last_bit(javascript, name):
    ticket = Ticket.load(GALLERY[name])
    weights = ticket.verify().weights
    found = unequal_bits(javascript, GALLERY[name].read_bytes(), ticket)
    print(f"{name}: {found[0]:,} weights compared, {found[1]} differ")
    assert found == (weights, 0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_kind_of_tensor_and_law_is_equal_to_the_last_bit(javascript, law):
    ticket = ticket_of_everything(law)
    assert unequal_bits(javascript, ticket.to_bytes(), ticket) == (size_of(ticket), 0)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_million_weights_have_the_same_hash(javascript, law):
    shape = (1_000_003,)  # far into both tails of the normal law
    expected = hashlib.sha256(draw(7, "größe", shape, law).tobytes()).hexdigest()
    job = {"do": "draw", "seed": "7", "name": "größe", "shape": shape, "law": law.name, "scale": law.scale}
    assert javascript(job) == [expected]


def mask_job(masks: list[tuple[str, bytes, tuple[int, ...], int]]) -> dict:
    fields = ("lines", "data", "shape", "kept")
    return {"do": "masks", "masks": [dict(zip(fields, mask, strict=True)) for mask in masks]}


def library_mask(lines, data, shape, kept) -> str:
    try:
        return hashlib.sha256(mask_codec.decode(lines, data, shape, kept).tobytes()).hexdigest()
    except TicketError:
        return "refused"


def test_masks_of_any_density_and_size(node):
    rng = np.random.default_rng(3)
    masks = [
        rng.random((rows, columns)) < kept * rng.random((rows, 1)) ** 3
        for rows, columns in ((1, 1), (7, 1), (1, 9), (64, 33), (300, 1000), (20_000, 50))
        for kept in (0.001, 0.3, 1.0)
    ]
    coded = [(*mask_codec.encode(mask), mask.shape, int(mask.sum())) for mask in masks]
    assert node(mask_job(coded)) == [[hashlib.sha256(mask.tobytes()).hexdigest() for mask in masks]]


def test_damaged_masks_are_read_as_the_library_reads_them(node):
    rng = np.random.default_rng(4)
    damaged = []
    for mask in masks_of_all_kinds().values():
        lines, data = mask_codec.encode(mask)
        shape, kept = mask.shape, int(mask.sum())
        for at in range(min(len(data), 40)):
            flipped = data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
            damaged += [(lines, flipped, shape, kept), (lines, data[:at], shape, kept)]
        noise = [rng.bytes(int(size)) for size in rng.integers(0, 60, 40)]
        damaged += [(each, data, shape, kept) for each in (*mask_codec.LINES, "cells")]
        damaged += [
            (each, part, shape, kept) for each in mask_codec.LINES for part in [data + b"\0\0", *noise]
        ]
        damaged += [(lines, data, shape, kept - 1), (lines, data, shape[::-1], kept)]
    damaged += [("rows", b"\0" * 5, shape, 0) for shape in ((), (3,), (0, 4), (4, 0), (2, 3))]
    damaged += [("all", data, (70_000,), 5) for data in (b"", b"\0" * 4, b"\xff" * 40)]
    (answers,) = node(mask_job(damaged))
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    found = [answer.split(":")[0] for answer in answers]
    assert found == [library_mask(*mask) for mask in damaged]


def corrupted_files(count: int) -> list[bytes]:
    files = [
        KNOWN.read_bytes(),
        ticket_of_everything(Normal(0.5), {}).to_bytes(),
        language_ticket().to_bytes(),
    ]
    rng = np.random.default_rng(0)
    ways = list(WAYS.values())
    return [
        ways[i % len(ways)](files[i % len(files)], files[(i + 1) % len(files)], rng) for i in range(count)
    ]


def library_refuses(file: bytes) -> bool:
    try:
        ticket = Ticket.from_bytes(file)
        for name in ticket.shapes():
            ticket.weights(name)
    except TicketError:
        return True
    return False


def test_corrupted_files_are_refused_exactly_where_the_library_refuses_them(node):
    files = corrupted_files(600)
    (answers,) = node({"do": "refuses", "files": files})
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    refused = [answer.startswith("refused") for answer in answers]
    assert refused == [library_refuses(file) for file in files]
    assert 400 < sum(refused) < 600  # changed metadata changes no network


def test_every_flipped_bit_and_every_truncation_of_the_known_file_is_refused(javascript):
    file = KNOWN.read_bytes()
    flipped = [
        file[:i] + bytes([file[i] ^ 1 << bit]) + file[i + 1 :] for i in range(len(file)) for bit in range(8)
    ]
    cut = [file[:length] for length in range(len(file))]
    (answers,) = javascript({"do": "refuses", "files": flipped + cut + [file + b"\0"]})
    assert {answer.split(":")[0] for answer in answers} == {"refused"}


def test_a_flipped_byte_of_the_data_is_told_if_the_digest_is_right(node):
    """Masks and choices of each trellis: the tensor's own checksum tells, or its coder."""
    numbers = np.random.default_rng(0).standard_t(2, (40, 5)).astype(np.float32)
    numbers[3] = 0
    choices = {
        f"{states} states": choice.encode(numbers, 1, f"{states} states", 0.5, states)
        for states in choice.STATES
    }
    masks = {"w": np.random.default_rng(1).random((6, 50)) < 0.1}
    arrays = container.split(Ticket(1, "relu", {}, {"w": Uniform(1.0)}, masks, choices=choices).to_bytes())
    data, files = arrays["data"], []
    for at, half in np.ndindex(len(data), 2):
        flipped = data.copy()
        flipped[at] ^= 1 << (at + 4 * half) % 8
        files.append(crafted.join(arrays | {"data": flipped}, container.FORMAT))
    (answers,) = node({"do": "refuses", "files": files})
    assert [answer for answer in answers if answer.startswith("crashed")] == []
    accepted = [i for i, answer in enumerate(answers) if answer == "accepted"]
    assert accepted == [i for i, file in enumerate(files) if not library_refuses(file)]
    assert len(accepted) < 0.05 * len(files)  # no number changes: of a token that never comes, say


def test_a_wrong_checksum_is_refused_by_name(javascript):
    # The digest is right, the seed is another: only the tensor's own checksum can tell.
    file, other = (
        Ticket(seed, "relu", {}, {"w": Uniform(1.0)}, {"w": np.ones(4, bool)}).to_bytes() for seed in (43, 42)
    )
    checksum, theirs = (parse_json("line", index_lines(each)[2])["checksum"] for each in (file, other))
    wrong = with_index(file, b"\n".join(index_lines(file)).replace(checksum.encode(), theirs.encode()))
    (answers,) = javascript({"do": "refuses", "files": [wrong, file]})
    assert answers == ['refused: tensor "w" is not what was saved: its checksum differs', "accepted"]


def test_the_error_names_the_version_that_reads_an_older_file(javascript):
    arrays = container.split(KNOWN.read_bytes())
    files = [crafted.join(arrays, f"strongticket ticket {version}") for version in (1, 2, 4)]
    (answers,) = javascript({"do": "refuses", "files": files})
    for version, answer in zip((1, 2), answers[:2], strict=True):
        assert f"strongticket 0.{version} reads it; build or search it again" in answer
    assert answers[2] == (
        'refused: its format is "strongticket ticket 4", this reader knows "strongticket ticket 3"'
    )


def test_fields_of_the_index_are_checked(node):
    file = ticket_of_everything(Uniform(1.0), {}).to_bytes()
    changes = [
        (b'"transposed":false', b'"transposed":0', "transposed true or false"),
        (b'"blocks":[', b'"blocks":[0,', "blocks of choices: expected 1"),
        (b'"blocks":[', b'"blocks":[-1,', "blocks must be a list of sizes"),
        (b'"lines":"rows"', b'"lines":"cells"', 'not coded by "cells"'),
        (b'"lines":"rows"', b'"lines":null', "not coded by null"),
        (b'"kept":', b'"kept":-', "kept and bytes must be counts"),
        (b'"law":"uniform"', b'"law":"one-sided"', 'unknown law "one-sided"'),
        (b'"bytes":', b'"bytes":1', "bytes of data"),
        (b'"shape":[', b'"shape":[0,', ""),
        (b',"transposed":false', b"", "expected an object with"),
    ]
    text = b"\n".join(index_lines(file))
    files = [with_index(file, text.replace(old, new, 1)) for old, new, _ in changes]
    (answers,) = node({"do": "refuses", "files": files})
    for (_, _, expected), answer, each in zip(changes, answers, files, strict=True):
        assert answer.startswith("refused")
        assert expected in answer
        assert library_refuses(each)
