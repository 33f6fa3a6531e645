"""A frozen tensor of the search: random weights from the seed with scaled query and key slices, or trained weights."""

from dataclasses import dataclass

import numpy as np

from strongticket.searching.masking.sparse import NONE, Sparsity, draw_fates
from strongticket.seeds import Constant, Law, draw


@dataclass(frozen=True)
class ScaledSlice:
    """Rows (axis 0) or columns (axis 1) start to stop of a tensor, multiplied by `factor`."""

    axis: int
    start: int
    stop: int
    factor: float = 1.0


@dataclass(frozen=True)
class FrozenTensor:
    """What makes one frozen tensor. The slices are scaled after the draw, in float32.

    sparsity: which of its weights the seed drops or locks; `weights` draws them all
    """

    seed: int
    name: str
    shape: tuple[int, ...]
    law: Law
    slices: tuple[ScaledSlice, ...] = ()
    sparsity: Sparsity = NONE

    def fates(self) -> np.ndarray:
        """What the seed has decided about each weight: int8 of `shape`, -1 dropped, 0 free, 1 locked."""
        return draw_fates(self.sparsity, self.seed, self.name, self.shape)

    def weights(self, rows: slice = slice(None), *, threads: int | None = None) -> np.ndarray:
        """The weights: float32 of `shape`.

        rows: only these rows of the first axis
        threads: number of threads that draw; None means one per core
        """
        drawn = draw(self.seed, self.name, self.shape, self.law, rows=rows, threads=threads)
        first = rows.indices(self.shape[0])[0]
        return scale_slices(drawn, self.slices, first_row=first)


@dataclass(frozen=True, eq=False)
class TrainedTensor:
    """A trained tensor that is frozen as it is. A ticket stores its mask, as a tensor of ones and zeros."""

    seed: int
    name: str
    values: np.ndarray
    slices: tuple[ScaledSlice, ...] = ()
    sparsity: Sparsity = NONE  # none: a mask chooses from all of them

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def law(self) -> Law:
        return Constant(1.0)

    def fates(self) -> np.ndarray:
        """All weights are free."""
        return np.zeros(self.shape, np.int8)

    def weights(self, rows: slice = slice(None), *, threads: int | None = None) -> np.ndarray:
        """The weights, or only these rows of the first axis."""
        return self.values[rows]


def scale_slices(array: np.ndarray, slices: tuple[ScaledSlice, ...], *, first_row: int = 0) -> np.ndarray:
    """Scale the slices of a tensor in place; `array` holds its rows from `first_row` on."""
    for scaled in slices:
        if scaled.axis == 0:
            view = array[max(scaled.start - first_row, 0) : max(scaled.stop - first_row, 0)]
        else:
            view = array[:, scaled.start : scaled.stop]
        view *= np.float32(scaled.factor)
    return array
