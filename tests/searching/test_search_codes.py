"""Coded weights: integers as masks, and what a ticket of them refuses."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.codes import StoredTensor, code_shapes, decode, level_masks
from strongticket.seeds import Constant, SignedConstant, draw

LEVELS = arrays.arrays(np.int64, arrays.array_shapes(max_dims=2, max_side=9), elements=st.integers(-200, 200))


@given(LEVELS, st.sampled_from([Constant(0.5), SignedConstant(0.5)]))
def test_levels_come_back(levels, law):
    stored = StoredTensor(law, levels != 0, levels=levels)
    tensors = {
        name: draw(3, name, mask.shape, law, mask=mask) for name, (mask, law) in stored.tensors("w").items()
    }
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    assert code_shapes({"w": stored.code()}, {"w": levels.shape}) | {"w": levels.shape} == shapes
    matrix, found = decode(stored.code(), "w", tensors.__getitem__)
    np.testing.assert_array_equal(found, levels)
    np.testing.assert_array_equal(np.abs(matrix), np.where(levels == 0, 0, 0.5))


@given(arrays.arrays(np.int64, 400, elements=st.integers(-7, 7)))
def test_masks_cost_no_more_than_the_bits_of_the_integers(levels):
    """The chain rule: mask by mask the entropy is that of (length, sign), plus the lower bits."""
    entries = sum(mask.size for mask in level_masks(levels).values())
    bits = sum(2 * int(abs(level)).bit_length() for level in levels if level)
    assert entries <= bits


def test_what_settings_may_say():
    matrices = {"w": (2, 3)}
    assert code_shapes({"w": {"masks": {"sign": 4}, "draws": ["w:1"]}}, matrices) == {
        "w:sign": (4,),
        "w:1": (2, 3),
    }
    for codes in (
        [],
        {"v": {}},
        {"w": []},
        {"w": {"run": 1}},
        {"w": {"masks": {"sign": 7}}},
        {"w": {"masks": {"sign": True}}},
        {"w": {"masks": []}},
        {"w": {"draws": "v"}},
        {"w": {"draws": ["w"]}},
        {"w": {"draws": ["w:sign"], "masks": {"sign": 1}}},
    ):
        with pytest.raises(StrongTicketError, match="code"):
            code_shapes(codes, matrices)
    tensors = {
        "w": np.ones((2, 3)),
        "w:bit0": np.ones(2),
        "w:length1": np.ones(5),
        "w:length2": np.ones(5),
        "w:sign": np.ones(6),
    }
    for masks in ({"bit0": 2}, {"length1": 5, "bit0": 2}, {"sign": 6, "length2": 5}):
        with pytest.raises(StrongTicketError, match=r"of a code has|a code has the masks"):
            decode({"masks": masks}, "w", tensors.__getitem__)
