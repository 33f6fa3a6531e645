import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from strongticket.errors import StrongTicketError
from strongticket.ticket import masks

any_mask = nps.arrays(np.bool_, nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))


@given(any_mask)
def test_round_trip(mask):
    packed = masks.pack(mask)
    assert packed.dtype == np.uint8
    assert packed.size == math.ceil(mask.size / 8)
    for data in (packed, packed.tobytes()):
        back = masks.unpack(data, mask.shape)
        assert back.dtype == np.bool_
        assert masks.equal(back, mask)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 63, 64, 65, 1001])
def test_layout(size):
    """Weight i is bit i % 8 of byte i // 8."""
    for kept in range(size):
        mask = np.zeros(size, bool)
        mask[kept] = True
        assert int.from_bytes(masks.pack(mask).tobytes(), "little") == 1 << kept


def test_non_contiguous_views_are_read_in_c_order():
    base = np.random.default_rng(0).random((6, 10)) < 0.5
    for view in (base.T, base[::2, 1::3], base[:, ::-1]):
        assert masks.equal(masks.unpack(masks.pack(view), view.shape), view.copy())


@given(any_mask)
def test_kept_fraction_and_entropy(mask):
    kept = sum(mask.reshape(-1).tolist())
    assert masks.kept_fraction(mask) == (kept / mask.size if mask.size else 0.0)
    assert type(masks.kept_fraction(mask)) is float
    k = masks.kept_fraction(mask)
    expected = -mask.size * sum(p * math.log2(p) for p in (k, 1 - k) if p)
    assert masks.entropy_bits(mask) == pytest.approx(expected)


def test_entropy_of_three_tenths():
    assert masks.entropy_bits(np.arange(1000) < 300) / 1000 == pytest.approx(0.8813, abs=1e-4)


def test_equality_sees_shape_and_values():
    a = np.zeros((2, 3), bool)
    assert masks.equal(a, a.copy())
    assert not masks.equal(a, a.reshape(3, 2))
    b = a.copy()
    b[1, 2] = True
    assert not masks.equal(a, b)


@given(st.binary(max_size=4), st.integers(0, 40))
def test_only_packed_masks_unpack(data, size):
    """Whatever unpack accepts packs to the same bytes again."""
    try:
        mask = masks.unpack(data, (size,))
    except StrongTicketError:
        return
    assert masks.pack(mask).tobytes() == data


def test_errors():
    with pytest.raises(StrongTicketError, match=r"mask must be a NumPy array of bool, got float64"):
        masks.pack(np.ones(3))
    with pytest.raises(StrongTicketError, match="got list"):
        masks.kept_fraction([True])
    with pytest.raises(StrongTicketError, match="got list"):
        masks.entropy_bits([True])
    with pytest.raises(StrongTicketError, match="b must be"):
        masks.equal(np.ones(3, bool), np.ones(3))
    with pytest.raises(StrongTicketError, match="needs 2 bytes"):
        masks.unpack(b"\0", (9,))
    with pytest.raises(StrongTicketError, match="after its last weight, 8"):
        masks.unpack(b"\0\2", (9,))
    with pytest.raises(StrongTicketError, match="must not be negative"):
        masks.unpack(b"", (-1, 0))
    with pytest.raises(StrongTicketError, match="1-d uint8"):
        masks.unpack(np.zeros(3), (3,))
