"""The shared source: nearest subsets against brute force, the masks' real product, the rate that is promised."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pretrained.pieces.solving import solved

from strongticket.errors import StrongTicketError
from strongticket.pretrained.pieces import Layout, kernel, rows_apart


@settings(max_examples=30)
@given(rows=st.integers(1, 3), units=st.integers(2, 9), seed=st.integers(0, 10**6))
def test_subsets_are_nearly_the_nearest(rows, units, seed):
    rng = np.random.default_rng(seed)
    left = rng.uniform(-1, 1, (rows, units)).astype(np.float32)
    right = rng.uniform(0.5, 1, (5, units)).astype(np.float32)
    target = rng.normal(size=(rows, 5)) / 2
    mask, error = np.zeros((5, units), bool), np.empty((rows, 5))
    kernel.best_subsets(left, right, target, 0.0, 32, mask, error, np.zeros((0, 0), np.float32))
    np.testing.assert_allclose(error, left.astype(float) @ (right * mask).T.astype(float) - target, atol=1e-6)
    subsets = np.array(list(itertools.product([0, 1], repeat=units)))
    for column in range(5):
        sums = subsets @ (left * right[column]).T.astype(float)
        nearest = np.sqrt(np.square(sums - target[:, column]).sum(axis=1).min())
        assert np.linalg.norm(error[:, column]) <= nearest + 1e-5


@pytest.mark.parametrize("shape", [(20, 30), (30, 20), (1, 50), (7, 1), (3, 40), (1, 1)])
def test_the_product_of_the_masks_is_what_was_reported(shape):
    target = np.random.default_rng(1).normal(size=shape) * 3
    product, finished, _ = solved(target, Layout(5.3))
    error = product - target
    assert math.isclose(
        sum(each.errors["squared"] for each in finished), np.square(error).sum(), rel_tol=1e-4
    )
    if min(shape) <= 4:
        assert np.abs(error).max() < 1e-2
    else:
        assert np.sqrt(np.square(error).mean()) < 0.12 * 3


@pytest.mark.parametrize(("share", "above"), [(1, 2.7), (2, 1.35), (3, 1.1)])
def test_normal_numbers_cost_this_many_bits_above_the_limit(share, above):
    target = np.random.default_rng(2).normal(size=(96, 96))
    product, _, size = solved(target, Layout(5.5, share=share))
    relative = math.sqrt(np.square(product - target).sum() / np.square(target).sum())
    assert 8 * size / target.size + math.log2(relative) < above


@pytest.mark.parametrize("rows", [34, 66])  # one tuple more than its groups of 16 would take
def test_every_number_of_rows_is_made_as_precisely(rows):
    chance, relative = np.random.default_rng(4), []
    for _ in range(4):
        target = chance.normal(size=(rows, 200))
        product, _, _ = solved(target, Layout(6, axis=0))
        relative.append(np.square(product - target).sum() / np.square(target).sum())
    assert max(relative) < 1.5 * min(relative)


def test_a_row_apart_leaves_the_others_as_they_are():
    target = np.random.default_rng(5).normal(size=(41, 300))
    plain, _, _ = solved(target, Layout(8))
    target[12, 7] = 120.0
    product, finished, _ = solved(target, Layout(8, apart=rows_apart(target, Layout(8))))
    usual = np.sqrt(np.square(plain - target)[13:].mean())
    assert np.abs(product - target)[12].max() < 0.05
    assert np.sqrt(np.square(product - target).mean()) < 1.25 * usual
    assert sum(each.errors["unreached"] for each in finished) == 0


def test_the_scale_reaches_outliers_or_says_that_it_does_not():
    target = np.random.default_rng(3).standard_t(3, size=(48, 200))
    product, finished, _ = solved(target, Layout(8, share=2))
    assert np.sqrt(np.square(product - target).mean()) < 0.1
    assert sum(each.errors["unreached"] for each in finished) < 10
    target[5, 7] = 500.0
    _, finished, _ = solved(target, Layout(4, share=2))
    assert sum(each.errors["unreached"] for each in finished) < 10


def test_zeros_are_exact_and_cost_little():
    product, _, size = solved(np.zeros((32, 50)), Layout(6))
    assert not product.any()
    assert size < 100


def test_a_tolerance_saves_no_accuracy_that_is_asked_for():
    target = np.random.default_rng(4).normal(size=(16, 40))
    exact, loose = (solved(target, Layout(12, share=1), tolerance=tolerance)[0] for tolerance in (0.0, 0.05))
    assert np.abs(loose - target).max() >= np.abs(exact - target).max()
    assert np.sqrt(np.square(loose - target).mean()) < 0.05


@pytest.mark.parametrize(
    "bad",
    [
        dict(units=0.5),
        dict(units=99),
        dict(units=True),
        dict(share=4),
        dict(problems=0),
        dict(units=7.5, paper=True),
    ],
)
def test_bad_layouts_are_refused(bad):
    with pytest.raises(StrongTicketError):
        Layout(**bad)
