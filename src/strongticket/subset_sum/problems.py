"""What a batch of subset-sum problems is, and what comes back."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Num
from numpy.typing import ArrayLike

from strongticket.errors import StrongTicketError

MAX_EXACT = 40  # largest number of values for which the optimum is proven
MAX_VALUES = 10_000


@dataclass(frozen=True)
class Products:
    """rows × columns problems whose values are products, never written out in full.

    Problem r*columns + c has the n values left[r, k] * right[c, units[r, k]].

    >>> Products(left=np.ones((2, 3)), right=np.ones((5, 6)), units=np.arange(6).reshape(2, 3)).shape
    (10, 3)
    """

    left: Num[np.ndarray, "rows n"]
    right: Num[np.ndarray, "columns all_units"]
    units: Int[np.ndarray, "rows n"]

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.shape[0] * self.right.shape[0], self.left.shape[1]

    def rows(self, start: int, stop: int) -> Float[np.ndarray, "problems n"]:
        """The values of problems start … stop-1, float64."""
        index = np.arange(start, stop)
        r, c = index // self.right.shape[0], index % self.right.shape[0]
        right = self.right[c[:, None], self.units[r]].astype(np.float64)
        values: np.ndarray = self.left[r].astype(np.float64) * right
        return values


@dataclass(frozen=True)
class Solution:
    """The chosen subsets of P problems.

    Attributes:
        masks: which values are kept.
        sums: their sums.
        errors: |sum - target|.
        optimal: True where no subset is closer (or, with a tolerance, where the tolerance is met).

    >>> from strongticket import solve
    >>> solve([[0.5, -0.25, 0.75]], [0.3]).errors.round(3).tolist()
    [0.05]
    """

    masks: Bool[np.ndarray, "problems n"]
    sums: Float[np.ndarray, " problems"]
    errors: Float[np.ndarray, " problems"]
    optimal: Bool[np.ndarray, " problems"]


def checked(
    values: ArrayLike | Products, targets: ArrayLike, tolerance: float | None
) -> tuple[np.ndarray | Products, np.ndarray, float]:
    """The arguments of `solve`, validated: float64 arrays (or Products), and -1 for no tolerance."""
    rows: np.ndarray | Products
    rows = (
        _checked_products(values)
        if isinstance(values, Products)
        else _numbers("values", values, dimensions=2)
    )
    goals = _numbers("targets", targets, dimensions=1)
    if len(goals) != rows.shape[0]:
        raise StrongTicketError(
            f"targets has {len(goals)} entries but values describes {rows.shape[0]} problems",
            hint="Give one target per problem.",
        )
    if rows.shape[1] > MAX_VALUES:
        raise StrongTicketError(
            f"values has {rows.shape[1]} values per problem: at most {MAX_VALUES} are supported"
        )
    if tolerance is None:
        return rows, goals, -1.0
    if not isinstance(tolerance, int | float | np.number) or not np.isfinite(tolerance) or tolerance < 0:
        raise StrongTicketError(f"tolerance is {tolerance!r}: expected a finite number >= 0, or None")
    return rows, goals, float(tolerance)


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
    if array.dtype.kind not in "iuf":
        raise StrongTicketError(f"{name} is of type {array.dtype}: expected real numbers (float64 is best)")
    if array.ndim != dimensions:
        shape = "problems × n" if dimensions == 2 else "one number per problem"
        raise StrongTicketError(f"{name} has shape {array.shape}: expected {dimensions} dimensions ({shape})")
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        raise StrongTicketError(
            f"{name}{bad[0].tolist()} is {array[tuple(bad[0])]}: "
            "expected finite numbers: remove or replace it",
        )
    wanted = np.float32 if keep_float32 and array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(array, dtype=wanted)
