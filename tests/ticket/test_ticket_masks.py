import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from strongticket.errors import TicketError
from strongticket.ticket import mask_codec

any_mask = nps.arrays(np.bool_, nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))


@given(any_mask)
def test_round_trip(mask):
    packed = mask_codec.pack(mask)
    assert packed.dtype == np.uint8
    assert packed.size == math.ceil(mask.size / 8)
    for data in (packed, packed.tobytes()):
        back = mask_codec.unpack(data, mask.shape)
        assert back.dtype == np.bool_
        assert np.array_equal(back, mask)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 63, 64, 65, 1001])
def test_layout(size):
    """Weight i is bit i % 8 of byte i // 8."""
    for kept in range(size):
        mask = np.zeros(size, bool)
        mask[kept] = True
        assert int.from_bytes(mask_codec.pack(mask).tobytes(), "little") == 1 << kept


def test_non_contiguous_views_are_read_in_c_order():
    base = np.random.default_rng(0).random((6, 10)) < 0.5
    for view in (base.T, base[::2, 1::3], base[:, ::-1]):
        assert np.array_equal(mask_codec.unpack(mask_codec.pack(view), view.shape), view.copy())


@given(any_mask)
def test_entropy(mask):
    kept = int(mask.sum())
    fraction = kept / max(mask.size, 1)
    expected = -mask.size * sum(p * math.log2(p) for p in (fraction, 1 - fraction) if p)
    assert mask_codec.entropy(mask.size, kept) == pytest.approx(expected)


def test_entropy_of_three_tenths():
    assert mask_codec.entropy(1000, 300) / 1000 == pytest.approx(0.8813, abs=1e-4)


@given(st.binary(max_size=4), st.integers(0, 40))
def test_only_packed_masks_unpack(data, size):
    """Whatever unpack accepts packs to the same bytes again."""
    try:
        mask = mask_codec.unpack(data, (size,))
    except TicketError:
        return
    assert mask_codec.pack(mask).tobytes() == data


def test_errors():
    with pytest.raises(TicketError, match="needs 2 bytes"):
        mask_codec.unpack(b"\0", (9,))
    with pytest.raises(TicketError, match="after its last weight, 8"):
        mask_codec.unpack(b"\0\2", (9,))
