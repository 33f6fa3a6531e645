"""What a family is made of: linear maps, tables, vectors and attention layers, each of them products.

A map knows three things: the products it needs (from sizes alone), their targets (from a trained model) and the
module that uses them. `read` of a map is given the model and returns float64 arrays with norms folded in.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.pretrained.attention import Logits, Shape, SourceAttention
from strongticket.pretrained.modules import Matrix, SourceLinear, SourceNorm, SourcePatches, SourceTable
from strongticket.pretrained.products import Product

Array = np.ndarray
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
    """y = W x + b; norm: path of the norm before it, folded in; nonnegative: x has passed a ReLU."""

    dim_in: int
    dim_out: int
    bias: bool
    norm: str | None = None
    nonnegative: bool = False
    drop: tuple[str, ...] = ()  # parameters elsewhere that are this map's own, such as a tied bias

    def covers(self) -> tuple[str, ...]:
        return (self.path, *self.drop, *([self.norm] if self.norm else []))

    @property
    def weight(self) -> Product:
        return Product(f"{self.name}.weight", self.dim_in, self.dim_out, signed=not self.nonnegative)

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


@dataclass(frozen=True)
class Projections:
    """Of all heads: query (heads, query_dim, head_dim) with the logits' scale inside, key and value (kv_heads, …),
    output (heads, head_dim, dim_out); biases (heads, head_dim) and (dim_out,).
    """

    query: Float64[Array, "heads query_dim head_dim"]
    key: Float64[Array, "kv_heads key_dim head_dim"]
    value: Float64[Array, "kv_heads value_dim value_head_dim"]
    output: Float64[Array, "heads value_head_dim dim_out"]
    query_bias: Float64[Array, "heads head_dim"] | None = None
    key_bias: Float64[Array, "kv_heads head_dim"] | None = None
    value_bias: Float64[Array, "kv_heads value_head_dim"] | None = None
    output_bias: Float64[Array, " dim_out"] | None = None


@dataclass(frozen=True)
class AttentionMap(Map):
    """read: the trained projections; slot: the family's SourceAttention; norm: path of the norm before it, folded
    in; reads: or of the norm whose gain and shift it reads; after: paths of projections that the family applies to
    the slot's output, now done; options: of the slot.
    """

    shape: Shape
    read: Callable[[nn.Module], Projections]
    slot: Callable[..., SourceAttention]
    norm: str | None = None
    reads: str | None = None
    after: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    projections: tuple[LinearMap, ...] = ()  # the same layer as linear maps, for attention="projections"

    def covers(self) -> tuple[str, ...]:
        return (self.path, *self.after, *([self.norm] if self.norm else []))

    def products(self) -> list[Product]:
        every = [p for head in self.logits() for frequency in head for p in frequency if p]
        return every + self.values() + ([self.bias()] if self.shape.output_bias else [])

    def logits(self) -> list[list[tuple[Product, Product | None, Product | None]]]:
        """Per key head, per frequency: products of tokens with tokens, of the query's bias, of the key's."""
        s = self.shape
        columns = s.group * (2 if s.pairs else 1)

        def at(name: str) -> tuple[Product, Product | None, Product | None]:
            return (
                Product(f"{name}.tokens", s.key_dim, columns * s.query_dim),
                Product(f"{name}.query_bias", s.key_dim, columns) if s.query_bias else None,
                Product(f"{name}.key_bias", 1, columns * (s.query_dim + s.query_bias))
                if s.key_bias
                else None,
            )

        names = [[f".{f}" for f in range(s.pairs)] or [""] for _ in range(s.kv_heads)]
        return [[at(f"{self.name}.query_key.{g}{f}") for f in each] for g, each in enumerate(names)]

    def values(self) -> list[Product]:
        s = self.shape
        return [
            Product(f"{self.name}.value_output.{g}", s.value_dim, s.group * s.dim_out)
            for g in range(s.kv_heads)
        ]

    def bias(self) -> Product:
        return Product(f"{self.name}.output.bias", 1, self.shape.dim_out)

    def targets(self, model: nn.Module) -> Targets:
        s, p = self.shape, self.read(model)
        # Rows and columns of the constant coordinate come last.
        query = p.query if p.query_bias is None else np.concatenate([p.query, p.query_bias[:, None]], 1)
        key = p.key if p.key_bias is None else np.concatenate([p.key, p.key_bias[:, None]], 1)
        for g, head in enumerate(self.logits()):
            queries = query[g * s.group : (g + 1) * s.group]
            for f, (tokens, query_bias, key_bias) in enumerate(head):
                whole = logit_matrix(queries, key[g], f, s.pairs)
                yield tokens, whole[: s.key_dim, ..., : s.query_dim].reshape(tokens.rows, tokens.columns)
                if query_bias:
                    yield query_bias, whole[: s.key_dim, ..., -1].reshape(query_bias.rows, query_bias.columns)
                if key_bias:
                    yield key_bias, whole[-1].reshape(1, key_bias.columns)
        for g, product in enumerate(self.values()):
            outputs = p.output[g * s.group : (g + 1) * s.group]
            yield (
                product,
                np.einsum("vk,gko->vgo", p.value[g], outputs).reshape(product.rows, product.columns),
            )
        if s.output_bias:
            # Softmax rows sum to one: the values' bias reaches the output unchanged.
            bias = np.zeros(s.dim_out) if p.output_bias is None else p.output_bias.copy()
            if p.value_bias is not None:
                bias += np.einsum("hk,hko->o", p.value_bias.repeat(s.group, 0), p.output)
            yield self.bias(), bias[None]

    def install(self, model: nn.Module, make: Make) -> nn.Module:
        # From heads of frequencies to frequencies of heads.
        frequencies = [
            Logits(self.shape, *([make(p) for p in kind if p] for kind in zip(*heads, strict=True)))
            for heads in zip(*self.logits(), strict=True)
        ]
        values = [make(product) for product in self.values()]
        bias = make(self.bias()) if self.shape.output_bias else None
        neutralise(model, self.norm)
        for path in self.after:
            put(model, path, nn.Identity())
        return put(model, self.path, self.slot(self.shape, frequencies, values, bias, **self.options))


def logit_matrix(
    queries: Float64[Array, "group query_dim head_dim"],
    key: Float64[Array, "key_dim head_dim"],
    frequency: int,
    pairs: int,
) -> Float64[Array, "key_dim group halves query_dim"]:
    """What the logits of a key head are made of.

    With RoPE, at positions m and n, frequency f gives cos((m − n)θ)·xᵀA y + sin((m − n)θ)·xᵀB y with
    A = q₁k₁ᵀ + q₂k₂ᵀ and B = q₁k₂ᵀ − q₂k₁ᵀ. A pair whose key keeps k₁ alone gives q₁k₁ cos − q₂k₁ sin, so the
    halves are A and −B.
    """
    if not pairs:
        return np.einsum("kd,gqd->kgq", key, queries)[:, :, None]
    q1, q2 = queries[..., frequency], queries[..., frequency + pairs]
    k1, k2 = key[:, frequency], key[:, frequency + pairs]
    cosine = np.einsum("k,gq->kgq", k1, q1) + np.einsum("k,gq->kgq", k2, q2)
    sine = np.einsum("k,gq->kgq", k2, q1) - np.einsum("k,gq->kgq", k1, q2)
    return np.stack([cosine, -sine], 2)


def heads_of(weight: Array, heads: int) -> Float64[Array, "heads dim_in head_dim"]:
    """(heads·head_dim, dim_in) as torch stores it -> one matrix a head, rows of x first."""
    return weight.reshape(heads, -1, weight.shape[1]).transpose(0, 2, 1)


def linear_weights(module: nn.Module) -> tuple[Float64[Array, "in out"], Float64[Array, " out"] | None]:
    """Of nn.Linear, nn.Conv2d (patches flattened) or transformers' Conv1D."""
    weight = array(module.weight)  # type: ignore[arg-type]
    if type(module).__name__ != "Conv1D":
        weight = weight.reshape(len(weight), -1).T
    return weight, None if module.bias is None else array(module.bias)  # type: ignore[arg-type]


def norm_weights(model: nn.Module, path: str | None) -> tuple[Array, Array | None]:
    """(gain, shift) of a norm."""
    norm: Any = None if path is None else model.get_submodule(path)
    if norm is None or norm.weight is None:
        return np.ones(1), None
    shift = getattr(norm, "bias", None)
    return array(norm.weight), None if shift is None else array(shift)


def fold(weight: Array, bias: Array | None, model: nn.Module, norm: str | None) -> tuple[Array, Array | None]:
    """W(g⊙z + s) + b = (W g)z + (W s + b), for W (…, in, out) and b (…, out)."""
    gain, shift = norm_weights(model, norm)
    if shift is not None:
        moved = np.einsum("i,...io->...o", shift, weight)
        bias = moved if bias is None else bias + moved
    return weight * gain[:, None], bias


def neutralise(model: nn.Module, path: str | None) -> None:
    """A norm whose gain and shift were folded: 1 and 0."""
    norm: Any = None if path is None else model.get_submodule(path)
    if norm is not None and norm.weight is not None:
        nn.init.ones_(norm.weight)
        if getattr(norm, "bias", None) is not None:
            nn.init.zeros_(norm.bias)


def array(tensor: torch.Tensor) -> Float64[Array, "..."]:
    return tensor.detach().double().cpu().numpy()


def find(model: nn.Module, path: str) -> Any:
    """The module or parameter there."""
    found: Any = model
    for name in path.split(".") if path else ():
        if not hasattr(found, name):
            raise StrongTicketError(
                f"{type(model).__name__} has no {path!r}: this version of transformers lays it out differently; "
                "install transformers 5"
            )
        found = getattr(found, name)
    return found


def put(model: nn.Module, path: str, module: Any) -> nn.Module:
    if not path:
        return module
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, module)
    return model


def linear(
    model: nn.Module,
    name: str,
    part: str,
    layer: int | None,
    path: str,
    *,
    norm: str | None = None,
    nonnegative: bool = False,
) -> LinearMap:
    """The map of the linear module at `path`, its sizes read from it."""
    module = find(model, path)
    out_first = type(module).__name__ != "Conv1D"
    dim_out, dim_in = module.weight.shape if out_first else module.weight.shape[::-1]
    bias = module.bias is not None or has_shift(model, norm)
    return LinearMap(name, part, layer, path, dim_in, dim_out, bias, norm, nonnegative)


def has_shift(model: nn.Module, path: str | None) -> bool:
    """Does the norm there have a shift?"""
    return path is not None and getattr(find(model, path), "bias", None) is not None


def projections(model: nn.Module, layer: int, paths: dict[str, str | None]) -> tuple[LinearMap, ...]:
    """An attention layer as linear maps: path of each projection -> the norm before it, if one is folded in."""
    return tuple(
        linear(
            model, f"layers.{layer}.attention.{path.rpartition('.')[2]}", "attention", layer, path, norm=norm
        )
        for path, norm in paths.items()
    )
