"""Exactly round(k n) scores are kept, ties by position, on any strides."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching import attach, masks
from strongticket.searching.masking.topk import top_k


def top_k_masks(scores, keep):
    return [cut.gate(part.abs()) != 0 for cut, part in zip(top_k(scores, keep), scores, strict=True)]


def oracle(scores, keep):
    """A stable sort of all |scores| from largest to smallest."""
    flat = np.concatenate([np.abs(part.numpy()).ravel() for part in scores])
    mask = np.zeros(flat.size, bool)
    mask[np.argsort(-flat, kind="stable")[:keep]] = True
    ends = np.cumsum([part.numel() for part in scores])[:-1]
    return [m.reshape(part.shape) for m, part in zip(np.split(mask, ends), scores, strict=True)]


@given(
    sizes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=3),
    levels=st.integers(1, 5),  # few levels: many ties
    fraction=st.floats(0, 1),
    transposed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_keeps_exactly_the_top_k(sizes, levels, fraction, transposed, seed):
    rng = np.random.default_rng(seed)
    scores = [torch.from_numpy(rng.integers(-levels, levels + 1, size).astype(np.float32)) for size in sizes]
    if transposed:
        scores = [part.t() for part in scores]
    keep = round(fraction * sum(part.numel() for part in scores))
    masks = top_k_masks(scores, keep)
    assert sum(int(mask.sum()) for mask in masks) == keep
    for mask, expected in zip(masks, oracle(scores, keep), strict=True):
        np.testing.assert_array_equal(mask.numpy(), expected)


@pytest.mark.parametrize("kept", [0.1, 0.29, 0.3, 0.57, 0.58, 0.7, 1.0])
def test_kept_count_is_round_of_k_n(kept):
    """Peers' int((1 - k) n) keeps one too many or too few for many k."""
    for size in (7, 10, 100, 1001):
        layer = nn.Linear(size, 1, bias=False)
        attach(layer, kept, qk_scale=1)
        assert int(masks(layer)["weight"].sum()) == round(kept * size)


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[:, ::2],
        lambda t: t.as_strided((6, 5), (5, 1)),
        lambda t: t[:1].expand(4, -1),
    ],
)
def test_any_strides(view):
    """hidden-networks writes through flatten() of a view: on a non-contiguous one the scores stay."""
    scores = view(torch.randn(6, 10, generator=torch.Generator().manual_seed(0)))
    (mask,) = top_k_masks([scores], 7)
    assert mask.dtype == torch.bool
    np.testing.assert_array_equal(mask.numpy(), oracle([scores.contiguous()], 7)[0])


def test_scores_are_left_alone():
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    before = scores.clone()
    top_k_masks([scores], 3)
    assert torch.equal(scores, before)


def test_nan_and_wrong_counts_are_refused():
    good = torch.ones(3)
    for wrong in (float("nan"), float("inf")):
        for keep in (1, 4, 5):
            with pytest.raises(StrongTicketError, match=r"scores\[1\] is not finite"):
                top_k([good, torch.tensor([1.0, wrong, 2.0])], keep)
    with pytest.raises(StrongTicketError, match="keep must be from 0 to the number of scores, 3"):
        top_k([good], 4)
