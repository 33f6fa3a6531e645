"""The exact solver against brute force, an integer program and itself."""

import itertools
import math

import numba
import numpy as np
import pytest
from benchmarks.solvers import PROGRAMS, program, with_numpy, with_torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_VALUES, Products, solve

numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


def brute_force(values: np.ndarray, target: float) -> float:
    """The smallest |sum - target| over all subsets, every sum rounded once."""
    n = len(values)
    subsets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
    return min(abs(math.fsum([*values[s], -target])) for s in subsets)


def random_problems(problems: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, (problems, n)) * rng.uniform(-1, 1, (problems, n))
    return values, rng.uniform(-0.5, 0.5, problems)


@settings(max_examples=75)
@given(st.data(), st.integers(0, 12))
def test_optimum_is_that_of_brute_force(data, n):
    values = data.draw(arrays(np.float64, (1, n), elements=numbers))
    target = data.draw(numbers)
    found = solve(values, [target])
    resolution = 2.0**-50 * (np.abs(values).sum() + abs(target))
    assert found.errors[0] <= brute_force(values[0], target) + resolution
    assert found.sums[0] == pytest.approx(values[0, found.masks[0]].sum(), abs=resolution)
    assert found.errors[0] == abs(found.sums[0] - target)
    assert found.optimal.all()


@settings(max_examples=75)
@given(st.data(), st.integers(1, 10))
def test_subsets_of_a_fixed_size_are_the_best_of_that_size(data, n):
    values = data.draw(arrays(np.float64, (1, n), elements=numbers))
    target, size = data.draw(numbers), data.draw(st.integers(0, n))
    scale = 2.0 ** data.draw(st.sampled_from([-900, -60, 0, 60, 900]))
    values, target = values * scale, target * scale
    found = solve(values, [target], size=size)
    best = min(abs(math.fsum([*some, -target])) for some in itertools.combinations(values[0], size))
    assert found.masks.sum() == size
    assert found.errors[0] <= best + 2.0**-50 * n * (np.abs(values).sum() + abs(target))
    assert found.errors[0] == abs(found.sums[0] - target)


@pytest.mark.parametrize("size", [0, 3, 20, 37, 40])
def test_many_values_keep_to_a_size_too(size):
    values, targets = random_problems(3, 40)
    assert (solve(values, targets, size=size, tolerance=1e-6).masks.sum(1) == size).all()
    left, right = values, np.ones((1, 40))
    products = Products(left, right, np.tile(np.arange(40), (3, 1)))
    assert (solve(products, targets, size=size).masks.sum(1) == size).all()


@pytest.mark.parametrize("n", [1, 3])
def test_zeros_are_kept_where_a_size_asks_for_them(n):
    assert solve(np.zeros((1, n)), [0.0], size=n).masks.all()
    assert solve([[1e20, 0.0]], [-1e20], size=2).masks.all()


def test_sizes_that_cannot_be_are_named():
    for size in (-1, 4, 1.5):
        with pytest.raises(StrongTicketError, match=f"size={size}: expected a whole number from 0 to 3"):
            solve(np.ones((1, 3)), [1.0], size=size)
    with pytest.raises(StrongTicketError, match="up to 40 values, not 41"):
        solve(np.ones((1, 41)), [1.0], size=3)


@pytest.mark.parametrize("n", range(1, 13))
def test_every_size_is_optimal_on_random_values(n):
    values, targets = random_problems(40, n)
    best = [brute_force(v, t) for v, t in zip(values, targets, strict=True)]
    np.testing.assert_allclose(solve(values, targets).errors, best, atol=1e-15)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [2, 9, 16])
def test_the_optimum_is_that_of_integer_programs(name, n):
    pytest.importorskip(PROGRAMS[name][0])
    values, targets = random_problems(3, n, seed=n)
    theirs = [program(name)(row, target) for row, target in zip(values, targets, strict=True)]
    # Integer programs accept rows violated by their own feasibility tolerance.
    slack = {"HiGHS": 1e-7, "Gurobi": 1e-9, "CP-SAT": 1e-10}[name]
    np.testing.assert_allclose(theirs, solve(values, targets).errors, atol=slack)


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_sixteen_values_against_an_integer_program(seed):
    values, targets = random_problems(1, 16, seed)
    ours, theirs = solve(values, targets).errors[0], program("HiGHS")(values[0], targets[0])
    assert ours <= theirs + 1e-15
    assert theirs <= ours + 1e-7


@pytest.mark.parametrize("other", [with_numpy, with_torch])
@pytest.mark.parametrize("n", [2, 9, 17, 21, 26, 32, 40])
def test_larger_problems_agree_with_independent_code(n, other):
    values, targets = random_problems(1 if n == 40 else 2, n)  # 40: a million sums in each half
    errors = np.abs((values * other(values, targets)).sum(axis=1) - targets)
    np.testing.assert_allclose(solve(values, targets).errors, errors, atol=2e-15)


def test_tolerance_is_met_where_it_can_be_and_the_optimum_given_elsewhere():
    values, targets = random_problems(300, 14)
    targets[::5] *= 12  # mostly out of reach
    exact = solve(values, targets).errors
    found = solve(values, targets, tolerance=1e-3).errors
    can = exact <= 1e-3
    assert can.any()
    assert not can.all()
    assert (found[can] <= 1e-3).all()
    np.testing.assert_allclose(found[~can], exact[~can], atol=1e-15)


def test_tolerance_takes_the_first_that_does():
    values, targets = random_problems(500, 20)
    assert np.median(solve(values, targets, tolerance=1e-2).errors) > 10 * np.median(
        solve(values, targets).errors
    )


def test_products_are_the_same_problems_without_writing_them_out():
    rng = np.random.default_rng(3)
    left = rng.uniform(-1, 1, (4, 9)).astype(np.float32)
    right = rng.uniform(-1, 1, (5, 30)).astype(np.float32)
    units = np.array([rng.choice(30, 9, replace=False) for _ in range(4)])
    targets = rng.uniform(-1, 1, 20)
    products = Products(left, right, units)
    written_out = np.array(
        [left[r].astype(float) * right[c, units[r]].astype(float) for r in range(4) for c in range(5)]
    )
    one, other = solve(products, targets), solve(written_out, targets)
    np.testing.assert_array_equal(one.masks, other.masks)
    np.testing.assert_array_equal(one.errors, other.errors)


@pytest.mark.parametrize(
    ("values", "target", "error"),
    [
        ([], 0.7, 0.7),
        ([0.0, 0.0, 0.0], 0.5, 0.5),
        ([0.25] * 8, 1.1, 0.1),
        ([1.0, -1.0] * 6, 0.0, 0.0),
        ([1.0, 2.0, 4.0], 100.0, 93.0),
        ([1.0, 2.0, 4.0], -5.0, 5.0),
        ([5e-324, 1e-323], 5e-324, 0.0),
        ([1e-310, 3e-310, 7e-310], 8e-310, 0.0),
        ([1e300, 1e-300], 1e-300, 0.0),
        ([1e308, 1e308, 1e308], 1e308, 0.0),
        ([1e20, -1e20, 1.0, 2.0], 3.0, 0.0),
        ([1.7e308, -1.7e308, 1.0], 1.0, 0.0),
    ],
)
def test_edges(values, target, error):
    found = solve(np.array([values], dtype=float).reshape(1, -1), [target])
    assert found.errors[0] == pytest.approx(error, rel=1e-12, abs=0.0)


@given(st.lists(st.integers(-300, 300), min_size=2, max_size=10), st.integers(0, 1023), st.integers(0, 10**6))
def test_a_reachable_target_is_reached_whatever_the_range(exponents, subset, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 1, len(exponents)) * 10.0 ** np.array(exponents)
    target = math.fsum(v for k, v in enumerate(values) if subset >> k & 1)
    assert solve([values], [target]).errors[0] <= 2.0**-50 * abs(target)


def test_no_problems_gives_no_answers():
    found = solve(np.empty((0, 5)), np.empty(0))
    assert found.masks.shape == (0, 5)
    assert found.errors.shape == (0,)


def test_zeros_are_never_kept():
    values, targets = random_problems(50, 10)
    values[:, ::3] = 0
    assert not solve(values, targets).masks[:, ::3].any()


@pytest.mark.parametrize("n", [41, 64, 100, 1000, 10_000])
def test_many_values_reach_float64_resolution_without_enumerating(n):
    values, targets = random_problems(2, n)
    found = solve(values, targets)
    # Some 2^-n of the range is in reach at all; beyond 60 values that is below float64.
    assert found.errors.max() <= (1e-10 if n < 60 else 4e-15)
    for value, mask, error, target in zip(values, found.masks, found.errors, targets, strict=True):
        assert error == pytest.approx(abs(math.fsum(value[mask]) - target), abs=1e-16)
    np.testing.assert_array_equal(found.optimal, found.errors == 0)


@pytest.mark.parametrize("n", [41, 50, 64, 100, 300])
@pytest.mark.parametrize("left_out", [2, 5])
def test_many_values_reach_targets_at_the_ends_of_their_range(n, left_out):
    """All values of one sign but the smallest few: hardly any subset comes near."""
    rng = np.random.default_rng(n)
    values = rng.uniform(-1, 1, (20, n)) * rng.uniform(-1, 1, (20, n))
    planted = values > 0
    planted ^= np.argsort(np.abs(values), axis=1).argsort(axis=1) < left_out
    targets = np.array([math.fsum(row[kept]) for row, kept in zip(values, planted, strict=True)])
    for sign in (1, -1):
        found = solve(sign * values, sign * targets, tolerance=1e-6)
        assert found.errors.max() <= 1e-6
    assert solve(values[:1], targets[:1], tolerance=1e300).optimal.all()


def test_many_values_out_of_reach_or_all_zero():
    found = solve(np.array([np.full(100, 0.5), np.zeros(100), np.full(100, -1e300)]), [1e4, 2.0, 1.0])
    np.testing.assert_allclose(found.errors, [1e4 - 50, 2.0, 1.0])


def test_a_tolerance_ends_the_search_among_many_values():
    values, targets = random_problems(3, 200)
    found = solve(values, targets, tolerance=1e-6)
    assert (found.errors <= 1e-6).all()
    assert found.optimal.all()


def test_a_tolerance_among_many_values_is_in_the_values_own_units():
    """The first window's errors are about 1e-12 here: a search that stops a factor of two early is seen."""
    values, targets = random_problems(8, 60)
    values *= 0.5 / np.abs(values).max(axis=1, keepdims=True)
    assert (solve(values, targets * 0.4, tolerance=3e-13).errors <= 3e-13).all()


def test_same_answer_whatever_the_number_of_threads():
    rng = np.random.default_rng(5)
    values, targets = rng.uniform(-1, 1, (3000, 13)), rng.uniform(-1, 1, 3000)
    before = numba.get_num_threads()
    found = []
    try:
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            found.append(solve(values, targets))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0].masks, found[1].masks)
    np.testing.assert_array_equal(found[0].sums, found[1].sums)


@pytest.mark.parametrize(
    ("values", "targets", "message"),
    [
        ([[1.0, math.nan]], [0.0], r"values\[0, 1\] is nan"),
        ([[1.0, 2.0]], [math.inf], r"targets\[0\] is inf"),
        ([1.0, 2.0], [0.0], r"values has shape \(2,\)"),
        ([[1.0, 2.0]], [0.0, 1.0], "targets has 2 entries but values describes 1"),
        ([["a", "b"]], [0.0], "values has dtype <U1: expected real numbers"),
        ([[1.0, 2.0], [3.0]], [0.0, 0.0], "values has lines of different lengths"),
        (np.zeros((1, 2), complex), [0.0], "values has dtype complex"),
        (np.zeros((1, MAX_VALUES + 1)), [0.0], "at most 10000"),
    ],
)
def test_bad_input_is_named(values, targets, message):
    with pytest.raises(StrongTicketError, match=message):
        solve(values, targets)


def test_bad_options_are_named():
    for tolerance in (-1.0, math.nan):
        with pytest.raises(StrongTicketError, match=f"tolerance={tolerance}"):
            solve([[1.0]], [0.0], tolerance=tolerance)
    with pytest.raises(StrongTicketError, match=r"units\[0, 1\] is 7"):
        solve(Products(np.ones((1, 2)), np.ones((1, 3)), np.array([[0, 7]])), [1.0])
    with pytest.raises(StrongTicketError, match="expected integers of left's shape"):
        solve(Products(np.ones((1, 2)), np.ones((1, 3)), np.array([[0.0, 1.0]])), [1.0])
