"""A frozen tensor of the search: random weights from the seed, its query and key parts scaled."""

from dataclasses import dataclass

import numpy as np

from strongticket.seeds import Law, draw


@dataclass(frozen=True)
class Part:
    """Rows (axis 0) or columns (axis 1) start..stop of a tensor, multiplied by `factor`."""

    axis: int
    start: int
    stop: int
    factor: float = 1.0


@dataclass(frozen=True)
class Source:
    """What makes one frozen tensor. The scale is applied after the draw, in float32."""

    seed: int
    name: str
    shape: tuple[int, ...]
    law: Law
    parts: tuple[Part, ...] = ()

    def weights(self, rows: slice = slice(None), *, threads: int | None = None) -> np.ndarray:
        """float32 of `shape`, or those rows of it."""
        drawn = draw(self.seed, self.name, self.shape, self.law, rows=rows, threads=threads)
        first = rows.indices(self.shape[0])[0]
        return scale_parts(drawn, self.parts, first_row=first)


def scale_parts(array: np.ndarray, parts: tuple[Part, ...], *, first_row: int = 0) -> np.ndarray:
    """Scale the parts of a tensor, or of its rows from `first_row` on, in place."""
    for part in parts:
        if part.axis == 0:
            view = array[max(part.start - first_row, 0) : max(part.stop - first_row, 0)]
        else:
            view = array[:, part.start : part.stop]
        view *= np.float32(part.factor)
    return array
