"""The modules that take the place of trained ones, merged or faithful.

A matrix is a sum of blocks: x's coordinates -> hidden units -> columns. Faithful blocks are the real pruned
random matrices, drawn anew at each use, one block in memory at a time. Merged, a product is one block whose
hidden units are the coordinates themselves and whose outer matrix is the folded product. All else is shared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from strongticket.pretrained.pieces import Piece
from strongticket.seeds import Law, draw
from strongticket.ticket import masks


class Block(NamedTuple):
    """inner: (coordinates, units), None if the coordinates are the units; outer: (units, columns)."""

    coordinates: slice
    inner: Tensor | None
    outer: Tensor

    def hidden(self, x: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch units"]:
        h = x[..., self.coordinates]
        return h if self.inner is None else h @ self.inner


class Matrix(nn.Module):
    """A product in use; blocks(x) come in x's dtype, on its device."""

    weight: Tensor  # its dtype and device are the module's

    def blocks(self, x: Tensor) -> Iterator[Block]:
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch columns"]:
        y: Any = 0
        for block in self.blocks(x):
            y = y + block.hidden(x) @ block.outer
        return y

    def constant(self) -> Float[Tensor, " columns"]:
        """What a product of one row gives for the constant 1."""
        return self(self.weight.new_ones(1))


class Merged(Matrix):
    """weight: the product; of stacked products the heads in front."""

    def __init__(self, weight: Float[Tensor, "*heads rows columns"]) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def blocks(self, x: Tensor) -> Iterator[Block]:
        yield Block(slice(None), None, self.weight.to(x))


@dataclass(frozen=True)
class Recipe:
    """What draws a piece's tensors again."""

    seed: int
    piece: Piece
    laws: dict[str, Law]


class Faithful(Matrix):
    """The pruned random matrices themselves; only packed masks are held."""

    def __init__(self, recipes: list[Recipe], kept: list[dict[str, np.ndarray]], columns: int) -> None:
        super().__init__()
        self.recipes, self.columns = recipes, columns
        self.register_buffer("weight", torch.zeros(0))
        for i, tensors in enumerate(kept):
            for name, mask in zip(("inner", "outer"), tensors.values(), strict=True):
                self.register_buffer(f"{name}{i}", torch.from_numpy(masks.pack(mask)))

    def blocks(self, x: Tensor) -> Iterator[Block]:
        for i, recipe in enumerate(self.recipes):
            piece, pruned = recipe.piece, []
            for name, (tensor, shape) in zip(("inner", "outer"), piece.shapes.items(), strict=True):
                mask = masks.unpack(getattr(self, f"{name}{i}").cpu().numpy(), shape)
                weights = draw(recipe.seed, tensor, shape, recipe.laws[tensor], mask=mask)
                pruned.append(torch.from_numpy(weights).to(x))
            left, right = pruned
            if piece.transposed:  # its rows are columns of the product: the units add to these alone
                outer = right.new_zeros(piece.units, self.columns)
                outer[:, piece.start : piece.stop] = left.T
                yield Block(slice(None), right, outer)
            else:
                yield Block(slice(piece.start, piece.stop), left, right.T)


class SourceLinear(nn.Module):
    """Two random linear layers in the place of one linear map (Lemma 4)."""

    def __init__(self, product: Matrix, bias: Matrix | None) -> None:
        super().__init__()
        self.product, self.bias_product = product, bias

    @property
    def weight(self) -> Tensor:
        return self.product.weight  # some models look at its dtype

    def forward(self, x: Float[Tensor, "*batch dim_in"]) -> Float[Tensor, "*batch dim_out"]:
        y = self.product(x)
        return y if self.bias_product is None else y + self.bias_product.constant()


class SourcePatches(nn.Module):
    """The same for a convolution whose patches do not overlap."""

    def __init__(self, linear: SourceLinear, patch: tuple[int, int]) -> None:
        super().__init__()
        self.linear, self.patch = linear, patch

    @property
    def weight(self) -> Tensor:
        return self.linear.weight

    def forward(
        self, x: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch dim rows columns"]:
        height, width = (size // patch for size, patch in zip(x.shape[-2:], self.patch, strict=True))
        x = x[..., : height * self.patch[0], : width * self.patch[1]]
        patches = nn.functional.unfold(x, self.patch, stride=self.patch).transpose(1, 2)
        return self.linear(patches).transpose(1, 2).unflatten(2, (height, width))


class SourceTable(nn.Module):
    """A random table of wide vectors, and a random matrix after it, for an embedding: a one-hot vector times a
    matrix needs no ReLU (Lemma 4).
    """

    def __init__(self, product: Matrix, dim: int) -> None:
        super().__init__()
        self.product, self.dim = product, dim

    @property
    def weight(self) -> Tensor:
        return self.product.weight

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dim"]:
        out = self.weight.new_zeros(*ids.shape, self.dim)
        for block in self.product.blocks(self.weight):
            h = nn.functional.embedding(ids, block.outer.T)
            out[..., block.coordinates] += h if block.inner is None else h @ block.inner.T
        return out


class SourceNorm(nn.Module):
    """A norm without trained numbers, then gain and shift as products of the constant 1."""

    def __init__(self, norm: nn.Module, gain: Matrix, shift: Matrix | None) -> None:
        super().__init__()
        self.norm, self.gain, self.shift = norm, gain, shift
        self.eps = getattr(norm, "eps", None)  # torch's encoder layer looks at it

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        y = self.norm(x) * self.gain.constant()
        return y if self.shift is None else y + self.shift.constant()
