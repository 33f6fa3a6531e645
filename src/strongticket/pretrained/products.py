"""What there is to solve: every trained matrix as products of two pruned random ones, cut into pieces.

A product has `rows` coordinates and `columns` numbers a coordinate. Its hidden units are cut into pieces: piece
p serves the coordinates start..stop alone, so it is solved, stored, checked and run without the others. The
weights that would join a piece's units to other coordinates are pruned whatever the target is; they are
neither drawn nor kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT

PROBLEMS = 1 << 20  # subset sums a piece has at most, about: seconds of work, a hundred megabytes
ROWS = (
    16,
    64,
)  # of a piece: with fewer, units have little choice whom to serve; with more, choosing takes long


@dataclass(frozen=True)
class Layout:
    """per_row: hidden units for each row; problems: about how many subset sums a piece has at most."""

    per_row: int = 24
    problems: int = PROBLEMS

    def __post_init__(self) -> None:
        if type(self.per_row) is not int or not 1 <= self.per_row <= MAX_EXACT:
            raise StrongTicketError(
                f"per_row={self.per_row!r}: expected a whole number from 1 to {MAX_EXACT}, hidden units a row"
            )
        if type(self.problems) is not int or self.problems < 1:
            raise StrongTicketError(f"problems={self.problems!r}: expected a whole number of at least 1")


@dataclass(frozen=True)
class Product:
    """signed: a ReLU stands between the two matrices (Lemma 2), so a coordinate has two rows, + and −."""

    name: str
    rows: int
    columns: int
    signed: bool = False

    @property
    def problems(self) -> int:
        return self.rows * self.columns * (2 if self.signed else 1)

    def pieces(self, layout: Layout) -> "Iterator[Piece]":
        """Coordinates shared out evenly."""
        signs = 2 if self.signed else 1
        rows = max(ROWS[0], min(ROWS[1], layout.problems // self.columns))
        count = -(-self.rows * signs // rows)
        edges = [self.rows * i // count for i in range(count + 1)]
        for index, (start, stop) in enumerate(pairwise(edges)):
            rows = (stop - start) * signs
            # A single row cannot choose its units: it gets more of them.
            per_row = layout.per_row if rows > 1 else min(2 * layout.per_row, MAX_EXACT)
            yield Piece(self, index, start, stop, per_row * rows)


@dataclass(frozen=True)
class Piece:
    """Coordinates start..stop of a product and the hidden units that serve them."""

    product: Product
    index: int
    start: int
    stop: int
    units: int

    @property
    def inner(self) -> str:
        return f"{self.product.name}.{self.index}.inner"

    @property
    def outer(self) -> str:
        return f"{self.product.name}.{self.index}.outer"

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """inner: (coordinates, units), each unit keeps one at most; outer: (columns, units)."""
        return {
            self.inner: (self.stop - self.start, self.units),
            self.outer: (self.product.columns, self.units),
        }

    @property
    def problems(self) -> int:
        return (self.stop - self.start) * self.product.columns * (2 if self.product.signed else 1)

    @property
    def weights(self) -> int:
        return sum(prod(shape) for shape in self.shapes.values())
