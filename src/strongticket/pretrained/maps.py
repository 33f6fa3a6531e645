"""What a family is made of: linear maps, tables and norms, each of them products; attention is in `attention_map`.

A map knows three things: the products it needs (from sizes alone), their targets (from a trained model) and the
module that uses them. `read` of a map is given the model and returns float64 arrays with norms folded in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from strongticket.pretrained.modules import Matrix, SourceLinear, SourceNorm, SourcePatches, SourceTable
from strongticket.pretrained.pieces import Layout, Piece, cut
from strongticket.pretrained.surgery import (
    array,
    find,
    fold,
    has_shift,
    linear_weights,
    neutralise,
    norm_weights,
    put,
)

Array = np.ndarray


@dataclass(frozen=True)
class Product:
    """A matrix (rows, columns) that is made of pruned random ones."""

    name: str
    rows: int
    columns: int

    @property
    def problems(self) -> int:
        return self.rows * self.columns

    def pieces(self, layout: Layout) -> list[Piece]:
        return cut(self.name, self.rows, self.columns, layout)


Make = Callable[[Product], Matrix]
Targets = Iterator[tuple[Product, Array]]


@dataclass(frozen=True)
class Map:
    """name: unique; part: what --parts calls it; layer: its number, None outside the layers; path: the module."""

    name: str
    part: str
    layer: int | None
    path: str

    def products(self) -> list[Product]:
        raise NotImplementedError

    def targets(self, model: nn.Module) -> Targets:
        """(product, (rows, columns)) one at a time, in the order of `products`."""
        raise NotImplementedError

    def covers(self) -> tuple[str, ...]:
        """Paths whose parameters it replaces or makes trivial."""
        return (self.path,)

    def install(self, model: nn.Module, make: Make) -> nn.Module:
        """The model with its new module; another object only if the map is the whole model."""
        raise NotImplementedError


@dataclass(frozen=True)
class LinearMap(Map):
    """y = W x + b; norm: path of the norm before it, folded in."""

    dim_in: int
    dim_out: int
    bias: bool
    norm: str | None = None
    drop: tuple[str, ...] = ()  # parameters elsewhere that are this map's own, such as a tied bias

    def covers(self) -> tuple[str, ...]:
        return (self.path, *self.drop, *([self.norm] if self.norm else []))

    @property
    def weight(self) -> Product:
        return Product(f"{self.name}.weight", self.dim_in, self.dim_out)

    @property
    def constant(self) -> Product | None:
        return Product(f"{self.name}.bias", 1, self.dim_out) if self.bias else None

    def products(self) -> list[Product]:
        return [self.weight, self.constant] if self.constant else [self.weight]

    def targets(self, model: nn.Module) -> Targets:
        weight, bias = linear_weights(model.get_submodule(self.path))
        weight, bias = fold(weight, bias, model, self.norm)
        yield self.weight, weight
        if self.constant:
            yield self.constant, np.zeros((1, self.dim_out)) if bias is None else bias[None]

    def module(self, make: Make) -> SourceLinear:
        return SourceLinear(make(self.weight), make(self.constant) if self.constant else None)

    def install(self, model: nn.Module, make: Make) -> nn.Module:
        neutralise(model, self.norm)
        for path in self.drop:
            put(model, path, None)
        return put(model, self.path, self.module(make))


@dataclass(frozen=True)
class PatchMap(LinearMap):
    """A convolution whose patches do not overlap: a linear map of each patch."""

    patch: tuple[int, int] = (1, 1)

    def install(self, model: nn.Module, make: Make) -> nn.Module:
        return put(model, self.path, SourcePatches(self.module(make), self.patch))


@dataclass(frozen=True)
class TableMap(Map):
    """An embedding, or a parameter (…, entries, dim) with one vector a place."""

    entries: int
    dim: int

    def products(self) -> list[Product]:
        return [Product(self.name, self.dim, self.entries)]

    def targets(self, model: nn.Module) -> Targets:
        found = find(model, self.path)
        table = array(getattr(found, "weight", found))
        yield self.products()[0], table.reshape(self.entries, self.dim).T

    def install(self, model: nn.Module, make: Make) -> nn.Module:
        table = SourceTable(make(self.products()[0]), self.dim)
        found = find(model, self.path)
        if isinstance(found, nn.Module):
            return put(model, self.path, table)
        with torch.no_grad():  # a parameter is not called, so what the product gives is put in its place
            found.copy_(table(torch.arange(self.entries)).reshape(found.shape))
        return model


@dataclass(frozen=True)
class NormMap(Map):
    """Gain and shift of a norm that more than the next map reads: products of the constant 1."""

    dim: int
    shift: bool

    def products(self) -> list[Product]:
        names = ["gain", "shift"] if self.shift else ["gain"]
        return [Product(f"{self.name}.{name}", 1, self.dim) for name in names]

    def targets(self, model: nn.Module) -> Targets:
        for product, vector in zip(self.products(), norm_weights(model, self.path), strict=False):
            assert vector is not None
            yield product, vector[None]

    def install(self, model: nn.Module, make: Make) -> nn.Module:
        neutralise(model, self.path)
        gain, *shift = (make(product) for product in self.products())
        norm = model.get_submodule(self.path)
        return put(model, self.path, SourceNorm(norm, gain, shift[0] if shift else None))


def linear(
    model: nn.Module,
    name: str,
    part: str,
    layer: int | None,
    path: str,
    *,
    norm: str | None = None,
) -> LinearMap:
    """The map of the linear module at `path`, its sizes read from it."""
    module = find(model, path)
    out_first = type(module).__name__ != "Conv1D"
    dim_out, dim_in = module.weight.shape if out_first else module.weight.shape[::-1]
    bias = module.bias is not None or has_shift(model, norm)
    return LinearMap(name, part, layer, path, dim_in, dim_out, bias, norm)


def projections(model: nn.Module, layer: int, paths: dict[str, str | None]) -> tuple[LinearMap, ...]:
    """An attention layer as linear maps: path of each projection -> the norm before it, if one is folded in."""
    return tuple(
        linear(
            model, f"layers.{layer}.attention.{path.rpartition('.')[2]}", "attention", layer, path, norm=norm
        )
        for path, norm in paths.items()
    )
