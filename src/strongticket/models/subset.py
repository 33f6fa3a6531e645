"""A model's matrices as products of two pruned random ones, one subset sum for each entry, as Lemma 4 has it.

The smaller side of a matrix has the structure: each of its rows is served by hidden units of its own, `per_row` of
them, and ROWS of these rows with their units are one pair of factors: left (rows, units) and right (columns, units).
The weights that would join units to the rows of other pairs are pruned whatever the target is: they are neither drawn
nor kept.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from strongticket.choice import matrix_shape
from strongticket.ticket import Ticket

ROWS = 64


@dataclass(frozen=True)
class FactorPair:
    """Two factors and the rows of the structured side that they make.

    Attributes:
        left, right: their names in the ticket.
        rows: of the matrix, or of the transposed one.
        columns: of the same.
        units: hidden ones.
        transposed: whether the structure is in the columns of the matrix.
    """

    left: str
    right: str
    rows: range
    columns: int
    units: int
    transposed: bool

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Of both factors, by name."""
        return {self.left: (len(self.rows), self.units), self.right: (self.columns, self.units)}

    def part(self, matrix: Any) -> Any:
        """What the pair makes of a matrix: a view with the structured side first."""
        side = matrix.T if self.transposed else matrix
        return side[self.rows.start : self.rows.stop]


def factor_pairs(name: str, shape: tuple[int, ...], per_row: int) -> list[FactorPair]:
    """The pairs of factors that make a tensor.

    >>> [pair.shapes for pair in factor_pairs("w", (100, 8), 20)]
    [{'w.0.left': (8, 160), 'w.0.right': (100, 160)}]
    """
    rows, columns = matrix_shape(shape)
    transposed = columns < rows
    side, other = sorted((rows, columns))
    return [
        FactorPair(
            f"{name}.{number}.left",
            f"{name}.{number}.right",
            range(first, min(first + ROWS, side)),
            other,
            per_row * (min(first + ROWS, side) - first),
            transposed,
        )
        for number, first in enumerate(range(0, side, ROWS))
    ]


def multiply(pairs: list[FactorPair], shape: tuple[int, ...], ticket: Ticket) -> np.ndarray:
    """The tensor: all pairs multiplied out in float64, then float32."""
    matrix = np.empty(matrix_shape(shape), np.float32)
    for pair in pairs:
        left, right = (ticket.weights(name) for name in pair.shapes)
        pair.part(matrix)[:] = left.astype(np.float64) @ right.T
    return matrix.reshape(shape)
