"""Masks come back exactly, near the logarithm of the number of such masks; damage is an error or such a mask."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from scipy.special import gammaln
from tests.masks_of_all_kinds import masks_of_all_kinds

from strongticket.errors import TicketError
from strongticket.ticket import mask_codec

MASKS = masks_of_all_kinds()


def round_trip(mask: np.ndarray) -> tuple[str, int]:
    lines, data = mask_codec.encode(mask)
    back = mask_codec.decode(lines, data, mask.shape, int(mask.sum()))
    assert np.array_equal(back, mask)
    assert back.dtype == np.bool_
    assert back.flags.c_contiguous
    return lines, len(data)


def log_of_masks(size: int, kept: np.ndarray | int) -> float:
    """Bits to tell apart the masks whose lines of this size keep so many."""
    bits = gammaln(size + 1) - gammaln(np.add(kept, 1)) - gammaln(size - np.asarray(kept) + 1)
    return float(np.sum(bits)) / math.log(2)


@given(nps.arrays(np.bool_, nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7)))
def test_any_mask(mask):
    round_trip(mask)


@given(
    st.sampled_from(["one per row", "one per column", "rows", "columns", "densities"]),
    st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 40)),
    st.integers(0, 2**32 - 1),
)
def test_structured_masks(structure, shape, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.5
    if structure.startswith("one"):
        mask = rng.random(shape).argsort(axis=-1) == 0
        mask &= rng.random((*shape[:2], 1)) < 0.9
        mask = mask if structure == "one per row" else mask.swapaxes(-1, -2)
    elif structure == "rows":
        mask &= rng.random((*shape[:2], 1)) < 0.5
    elif structure == "columns":
        mask &= rng.random((shape[0], 1, shape[2])) < 0.5
    else:
        mask = rng.random(shape) < rng.random((*shape[:2], 1))
    round_trip(mask)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (9,), (0, 4), (4, 0), (5, 7), (2, 3, 4)])
@pytest.mark.parametrize("keep", [False, True])
def test_all_or_nothing_takes_no_bytes(shape, keep):
    assert round_trip(np.full(shape, keep)) == ("all", 0)


@pytest.mark.parametrize("density", [0.001, 0.02, 0.1, 0.3, 0.5, 0.7, 0.98, 0.999])
def test_random_masks_take_the_logarithm_of_their_number(density):
    mask = np.random.default_rng(1).random((400, 500)) < density
    lines, size = round_trip(mask)
    assert lines == "all"
    kept = int(mask.sum())
    assert 0 <= 8 * size - log_of_masks(mask.size, kept) < 48 + 0.004 * 8 * size  # shares are whole numbers
    assert log_of_masks(mask.size, kept) < mask_codec.entropy(mask.size, kept) < 8 * size


def test_lines_take_the_logarithm_of_their_number():
    rng = np.random.default_rng(2)
    one = rng.random((3, 64, 300)).argsort(axis=1) == 0
    for mask, lines in ((one, "columns"), (one.swapaxes(1, 2), "rows")):
        found, size = round_trip(mask)
        assert found == lines
        assert 0 <= 8 * size - log_of_masks(64, np.ones(900)) < 8 * 12
    densities = rng.random((200, 500)) < rng.random((200, 1))
    kept = densities.sum(axis=1)
    lines, size = round_trip(densities)
    assert lines == "rows"
    assert 0 <= 8 * size - log_of_masks(500, kept) - 9 * 200 < 96 + 0.004 * 8 * size  # nine bits a count


def test_views_are_read_in_c_order():
    base = np.random.default_rng(0).random((6, 10)) < 0.5
    for view in (base.T, base[::2, 1::3], base[:, ::-1]):
        assert mask_codec.encode(view)[1] == mask_codec.encode(view.copy())[1]
        round_trip(view)


def test_known_coding():
    """Written down once: a reader of old files depends on it."""
    mask = np.arange(48).reshape(4, 12) % 5 == 0
    assert mask_codec.encode(mask) == ("all", bytes.fromhex("9f3301004176d485"))
    assert mask_codec.encode(np.eye(9) > 0) == ("all", bytes.fromhex("701a690032350d77"))


def test_damage_is_an_error_or_another_mask_of_the_same_count():
    """The tensor's checksum catches the rest."""
    rng = np.random.default_rng(4)
    errors = 0
    for lines, mask in MASKS.items():
        data, kept = mask_codec.encode(mask)[1], int(mask.sum())
        for _ in range(1000):
            damaged = bytearray(data)
            position = int(rng.integers(len(data)))
            match rng.integers(4):
                case 0:
                    damaged[position] ^= 1 << int(rng.integers(8))
                case 1:
                    del damaged[position:]
                case 2:
                    damaged[position:position] = rng.bytes(int(rng.integers(1, 5)))
                case 3:
                    damaged[:] = rng.bytes(position)
            try:
                back = mask_codec.decode(lines, bytes(damaged), mask.shape, kept)
            except TicketError:
                errors += 1
            else:
                assert back.shape == mask.shape
                assert back.sum() == kept
    assert errors > 2500


def test_errors_say_what():
    mask = MASKS["rows"]
    lines, data = mask_codec.encode(mask)
    kept = int(mask.sum())
    for odd, shape in (("zstd", (3,)), ("rows", (99,)), ("columns", (0, 4))):
        with pytest.raises(TicketError, match=f"is not coded by '{odd}'"):
            mask_codec.decode(odd, b"", shape, 0)
    for count in (-1, mask.size + 1):
        with pytest.raises(TicketError, match=f"a mask of {mask.size} weights keeps {count}"):
            mask_codec.decode("all", data, mask.shape, count)
    with pytest.raises(TicketError, match=f"keep {kept} weights where 5 are declared"):
        mask_codec.decode(lines, data, mask.shape, 5)
    with pytest.raises(TicketError, match="ends within its counts"):
        mask_codec.decode(lines, data[:4], mask.shape, kept)
    with pytest.raises(TicketError, match=r"stream of a mask has \d+ bytes"):
        mask_codec.decode(lines, data[:-1], mask.shape, kept)
    with pytest.raises(TicketError, match="damaged"):
        mask_codec.decode(lines, data[:-2], mask.shape, kept)


@given(nps.arrays(np.bool_, nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9)))
def test_entropy(mask):
    kept = int(mask.sum())
    fraction = kept / max(mask.size, 1)
    expected = -mask.size * sum(p * math.log2(p) for p in (fraction, 1 - fraction) if p)
    assert mask_codec.entropy(mask.size, kept) == pytest.approx(expected)
