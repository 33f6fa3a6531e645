"""How many bits masks must hold. The paper counts units; a file counts bits. Proofs in docs/bits.md.

Errors are root mean squares, relative to that of the target. Random weights come from a seed and take no bits.
"""

import math

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError

# What cubes waste beside balls: how far the nearest of evenly spread weights is above the limit as they get closer.
NEAREST_EXCESS = 0.5 * math.log2(math.pi * math.e / 6)


def least_bits(error: Real) -> float:
    """Bits a weight that any ticket of normal numbers needs, from any source: log₂(1/error), rate–distortion."""
    checks.positive(error=error)
    return max(0.0, -math.log2(error))


def least_bits_worst(tolerance: Real, weights: int = 1, failure: Real = 0.0) -> float:
    """Bits a weight with which every entry of every target in [−1, 1] may come within a tolerance, by counting masks.

    A share `failure` of the targets may be missed.
    """
    checks.positive(tolerance=tolerance)
    checks.whole(weights=weights)
    if not 0 <= failure < 1:
        raise StrongTicketError(f"failure={failure}: expected a share from 0 to below 1")
    return max(0.0, -math.log2(tolerance) + math.log2(1 - failure) / weights)


def thrown_excess(rows: int = 1) -> float:
    """Bits a weight that points thrown at random take above a grid of cubes, one point choosing for so many rows.

    1.29 for one row (Lemma 4), 0.47 for two, 0.24 for three: half of log₂ of the mean squared distance to the
    nearest of the points over that to the nearest of as many on a grid.
    """
    checks.whole(rows=rows)
    ball = math.pi ** (rows / 2) / math.gamma(rows / 2 + 1)  # its volume at radius 1
    return 0.5 * math.log2(12 / rows * math.gamma(1 + 2 / rows) * ball ** (-2 / rows))


def spread_excess(rows: int = 1, spread: Real | None = None) -> float:
    """Bits a weight lost because sums are spread by another law than the target, each sum taking as many bits.

    Args:
        rows: that one subset serves.
        spread: variance of the sums over that of the target, both normal; None is the best, 1 + 2/rows. Up to
            2/rows most of the square error is in entries out of reach, and there is no such number.
    """
    checks.whole(rows=rows)
    spread = 1 + 2 / rows if spread is None else spread
    if spread <= 2 / rows:
        return math.inf
    return 0.5 * math.log2(spread / math.e * (1 - 2 / (rows * spread)) ** (-rows / 2))


def subset_sum_excess(rows: int = 1, spread: Real | None = None) -> float:
    """Bits a weight that subset sums need above the limit: cubes, points thrown at random, their spread."""
    return NEAREST_EXCESS + thrown_excess(rows) + spread_excess(rows, spread)


def value_lower_bound(
    epsilon: Real, d1: int, d2: int, heads: int, alpha: Real, *, rank: int | None = None
) -> float:
    """No source is narrower: n_V ≥ (P·log₂(α/ε) + log₂(1 − ε)/H)/(d₁ + d₂) with P = d₁d₂, by counting masks.

    For heads of a rank r below min(d₁, d₂), P = r(d₁ + d₂ − r) and α/4 stands for α. For an error of at most ε on
    every target of that rank with probability 1 − ε over the source, however it is drawn and pruned, where each
    head has a mask of its own (and may see one token that the others do not).
    """
    full = min(d1, d2)
    rank = full if rank is None else rank
    checks.fraction(epsilon=epsilon)
    checks.whole(d1=d1, d2=d2, heads=heads, rank=rank)
    checks.positive(alpha=alpha)
    if rank > full:
        raise StrongTicketError(f"rank={rank}: a {d1} × {d2} matrix has at most rank {full}")
    numbers, radius = rank * (d1 + d2 - rank), alpha if rank == full else alpha / 4
    bits = numbers * (math.log2(radius) - math.log2(epsilon)) + math.log2(1 - epsilon) / heads
    return max(1.0, bits / (d1 + d2))
