"""Sparse sources: weights that the seed alone drops or locks, so that no bit of a mask is spent on them.

Partially frozen networks (Otsuka et al., "Partially frozen random networks contain compact strong lottery tickets",
TMLR 2025) and sparse random sources (Gadhikar et al., "Why random pruning is all we need to start sparse", ICML 2023).
Scores compete only among the weights that are left free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.seeds import Uniform, draw

SOURCE_LAW = Uniform(1.0)  # of the numbers that decide, one per weight


@dataclass(frozen=True)
class Sparsity:
    """Fractions of the weights that the seed alone decides.

    dropped: are always 0
    locked: are always kept
    """

    dropped: float = 0.0
    locked: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("dropped", self.dropped), ("locked", self.locked)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
                raise StrongTicketError(f"{name} must be a fraction from 0 to 1 (excluded), got {value!r}")
        if self.dropped + self.locked >= 1:
            raise StrongTicketError(
                f"dropped={self.dropped} and locked={self.locked} leave no weight to choose",
                hint="Their sum must be below 1.",
            )

    def __bool__(self) -> bool:
        return self.dropped + self.locked > 0

    def fates(self, numbers: np.ndarray) -> np.ndarray:
        """What becomes of each weight: int8, -1 dropped, 0 free, 1 locked.

        numbers: of SOURCE_LAW, from -1 to 1

        >>> Sparsity(dropped=0.25, locked=0.25).fates(np.array([-0.8, -0.2, 0.3, 0.9])).tolist()
        [-1, 0, 0, 1]
        """
        numbers = numbers.astype(np.float64)
        dropped, locked = numbers < 2 * self.dropped - 1, numbers >= 1 - 2 * self.locked
        return locked.astype(np.int8) - dropped.astype(np.int8)


NONE = Sparsity()  # every weight is free


def source_name(name: str) -> str:
    """Name of the tensor whose numbers decide about the matrix `name`."""
    return f"{name}:source"


def draw_fates(sparsity: Sparsity, seed: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The fates of a matrix, from the seed."""
    return sparsity.fates(draw(seed, source_name(name), shape, SOURCE_LAW))
