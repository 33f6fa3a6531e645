"""Bits: counting bounds against volumes, the formula of subset sums against points that are really thrown."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.theory import bits, value_lower_bound

sides = st.integers(1, 9)


def test_the_lower_bound_counts_masks():
    assert value_lower_bound(1e-3, 64, 64, 8, 8.0) == pytest.approx(415, abs=0.5)
    for d1, d2, h in ((3, 5, 1), (4, 4, 2), (1, 1, 1)):
        n = value_lower_bound(0.01, d1, d2, h, 3.0)
        # For every head a ball of that radius around every product of masks: together 1 − ε of the targets' volume.
        products, balls = 2.0 ** (n * h * (d1 + d2)), (0.01 / 3.0) ** (d1 * d2 * h)
        assert products * balls == pytest.approx(0.99)


@given(sides, sides, st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_the_targets_of_a_rank_that_the_bound_counts(d1, d2, rank, seed):
    """W = [A; Y] A⁻¹ [A, X]: norm 1 at most, rank r, and as far apart as their coordinates A, X and Y."""
    rank = min(rank, d1, d2)
    rng = np.random.default_rng(seed)

    def target():
        a, x, y = (
            matrix / max(np.linalg.norm(matrix, 2), 1e-9) * rng.uniform(0, 1 / 4) if matrix.size else matrix
            for shape in ((rank, rank), (rank, d2 - rank), (d1 - rank, rank))
            for matrix in [rng.standard_normal(shape)]
        )
        a = np.eye(rank) / 2 + a
        return np.vstack([a, y]) @ np.linalg.inv(a) @ np.hstack([a, x]), (a, x, y)

    (first, coordinates), (second, others) = target(), target()
    assert np.linalg.norm(first, 2) <= 1
    assert np.linalg.matrix_rank(first, tol=1e-9) <= rank
    assert sum(part.size for part in coordinates) == rank * (d1 + d2 - rank)
    apart = np.linalg.norm(first - second, 2) + 1e-12
    assert all(
        np.linalg.norm(mine - other, 2) <= apart
        for mine, other in zip(coordinates, others, strict=True)
        if mine.size
    )


@given(sides, sides, st.integers(1, 16), st.floats(1, 30))
def test_lower_ranks_need_fewer_units(d1, d2, heads, alpha):
    bounds = [value_lower_bound(1e-3, d1, d2, heads, alpha, rank=rank) for rank in range(1, min(d1, d2) + 1)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == value_lower_bound(1e-3, d1, d2, heads, alpha)
    with pytest.raises(StrongTicketError, match=r"has at most rank"):
        value_lower_bound(0.1, d1, d2, heads, alpha, rank=min(d1, d2) + 1)


def test_what_points_thrown_at_random_take_above_a_grid():
    assert [bits.thrown_excess(rows) for rows in (1, 2, 3)] == pytest.approx([1.292, 0.467, 0.237], abs=5e-4)
    assert abs(bits.NEAREST_EXCESS - 0.2546) < 1e-4


@pytest.mark.parametrize(
    ("rows", "log_points", "spread"), [(1, 10, None), (1, 10, 5.0), (2, 12, None), (2, 12, 3.0)]
)
def test_the_formula_is_what_thrown_points_show(rows, log_points, spread):
    rng = np.random.default_rng(rows)
    variance = 1 + 2 / rows if spread is None else spread
    errors = []
    for target in rng.standard_normal((3000, rows)):
        points = rng.standard_normal((1 << log_points, rows)) * math.sqrt(variance)
        errors.append(np.square(points - target).sum(1).min())
    above = log_points / rows + 0.5 * math.log2(np.mean(errors) / rows)
    assert above == pytest.approx(bits.subset_sum_excess(rows, spread), abs=0.12)


def test_the_best_spread_is_the_best():
    for rows in (1, 2, 3, 8):
        others = [bits.spread_excess(rows, factor * (1 + 2 / rows)) for factor in (0.8, 0.99, 1.01, 2)]
        assert bits.spread_excess(rows) < min(others)
        assert bits.spread_excess(rows, 2 / rows) == math.inf


def test_least_bits():
    assert bits.least_bits(1 / 16) == 4
    assert bits.least_bits(2.0) == 0
    assert bits.least_bits_worst(1 / 16) == 4
    assert bits.least_bits_worst(1 / 16, 10, 0.5) == pytest.approx(3.9)
    with pytest.raises(StrongTicketError, match="failure=1"):
        bits.least_bits_worst(0.1, 1, 1)
