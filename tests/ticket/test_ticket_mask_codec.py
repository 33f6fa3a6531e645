"""Every codec gives back exactly what it took, near the entropy, and refuses what it would not write."""

import bisect
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from strongticket.errors import TicketError
from strongticket.ticket import byte_codec, mask_codec


def round_trip(mask: np.ndarray) -> tuple[str, int]:
    codec, data = mask_codec.encode(mask)
    back = mask_codec.decode(codec, data, mask.shape, int(mask.sum()))
    assert np.array_equal(back, mask)
    assert back.flags.c_contiguous
    return codec, len(data)


@given(nps.arrays(np.bool_, nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7)))
def test_any_mask(mask):
    round_trip(mask)


@given(
    st.sampled_from(
        ["empty", "full", "one per row", "one per column", "dropped rows", "dropped columns", "densities"]
    ),
    st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 40)),
    st.integers(0, 2**32 - 1),
)
def test_structured_masks(structure, shape, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.5
    if structure in ("empty", "full"):
        mask[...] = structure == "full"
    elif structure.startswith("one"):
        mask = rng.random(shape).argsort(axis=-1) == 0
        mask &= rng.random((*shape[:2], 1)) < 0.9
        mask = mask if structure == "one per row" else mask.swapaxes(-1, -2)
    elif structure == "dropped rows":
        mask &= rng.random((*shape[:2], 1)) < 0.5
    elif structure == "dropped columns":
        mask &= rng.random((shape[0], 1, shape[2])) < 0.5
    else:
        mask = rng.random(shape) < rng.random((*shape[:2], 1))
    round_trip(mask)


@pytest.mark.parametrize("kept", [0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.98])
def test_random_masks_are_within_two_percent_of_their_entropy(kept):
    mask = np.random.default_rng(1).random((400, 500)) < kept
    codec, size = round_trip(mask)
    assert codec == ("zstd" if kept == 0.5 else "ans")  # bits without structure are kept as they are
    assert size <= 1.02 * mask_codec.entropy(mask.size, int(mask.sum())) / 8


def test_the_masks_of_a_build_cost_next_to_nothing():
    rng = np.random.default_rng(2)
    heads, dim, width = 4, 64, 1024
    in_order = np.arange(width) * dim // width
    query = np.zeros((heads, dim, width), bool)
    query[:, in_order, np.arange(width)] = True
    codec, size = round_trip(query)
    assert codec == "zstd"
    assert size < 100

    for head in range(heads):
        query[head] = False
        query[head, rng.permutation(in_order), np.arange(width)] = True
    codec, size = round_trip(query)
    assert codec == "owner-columns"
    assert size < 1.02 * heads * width * np.log2(dim) / 8 + 100
    assert round_trip(query.swapaxes(1, 2))[0] == "owner-rows"

    key = rng.random((heads, dim, width)) < 0.5
    used = rng.random((heads, 1, width)) < 0.5
    codec, size = round_trip(key & used)
    assert codec == "ans-columns"
    assert size < 1.05 * dim * used.sum() / 8 + heads * width / 8
    assert round_trip((key & used).swapaxes(1, 2))[0] == "ans-rows"
    assert round_trip(np.zeros((300, 301), bool))[1] == 0
    assert round_trip(np.ones((300, 301), bool))[1] == 0


def test_long_lines_and_several_chunks(monkeypatch):
    monkeypatch.setattr(byte_codec, "_CHUNK", 1000)
    rng = np.random.default_rng(3)
    round_trip(rng.random((100, 1001)) < 0.1)
    for length in (255, 256, 65535, 65536):
        one = np.zeros((5, length), bool)
        one[np.arange(4), rng.integers(0, length, 4)] = True
        one[3] = np.arange(length) == length - 1
        options = mask_codec._owner_encode(one, one.sum(axis=1))
        assert np.array_equal(mask_codec.decode("owner-rows", options, one.shape, 4), one)


@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.sampled_from(range(3)), max_size=300).map(bytes),
        st.integers(0, 300).map(lambda count: bytes([7]) * count),
    ),
    st.binary(max_size=5),
)
def test_byte_strings(values, rest):
    data = byte_codec.encode(np.frombuffer(values, np.uint8)) + rest
    cursor = byte_codec.Cursor(data)
    assert byte_codec.decode(cursor, len(values)).tobytes() == values
    assert cursor.take(len(rest)) == rest
    cursor.check_end()


@pytest.mark.parametrize(
    ("mode", "make"),
    [
        (0, lambda rng: np.arange(1000) // 200),
        (1, lambda rng: rng.choice(3, 1000, p=[0.9, 0.09, 0.01])),
        (2, lambda rng: rng.integers(0, 100, 1000)),
    ],
)
def test_each_mode_of_a_byte_string_is_of_use(mode, make):
    values = make(np.random.default_rng(0)).astype(np.uint8)
    data = byte_codec.encode(values)
    assert data[0] == mode
    frequency = np.bincount(values)[values] / values.size
    assert len(data) < -1.02 * np.log2(frequency).sum() / 8 + 40


def ans_reader(words: list[int], share: int, count: int) -> tuple[list[int], int]:
    """The coder as docs/ticket-format.md describes it, in Python integers: (bytes, state left over)."""
    free = 2**24 - 256
    table = [
        free * share ** v.bit_count() * (65536 - share) ** (8 - v.bit_count()) // 65536**8 for v in range(256)
    ]
    table[table.index(max(table))] += free - sum(table)
    table = [weight + 1 for weight in table]
    starts = [0, *itertools.accumulate(table)]
    assert starts[-1] == 2**24
    words, state, out = list(words), 0, []
    while state < 2**32 and words:
        state = state << 32 | words.pop()
    for _ in range(count):
        low = state % 2**24
        value = bisect.bisect_right(starts, low) - 1
        state = (state >> 24) * table[value] + low - starts[value]
        if state < 2**32 and words:
            state = state << 32 | words.pop()
        out.append(value)
    return out, state + len(words)


@pytest.mark.parametrize("probability", [1, 1311, 19661, 32767, 32768, 32769, 65535])
def test_ans_as_documented(probability):
    rng = np.random.default_rng(probability)
    packed = np.concatenate(
        [np.packbits(rng.random(40_000) < probability / 65536), np.arange(256, dtype=np.uint8)]
    )
    data = byte_codec.ans_encode(packed, byte_codec.mask_model(probability))
    words = np.frombuffer(data[4:], "<u4").tolist()
    assert int.from_bytes(data[:4], "little") == len(words)
    assert ans_reader(words, probability, packed.size) == (packed.tolist(), 0)


def test_known_coding():
    """Written down once: a reader of old files depends on it."""
    mask = np.arange(48).reshape(4, 12) % 5 == 0
    mask[2] = False
    assert codings(mask)["ans"].hex() == "020000008e78ada700210000"
    assert ans_reader([0xA7AD788E, 0x2100], 9557, 6) == (mask_codec.pack(mask).tolist(), 0)


def codings(mask: np.ndarray) -> dict[str, bytes]:
    """The mask in every codec that fits it, not only in the shortest."""
    kept = mask.sum(axis=-1).reshape(-1)
    lines = mask_codec._lines(mask, "rows")
    return {
        "zstd": mask_codec.zstd(mask_codec.pack(mask).tobytes()),
        "ans": mask_codec._ans_encode(mask, byte_codec.probability(int(mask.sum()), mask.size)),
        "ans-rows": mask_codec._classes_encode(lines, mask_codec._classes(kept, mask.shape[-1], 15)),
        "owner-rows": mask_codec._owner_encode(lines, kept),
    }


def test_damage_is_an_error_or_another_mask_of_the_same_count():
    """The codec itself promises no crash and no wrong count; the tensor's checksum catches the rest."""
    rng = np.random.default_rng(4)
    mask = rng.random((20, 30)).argsort(axis=-1) == 0
    mask[3] = False
    kept = int(mask.sum())
    errors = 0
    for codec, data in codings(mask).items():
        assert np.array_equal(mask_codec.decode(codec, data, mask.shape, kept), mask)
        for _ in range(300):
            damaged = bytearray(data)
            position = int(rng.integers(len(data)))
            match rng.integers(3):
                case 0:
                    damaged[position] ^= 1 << int(rng.integers(8))
                case 1:
                    del damaged[position:]
                case 2:
                    damaged[position:position] = rng.bytes(int(rng.integers(1, 5)))
            try:
                back = mask_codec.decode(codec, bytes(damaged), mask.shape, kept)
            except TicketError:
                errors += 1
            else:
                assert back.shape == mask.shape
                assert back.sum() == kept
    assert errors > 1000


def test_errors_say_what():
    mask = np.random.default_rng(5).random((9, 11)) < 0.3
    kept = int(mask.sum())
    with pytest.raises(TicketError, match="unknown mask codec 'lzma'"):
        mask_codec.decode("lzma", b"", (3,), 0)
    with pytest.raises(TicketError, match=f"keeps {kept} weights where 5 are declared"):
        mask_codec.decode("zstd", codings(mask)["zstd"], mask.shape, 5)
    with pytest.raises(TicketError, match=r"declares 13 bytes, expected 125000"):
        mask_codec.decode("zstd", codings(mask)["zstd"], (1000, 1000), kept)
    with pytest.raises(TicketError, match="1 bytes too many"):
        mask_codec.decode("ans", codings(mask)["ans"] + b"\0", mask.shape, kept)
    with pytest.raises(TicketError, match="ends early"):
        mask_codec.decode("ans", codings(mask)["ans"][:-1], mask.shape, kept)
    with pytest.raises(TicketError, match="never ends in a zero word"):
        mask_codec.decode("ans", (1).to_bytes(4, "little") + bytes(4), mask.shape, kept)
    with pytest.raises(TicketError, match="two axes"):
        mask_codec.decode("ans-rows", b"", (99,), kept)
    owners = byte_codec.encode(np.array([3, 12, 11], np.uint8))
    with pytest.raises(TicketError, match="line 1 keeps weight 12, it has 11 weights"):
        mask_codec.decode("owner-rows", owners, (3, 11), 1)
    with pytest.raises(TicketError, match="1 bytes too many"):
        mask_codec.decode("owner-rows", owners + b"\0", (3, 12), 1)
    with pytest.raises(TicketError, match="line 1 has class 17"):
        mask_codec.decode("ans-rows", byte_codec.encode(np.array([0, 17, 0], np.uint8)), (3, 11), 0)
    with pytest.raises(TicketError, match="unknown mode 7"):
        mask_codec.decode("owner-rows", b"\x07", (3, 11), 1)
    with pytest.raises(TicketError, match="table without weights"):
        mask_codec.decode("owner-rows", bytes([1, 1, 0, 0, 5, 0]), (3, 11), 1)
