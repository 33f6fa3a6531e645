"""The entry point to the solvers."""

import math

import numpy as np
from numpy.typing import ArrayLike

from strongticket.subset_sum.problems import MAX_EXACT, Products, Solution, checked

ROWS_AT_ONCE = 4096  # problems of Products written out at a time, beyond MAX_EXACT values


def solve(values: ArrayLike | Products, targets: ArrayLike, *, tolerance: float | None = None) -> Solution:
    """Choose, for each problem, the subset of its values whose sum comes closest to its target.

    Args:
        values: (P, n) array of P problems with n values each, or `Products`.
        targets: (P,) array.
        tolerance: any subset with |sum - target| <= tolerance will do; the optimum where none exists.

    Returns:
        Solution with masks (P, n), sums (P,), errors (P,) and optimal (P,). Up to n = 40 the optimum is
        found (to float64 resolution of the values' total); beyond, a sum at float64 resolution whenever
        one can be reached, and `optimal` is False unless the error is 0 or within the tolerance.

    >>> solve([[0.5, -0.25, 0.75]], [0.3]).masks.tolist()
    [[True, True, False]]
    """
    rows, sought, limit = checked(values, targets, tolerance)
    problems, n = rows.shape
    masks, sums = np.zeros((problems, n), np.bool_), np.zeros(problems)
    if problems and 0 < n <= MAX_EXACT:
        from strongticket.subset_sum import meet

        if not isinstance(rows, Products):
            rows = Products(rows, np.ones((1, 1)), np.zeros((0, 0), np.int64))
        meet.solve_products(rows.left, rows.right, rows.units, sought, limit, masks, sums)
    elif n:
        _solve_many_values(rows, sought, limit, masks, sums)
    errors = np.abs(sums - sought)
    return Solution(masks, sums, errors, (errors == 0) | (errors <= limit) | (n <= MAX_EXACT))


def _solve_many_values(
    values: np.ndarray | Products,
    targets: np.ndarray,
    tolerance: float,
    masks: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write the chosen masks (P, n) and their sums (P,) into the given arrays."""
    from strongticket.subset_sum import many_values

    for start in range(0, len(targets), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(targets)))
        rows = values.rows(part.start, part.stop) if isinstance(values, Products) else values[part]
        masks[part] = many_values.solve_rows(rows, targets[part], tolerance)
        sums[part] = [math.fsum(row[mask]) for row, mask in zip(rows, masks[part], strict=True)]
