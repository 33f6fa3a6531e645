"""What a batch of subset-sum problems is, and what comes back."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Num

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
