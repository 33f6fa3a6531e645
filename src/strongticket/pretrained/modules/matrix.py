"""A matrix of a ticket in use, merged or faithful.

A matrix is a sum of products of two factors: x's coordinates -> hidden units -> columns. Faithful factors are the
real pruned random ones, redrawn at each use, one pair in memory at a time. Merged, a matrix is one pair whose
hidden units are the coordinates themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from strongticket.pretrained.pieces import Piece
from strongticket.seeds import Law, draw
from strongticket.ticket import mask_codec


class FactorPair(NamedTuple):
    """inner: (coordinates, units), None if the coordinates are the units; outer: (units, columns)."""

    coordinates: slice
    inner: Tensor | None
    columns: slice
    outer: Tensor

    def hidden(self, x: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch units"]:
        h = x[..., self.coordinates]
        return h if self.inner is None else h @ self.inner

    def spread(self, columns: int) -> Tensor:
        """outer over all columns of the matrix, zero where the pair has none."""
        if self.outer.shape[-1] == columns:
            return self.outer
        whole = self.outer.new_zeros(len(self.outer), columns)
        whole[:, self.columns] = self.outer
        return whole


class Matrix(nn.Module):
    """rows × columns; factor_pairs(x) have x's dtype, on its device."""

    weight: Tensor  # its dtype and device are the module's
    columns: int

    def factor_pairs(self, x: Tensor) -> Iterator[FactorPair]:
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch columns"]:
        y: Tensor = x.new_zeros(*x.shape[:-1], self.columns)
        for pair in self.factor_pairs(x):
            y[..., pair.columns] += pair.hidden(x) @ pair.outer
        return y

    def constant(self) -> Float[Tensor, " columns"]:
        """What a matrix of one row gives for the constant 1."""
        column: Tensor = self(self.weight.new_ones(1))
        return column


class Merged(Matrix):
    """weight: the folded matrix; of stacked matrices the heads in front."""

    def __init__(self, weight: Float[Tensor, "*heads rows columns"]) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.columns = weight.shape[-1]

    def factor_pairs(self, x: Tensor) -> Iterator[FactorPair]:
        yield FactorPair(slice(None), None, slice(None), self.weight.to(x))


@dataclass(frozen=True)
class PrunedPiece:
    """What draws a piece's tensors again, and the masks that prune them."""

    seed: int
    piece: Piece
    laws: dict[str, Law]
    kept: dict[str, np.ndarray]


class Faithful(Matrix):
    """The pruned random factors themselves; only packed masks are held."""

    def __init__(self, pieces: list[PrunedPiece], rows: int, columns: int) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns
        self.pieces = [replace(piece, kept={}) for piece in pieces]
        self.register_buffer("weight", torch.zeros(0))
        for i, piece in enumerate(pieces):
            for side, mask in zip(("left", "right"), piece.kept.values(), strict=True):
                self.register_buffer(f"{side}{i}", torch.from_numpy(mask_codec.pack(mask)))

    def factor_pairs(self, x: Tensor) -> Iterator[FactorPair]:
        for i, drawn in enumerate(self.pieces):
            piece, pruned = drawn.piece, []
            for side, (name, shape) in zip(("left", "right"), piece.shapes.items(), strict=True):
                mask = mask_codec.unpack(getattr(self, f"{side}{i}").cpu().numpy(), shape)
                pruned.append(
                    torch.from_numpy(draw(drawn.seed, name, shape, drawn.laws[name], mask=mask)).to(x)
                )
            left, right = pruned
            rows, columns = piece.place
            inner, outer = (right, left) if piece.transposed else (left, right)
            yield FactorPair(rows, inner, columns, outer.T)

    def whole(self) -> Float[Tensor, "rows columns"]:
        """The factors multiplied out, one pair at a time."""
        found = self.weight.new_zeros(self.rows, self.columns)
        for pair in self.factor_pairs(self.weight):
            assert pair.inner is not None
            found[pair.coordinates, pair.columns] += pair.inner @ pair.outer
        return found
