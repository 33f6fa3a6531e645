"""The entry point to the solvers."""

import math

import numpy as np
from numpy.typing import ArrayLike

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.settings import is_whole
from strongticket.subset_sum.problems import MAX_EXACT, MAX_VALUES, Products, Solution

ROWS_AT_ONCE = 4096  # problems of Products written out at a time, beyond MAX_EXACT values


def solve(
    values: ArrayLike | Products,
    targets: ArrayLike,
    *,
    tolerance: float | None = None,
    size: int | None = None,
) -> Solution:
    """Choose, for each problem, the subset of its values whose sum comes closest to its target.

    Args:
        values: (P, n) array of P problems with n values each, or `Products`.
        targets: (P,) array.
        tolerance: any subset with |sum - target| <= tolerance will do; the optimum where none exists.
        size: of the subsets, if only those of so many values are wanted; for up to 40 values.

    Returns:
        Solution with masks (P, n), sums (P,), errors (P,) and optimal (P,). Up to n = 40 the optimum is
        found (to float64 resolution of the values' total); beyond, a sum at float64 resolution or, near the
        ends of what can be reached, where few subsets are, one of the nearest, and `optimal` is False unless
        the error is 0 or within the tolerance.

    >>> solve([[0.5, -0.25, 0.75]], [0.3]).masks.tolist()
    [[True, True, False]]
    """
    if isinstance(values, Products):
        problems: np.ndarray | Products = _checked_products(values)
    else:
        problems = _numbers("values", values, dimensions=2)
    goals = _numbers("targets", targets, dimensions=1)
    count, n = problems.shape
    if len(goals) != count:
        raise StrongTicketError(
            f"targets has {len(goals)} entries but values describes {count} problems",
            hint="Give one target per problem.",
        )
    if n > MAX_VALUES:
        raise StrongTicketError(f"values has {n} values per problem: at most {MAX_VALUES} are supported")
    if tolerance is not None:
        checks.not_negative(tolerance=tolerance)
    if size is not None and not (is_whole(size) and 0 <= size <= n):
        raise StrongTicketError(f"size={size}: expected a whole number from 0 to {n}")
    return solve_checked(problems, goals, tolerance, size)


def solve_checked(
    values: np.ndarray | Products, targets: np.ndarray, tolerance: float | None, size: int | None = None
) -> Solution:
    """`solve` for C-contiguous float64 arrays of finite numbers that fit together.

    Products may have float32 factors; their units are int64.
    """
    problems, n = values.shape
    limit = -1.0 if tolerance is None else float(tolerance)
    masks, sums = np.zeros((problems, n), np.bool_), np.zeros(problems)
    if problems and 0 < n <= MAX_EXACT:
        from strongticket.subset_sum import meet

        if not isinstance(values, Products):
            values = Products(values, np.ones((1, 1)), np.zeros((0, 0), np.int64))
        meet.solve_products(
            values.left, values.right, values.units, targets, limit, masks, sums, -1 if size is None else size
        )
    elif n:
        if size is not None:
            raise StrongTicketError(
                f"size={size}: subsets of a fixed size are found among up to {MAX_EXACT} values, not {n}"
            )
        from strongticket.subset_sum import many_values

        for start in range(0, problems, ROWS_AT_ONCE):
            part = slice(start, min(start + ROWS_AT_ONCE, problems))
            rows = values.rows(part.start, part.stop) if isinstance(values, Products) else values[part]
            masks[part] = many_values.solve_rows(rows, targets[part], limit)
            sums[part] = [math.fsum(row[mask]) for row, mask in zip(rows, masks[part], strict=True)]
    errors = np.abs(sums - targets)
    return Solution(masks, sums, errors, (errors == 0) | (errors <= limit) | (n <= MAX_EXACT))


def _checked_products(products: Products) -> Products:
    left = _numbers("values.left", products.left, dimensions=2, keep_float32=True)
    right = _numbers("values.right", products.right, dimensions=2, keep_float32=True)
    units = np.ascontiguousarray(products.units)
    if units.dtype.kind not in "iu" or units.shape != left.shape:
        raise StrongTicketError(
            f"values.units is {units.dtype} {units.shape}: expected integers of left's shape {left.shape}",
        )
    outside = np.argwhere((units < 0) | (units >= right.shape[1]))
    if len(outside):
        raise StrongTicketError(
            f"values.units{outside[0].tolist()} is {units[tuple(outside[0])]}: "
            f"expected 0 … {right.shape[1] - 1}, a column of values.right",
        )
    return Products(left, right, units.astype(np.int64))


def _numbers(name: str, given: ArrayLike, *, dimensions: int, keep_float32: bool = False) -> np.ndarray:
    """`given` as a contiguous finite float array of that many dimensions."""
    try:
        array = np.asarray(given)
    except ValueError:
        raise StrongTicketError(
            f"{name} has lines of different lengths: expected an array of numbers"
        ) from None
    if array.ndim != dimensions:
        shape = "problems × n" if dimensions == 2 else "one number per problem"
        raise StrongTicketError(f"{name} has shape {array.shape}: expected {dimensions} dimensions ({shape})")
    checks.finite(**{name: array})
    wanted = np.float32 if keep_float32 and array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(array, dtype=wanted)
