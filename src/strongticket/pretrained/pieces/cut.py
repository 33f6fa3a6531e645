"""A matrix cut into pieces, from its sizes alone: what there is to solve, and the shapes of its random tensors.

A matrix is scale · (left ⊙ M₁)(right ⊙ M₂)ᵀ. Its smaller side has the structure: each of its rows is served by
hidden units of its own. A piece is some of these rows with their units, so it is solved, stored, checked and run
without the others. The weights that would join a piece's units to other rows are pruned whatever the target is;
they are neither drawn nor kept.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT

PROBLEMS = 1 << 20  # entries a piece has at most, about: seconds of work, a hundred megabytes
ROWS = (
    16,
    64,
)  # of a piece: with fewer, units have little choice whom to serve; with more, choosing takes long


@dataclass(frozen=True)
class Layout:
    """units: hidden units for each row of the smaller side; problems: about how many entries a piece has at most."""

    units: int = 24
    problems: int = PROBLEMS

    def __post_init__(self) -> None:
        if type(self.units) is not int or not 1 <= self.units <= MAX_EXACT:
            raise StrongTicketError(
                f"units={self.units!r}: expected a whole number from 1 to {MAX_EXACT}, hidden units a row"
            )
        if type(self.problems) is not int or self.problems < 1:
            raise StrongTicketError(f"problems={self.problems!r}: expected a whole number of at least 1")


@dataclass(frozen=True)
class Piece:
    """Rows start..stop of a matrix's smaller side, all `columns` of the other, and the units that serve them.

    transposed: the smaller side is the matrix's second axis.
    """

    name: str
    start: int
    stop: int
    columns: int
    units: int
    transposed: bool = False

    @property
    def left(self) -> str:
        return f"{self.name}.left"

    @property
    def right(self) -> str:
        return f"{self.name}.right"

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """left: (rows, units); right: (columns, units)."""
        return {self.left: (self.stop - self.start, self.units), self.right: (self.columns, self.units)}

    @property
    def place(self) -> tuple[slice, slice]:
        """Where the piece's block lies in its matrix."""
        rows, columns = slice(self.start, self.stop), slice(0, self.columns)
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def problems(self) -> int:
        """Entries of the block."""
        return (self.stop - self.start) * self.columns

    @property
    def weights(self) -> int:
        """Random weights, kept or not."""
        return sum(prod(shape) for shape in self.shapes.values())


def cut(name: str, rows: int, columns: int, layout: Layout) -> list[Piece]:
    """The pieces of a matrix (rows, columns), which depend on nothing but these arguments.

    >>> [piece.place for piece in cut("w", 3, 100, Layout(12))]
    [(slice(0, 3, None), slice(0, 100, None))]
    """
    smaller, larger = sorted((rows, columns))
    height = max(ROWS[0], min(ROWS[1], layout.problems // larger))
    count = -(-smaller // height)
    edges = [smaller * i // count for i in range(count + 1)]
    # A single row cannot choose its units: it gets more of them.
    units = layout.units if smaller > 1 else min(2 * layout.units, MAX_EXACT)
    return [
        Piece(f"{name}.{i}", start, stop, larger, units * (stop - start), rows > columns)
        for i, (start, stop) in enumerate(pairwise(edges))
    ]
