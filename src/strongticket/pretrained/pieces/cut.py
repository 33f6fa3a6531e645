"""A matrix cut into pieces, from its sizes and layout alone: what is to be solved, and the shapes of random tensors.

A matrix is scale · (left ⊙ M₁)(right ⊙ M₂)ᵀ. Its smaller side has the structure: each of its rows is served by
hidden units of its own. A piece is some of these rows with their units, so it is solved, stored, checked and run
without the others. The weights that would join a piece's units to other rows are pruned whatever the target is;
they are neither drawn nor kept.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import prod
from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT

PROBLEMS = 1 << 20  # entries a piece has at most, about: seconds of work, a hundred megabytes
ROWS = (16, 96)  # of a piece: fewer leave units little choice whom to serve, with more left outgrows right
PAPER_ROWS = (16, 64)
MAX_UNITS = 30  # for each row
FEW = 4  # rows up to which a matrix is made like a vector: precise, as it costs next to nothing
FEW_UNITS = 30


@dataclass(frozen=True)
class Layout:
    """How a matrix is cut.

    units: hidden units for each row of the smaller side, not necessarily whole: about the bits of an entry
    problems: about how many entries a piece has at most
    share: rows that share their units, 1 to 3, so that one bit serves so many entries; None chooses by units, as
        more rows need fewer bits for the same error but more time
    paper: the source of the theorems instead: symmetric laws, and each unit serves one row
    axis: the axis with the structure, 0 or 1, instead of the smaller side: rows that are cut apart are solved apart
    apart: rows, ascending, that are pieces of their own: with numbers far larger than all others'
    """

    units: float = 8
    problems: int = PROBLEMS
    share: int | None = None
    paper: bool = False
    axis: int | None = None
    apart: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        limit = MAX_EXACT if self.paper else MAX_UNITS
        if type(self.units) not in (int, float) or not 1 <= self.units <= limit:
            raise StrongTicketError(
                f"units={self.units!r}: expected a number from 1 to {limit}, hidden units per row"
            )
        if self.paper and type(self.units) is not int:
            raise StrongTicketError(f"units={self.units!r}: the paper's source needs a whole number")
        if type(self.problems) is not int or self.problems < 1:
            raise StrongTicketError(f"problems={self.problems!r}: expected a whole number of at least 1")
        if self.share not in (None, 1, 2, 3):
            raise StrongTicketError(f"share={self.share!r}: expected 1, 2, 3 or None")
        if self.axis not in (None, 0, 1) or isinstance(self.axis, bool):
            raise StrongTicketError(f"axis={self.axis!r}: expected 0, 1 or None")
        rows = self.apart
        if not isinstance(rows, list | tuple) or not all(type(row) is int and row >= 0 for row in rows):
            raise StrongTicketError("apart must be a list of row numbers")
        if not all(row < after for row, after in pairwise(rows)) or (rows and self.paper):
            raise StrongTicketError("apart must be ascending, and empty with the paper's source")
        object.__setattr__(self, "apart", tuple(rows))

    def to_json(self) -> dict[str, Any]:
        """As a ticket's settings have it: axis and apart only where they are given."""
        given = {name: value for name, value in asdict(self).items() if name not in ("axis", "apart")}
        if self.axis is not None:
            given["axis"] = self.axis
        return given | ({"apart": list(self.apart)} if self.apart else {})

    def transposed(self, rows: int, columns: int) -> bool:
        """Has the second axis of such a matrix the structure?"""
        return rows > columns if self.axis is None else self.axis == 1

    @property
    def rows_sharing(self) -> int:
        """share, or what is worth its time for these units."""
        return self.share or (3 if self.units <= 5.5 else 2 if self.units <= 10 else 1)


@dataclass(frozen=True)
class Piece:
    """Rows start..stop of a matrix's side with the structure, all `columns` of the other, and their units.

    transposed: that side is the matrix's second axis; share: rows that share units, 0 for the paper's source
    """

    name: str
    start: int
    stop: int
    columns: int
    units: int
    transposed: bool = False
    share: int = 0

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
    >>> [(piece.start, piece.stop) for piece in cut("w", 20, 100, Layout(12, apart=(7,)))]
    [(0, 7), (7, 8), (8, 20)]
    """
    transposed = layout.transposed(rows, columns)
    side, other = (columns, rows) if transposed else (rows, columns)
    if layout.apart and layout.apart[-1] >= side:
        raise StrongTicketError(f"row {layout.apart[-1]} is to be apart, but the matrix has {side} rows")
    low, high = PAPER_ROWS if layout.paper else ROWS
    height = max(low, min(high, layout.problems // other))
    pieces: list[Piece] = []
    for start, stop in _parts(side, height, layout.apart):
        units, share = layout.units, 0 if layout.paper else layout.rows_sharing
        if layout.paper and side == 1:  # a single row cannot choose its units: it gets more of them
            units = min(2 * layout.units, MAX_EXACT)
        elif not layout.paper and stop - start <= FEW:
            units, share = FEW_UNITS, 1
        at, hidden = f"{name}.{len(pieces)}", round(units * (stop - start))
        pieces.append(Piece(at, start, stop, other, hidden, transposed, share))
    return pieces


def _parts(side: int, height: int, apart: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(start, stop) of each piece: rows that are apart, and what lies between them in equal parts."""
    edges = [0, *(edge for row in apart for edge in (row, row + 1)), side]
    for first, last in pairwise(edges):
        count = -(-(last - first) // height)
        for i in range(count):
            yield first + (last - first) * i // count, first + (last - first) * (i + 1) // count
