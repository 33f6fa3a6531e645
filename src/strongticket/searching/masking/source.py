"""The source of one weight matrix: random weights from the seed, with scaled query and key slices.

In a sparse source the seed alone drops or locks some weights, so that no bit of a mask is spent on them: partially
frozen networks (Otsuka et al., "Partially frozen random networks contain compact strong lottery tickets", TMLR 2025)
and sparse random sources (Gadhikar et al., "Why random pruning is all we need to start sparse", ICML 2023). Scores
compete only among the weights that are left free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.seeds import Law, Uniform, draw

DECISION_LAW = Uniform(1.0)  # of the numbers that decide, one per weight


@dataclass(frozen=True)
class ScaledSlice:
    """Rows (axis 0) or columns (axis 1) start to stop of a tensor, multiplied by `factor`."""

    axis: int
    start: int
    stop: int
    factor: float = 1.0


def scale_slices(array: np.ndarray, slices: tuple[ScaledSlice, ...]) -> np.ndarray:
    """Multiply the slices of a tensor by their factors, in place and in float32."""
    for part in slices:
        rows = slice(part.start, part.stop)
        view = array[rows] if part.axis == 0 else array[:, rows]
        view *= np.float32(part.factor)
    return array


@dataclass(frozen=True)
class Sparsity:
    """Fractions of the weights that the seed alone decides.

    Attributes:
        dropped: these are always 0
        locked: these are always kept
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

    def decide(self, numbers: np.ndarray) -> np.ndarray:
        """What the seed decides about each weight, from numbers of DECISION_LAW: int8, -1 dropped, 0 free, 1 locked.

        >>> Sparsity(dropped=0.25, locked=0.25).decide(np.array([-0.8, -0.2, 0.3, 0.9])).tolist()
        [-1, 0, 0, 1]
        """
        numbers = numbers.astype(np.float64)
        dropped, locked = numbers < 2 * self.dropped - 1, numbers >= 1 - 2 * self.locked
        return locked.astype(np.int8) - dropped.astype(np.int8)


NONE = Sparsity()  # every weight is free


@dataclass(frozen=True)
class Source:
    """What makes one random tensor. The slices are scaled after the draw, in float32.

    Attributes:
        sparsity: which of its weights the seed drops or locks; `weights` draws them all
    """

    seed: int
    name: str
    shape: tuple[int, ...]
    law: Law
    slices: tuple[ScaledSlice, ...] = ()
    sparsity: Sparsity = NONE

    def weights(self) -> np.ndarray:
        """All weights: float32 of `shape`."""
        return scale_slices(draw(self.seed, self.name, self.shape, self.law), self.slices)

    def scaled(self, factor: float) -> Source:
        """The same source with another factor on its slices."""
        return replace(self, slices=tuple(replace(part, factor=float(factor)) for part in self.slices))

    def seed_decision(self) -> np.ndarray:
        """What the seed decides about each weight: int8 of `shape`, -1 dropped, 0 free, 1 locked."""
        return self.sparsity.decide(draw(self.seed, decision_name(self.name), self.shape, DECISION_LAW))


def decision_name(name: str) -> str:
    """Name of the tensor whose numbers decide about the matrix `name`."""
    return f"{name}:source"
