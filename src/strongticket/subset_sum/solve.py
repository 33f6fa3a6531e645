"""The entry point to all solvers."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from strongticket.errors import StrongTicketError
from strongticket.subset_sum.problems import MAX_EXACT, Products, Solution, checked

PROGRAMS = ("highs", "gurobi", "cpsat")
BACKENDS = ("auto", "numba", "torch", *PROGRAMS)
ROWS_AT_ONCE = 4096  # problems of Products expanded at a time for backends that need plain arrays


def solve(
    values: ArrayLike | Products,
    targets: ArrayLike,
    *,
    tolerance: float | None = None,
    backend: str = "auto",
) -> Solution:
    """Choose, for each problem, the subset of its values whose sum comes closest to its target.

    Args:
        values: (P, n) array of P problems with n values each, or `Products`.
        targets: (P,) array.
        tolerance: any subset with |sum - target| <= tolerance will do; the optimum where none exists.
        backend: "numba" (default), "torch", "highs", "gurobi" or "cpsat".

    Returns:
        Solution with masks (P, n), sums (P,), errors (P,) and optimal (P,). Up to n = 40 the optimum is
        found (to float64 resolution of the values' total); beyond, a sum at float64 resolution whenever
        one can be reached, and `optimal` is False unless the error is 0 or within the tolerance. So it
        is for "highs", "gurobi" and "cpsat", which stop at feasibility tolerances of their own.

    >>> solve([[0.5, -0.25, 0.75]], [0.3]).masks.tolist()
    [[True, True, False]]
    """
    rows, sought, limit = checked(values, targets, tolerance)
    if backend not in BACKENDS:
        raise StrongTicketError(f"backend is {backend!r}: expected one of {', '.join(BACKENDS)}")
    problems, n = rows.shape
    masks, sums = np.zeros((problems, n), np.bool_), np.zeros(problems)
    if problems and n:
        _fill(backend, rows, sought, limit, masks, sums)
    errors = np.abs(sums - sought)
    proven = n <= MAX_EXACT and backend not in PROGRAMS
    return Solution(masks, sums, errors, (errors == 0) | (errors <= limit) | proven)


def _fill(
    backend: str,
    values: np.ndarray | Products,
    targets: np.ndarray,
    tolerance: float,
    masks: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write the chosen masks (P, n) and their sums (P,) into the given arrays."""
    n = masks.shape[1]
    if backend in ("auto", "numba") and n <= MAX_EXACT:
        from strongticket.subset_sum import meet

        if not isinstance(values, Products):
            values = Products(values, np.ones((1, 1)), np.zeros((0, 0), np.int64))
        meet.solve_products(values.left, values.right, values.units, targets, tolerance, masks, sums)
        return
    solve_some = _row_solver(backend, n)
    for start in range(0, len(targets), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(targets)))
        rows = values.rows(part.start, part.stop) if isinstance(values, Products) else values[part]
        masks[part] = solve_some(rows, targets[part], tolerance)
        sums[part] = [math.fsum(row[mask]) for row, mask in zip(rows, masks[part], strict=True)]


def _row_solver(backend: str, n: int) -> Callable[[np.ndarray, np.ndarray, float], np.ndarray]:
    """The function (values, targets, tolerance) -> masks of a backend; imported only when asked for."""
    if backend in PROGRAMS:
        from strongticket.subset_sum import programs

        return programs.solver(backend)
    if n > MAX_EXACT:
        from strongticket.subset_sum import many_values

        return many_values.solve_rows
    from strongticket.subset_sum import batched

    return batched.solve_rows
