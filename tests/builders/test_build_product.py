"""Lemma 4/7: the masks really make the matrix, and a better assignment makes it better."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strongticket.builders import product
from strongticket.builders.assign import by_strength
from strongticket.builders.product import build_product
from strongticket.errors import StrongTicketError


def random_case(rows, columns, units, seed):
    rng = np.random.default_rng(seed)
    target = rng.standard_normal((rows, columns))
    target /= max(np.linalg.norm(target, 2), 1e-9)
    left = rng.uniform(-1, 1, (rows, units)).astype(np.float32)
    right = rng.uniform(-1, 1, (columns, units)).astype(np.float32)
    return target, left, right


@settings(max_examples=40)
@given(
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    per_row=st.integers(1, 8),
    extra=st.integers(0, 5),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1.0, 0.25, -3.0]),
    assignment=st.sampled_from(["balanced", "paper"]),
)
def test_masks_make_the_product_they_claim(rows, columns, per_row, extra, seed, scale, assignment):
    target, left, right = random_case(rows, columns, rows * per_row + extra, seed)
    built = build_product(target, left, right, scale=scale, assignment=assignment)
    product = scale * (left * built.left_mask).astype(float) @ (right * built.right_mask).astype(float).T
    np.testing.assert_allclose(built.product, product, atol=1e-12)
    np.testing.assert_allclose(built.error, product - target, atol=1e-12)
    assert (built.left_mask.sum(axis=0) <= 1).all()  # a unit serves one row
    served = built.left_mask.any(axis=0)
    assert not built.right_mask[:, ~served].any()  # and a unit that serves no row keeps nothing


@pytest.mark.parametrize("columns", [1, 5])
def test_every_entry_is_the_best_subset_of_its_group(columns):
    target, left, right = random_case(3, columns, 24, 0)
    built = build_product(target, left, right, assignment="paper")
    subsets = (np.arange(256)[:, None] >> np.arange(8)) & 1
    for row in range(3):
        group = slice(8 * row, 8 * row + 8)
        for column in range(columns):
            sums = subsets @ (left[row, group].astype(float) * right[column, group].astype(float))
            best = np.abs(sums - target[row, column]).min()
            assert abs(built.error[row, column]) == pytest.approx(best, abs=1e-15)


def test_balanced_is_ten_times_better_than_the_papers_assignment_on_the_same_source():
    worst = {"paper": 0.0, "balanced": 0.0}
    for seed in range(4):
        target, left, right = random_case(16, 16, 192, seed)
        for assignment in worst:
            worst[assignment] += np.abs(build_product(target, left, right, assignment=assignment).error).max()
    assert worst["balanced"] * 10 < worst["paper"]


def test_moving_units_never_makes_the_worst_entry_worse():
    for seed in range(5):
        target, left, right = random_case(6, 5, 50, seed)
        share = product._shares(np.ones(6, bool), 50)
        before = build_product(target, left, right, assignment=by_strength(np.abs(left), share, 40))
        after = build_product(target, left, right)
        assert np.abs(after.error).max() <= np.abs(before.error).max()


def test_rows_of_zeros_are_exact_and_give_their_units_away():
    target, left, right = random_case(4, 5, 32, 1)
    target[2] = 0
    built = build_product(target, left, right)
    assert np.abs(built.error[2]).max() == 0
    assert not built.left_mask[2].any()


def test_zero_entries_of_left_are_never_used():
    target, left, right = random_case(4, 5, 60, 2)
    left[np.random.default_rng(0).random(left.shape) < 0.5] = 0
    built = build_product(target, left, right)
    assert not (built.left_mask & (left == 0)).any()
    assert np.abs(built.error).max() < 0.1


def test_units_that_only_one_row_can_use_are_not_wasted():
    rng = np.random.default_rng(0)
    left = np.zeros((2, 20), np.float32)
    left[0, :14], left[1, 14:] = rng.uniform(0.1, 1, 14), rng.uniform(0.1, 1, 6)
    right = rng.uniform(-1, 1, (1, 20)).astype(np.float32)
    built = build_product(np.array([[0.3], [0.2]]), left, right)
    all_fourteen = build_product(np.array([[0.3]]), left[:1, :14], right[:, :14])
    assert abs(built.error[0, 0]) == abs(all_fourteen.error[0, 0])


def test_same_bytes_every_time():
    target, left, right = random_case(8, 8, 96, 3)
    one, two = (build_product(target, left, right) for _ in range(2))
    assert one.left_mask.tobytes() == two.left_mask.tobytes()
    assert one.right_mask.tobytes() == two.right_mask.tobytes()


def test_tolerance_leaves_rows_alone_that_meet_it():
    target, left, right = random_case(6, 6, 96, 4)
    assert np.abs(build_product(target, left, right, tolerance=1e-2).error).max() <= 1e-2


def test_what_cannot_be_built_is_refused():
    build_product = inspect.unwrap(product.build_product)  # without the tests' own checks of types
    target, left, right = random_case(4, 5, 3, 0)
    with pytest.raises(StrongTicketError, match="smallest width that works is 4"):
        build_product(target, left, right)
    with pytest.raises(StrongTicketError, match="smallest width that works is 4"):
        build_product(target, left, right, assignment="paper")
    target, left, right = random_case(4, 5, 8, 0)
    with pytest.raises(StrongTicketError, match="assignment='best'"):
        build_product(target, left, right, assignment="best")
    for owner in (np.zeros(7, int), np.array([0, 1, 2, 3, 4, -1, -1, -1])):
        with pytest.raises(StrongTicketError, match="expected a row, 0 … 3, or -1 for each of 8 units"):
            build_product(target, left, right, assignment=owner)
    with pytest.raises(StrongTicketError, match="scale=0"):
        build_product(target, left, right, scale=0.0)
    with pytest.raises(StrongTicketError, match=r"left has shape \(0, 8\)"):
        build_product(np.zeros((0, 5)), left[:0], right)
    with pytest.raises(StrongTicketError, match=r"target has shape \(5, 4\): expected \(4, 5\)"):
        build_product(target.T, left, right)
    with pytest.raises(StrongTicketError, match=r"target / scale\[0, 0\] is inf"):
        build_product(np.full((4, 5), 1e300), left, right, scale=1e-300)
    left[3, 1] = np.nan
    with pytest.raises(StrongTicketError, match=r"left\[3, 1\] is nan"):
        build_product(target, left, right)
    target[1, 2] = np.nan
    with pytest.raises(StrongTicketError, match=r"target\[1, 2\] is nan"):
        build_product(target, left, right)
