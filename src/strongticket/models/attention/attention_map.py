"""An attention layer as products: W_QK of every head (with RoPE, two per frequency), W_VO, and its biases."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.models.attention.products import ProductAttention, Shape

Array = np.ndarray


class Product(NamedTuple):
    """A matrix (rows, columns) that attention is made of."""

    name: str
    rows: int
    columns: int


Frequency = tuple[Product, Product | None, Product | None]  # of tokens, the query's bias, the key's bias


@dataclass(frozen=True)
class Projections:
    """Projections of all heads, float64; the query has the logits' scale inside.

    The last row of queries and keys is that of the constant coordinate if softmax sees their bias.
    """

    query: Float64[Array, "heads query_dim head_dim"]
    key: Float64[Array, "kv_heads key_dim head_dim"]
    value: Float64[Array, "kv_heads value_dim value_head_dim"]
    output: Float64[Array, "heads value_head_dim dim_out"]
    value_bias: Float64[Array, "kv_heads value_head_dim"]
    output_bias: Float64[Array, " dim_out"]


@dataclass(frozen=True)
class AttentionMap:
    """Where the matrices of one attention layer are, and what they are as products.

    Attributes:
        path: of the module; also the first part of its products' names.
        layer: its number, also in transformers' cache.
        shape: its sizes.
        linears: paths of the linear layers of queries, keys, values and output; the first three may be fused in one.
        reads: path of the norm whose output it reads.
        products_class: the family's ProductAttention; None for families that only certificates are made for.
    """

    path: str
    layer: int
    shape: Shape
    linears: tuple[str, ...]
    reads: str
    products_class: type[ProductAttention] | None = None

    def covers(self, parameter: str) -> bool:
        """Whether it replaces the parameter of that name."""
        return parameter.startswith(f"{self.path}.")

    def products(self) -> list[Product]:
        """All of them: tokens with tokens at every frequency, biases, values with outputs."""
        every = [p for head in self.logits() for frequency in head for p in frequency if p]
        return every + self.values() + ([self.bias()] if self.shape.output_bias else [])

    def logits(self) -> list[list[Frequency]]:
        """Per key head, per frequency: products of tokens with tokens, of the query's bias, of the key's."""
        s = self.shape
        columns = s.group * (2 if s.pairs else 1)

        def at(g: int, f: int) -> Frequency:
            end = f"_{f}_{g}"
            return (
                Product(f"{self.path}.query_key{end}", s.dim, columns * s.dim),
                Product(f"{self.path}.query_bias{end}", s.dim, columns) if s.query_bias else None,
                Product(f"{self.path}.key_bias{end}", 1, columns * (s.dim + s.query_bias))
                if s.key_bias
                else None,
            )

        return [[at(g, f) for f in range(max(s.pairs, 1))] for g in range(s.kv_heads)]

    def values(self) -> list[Product]:
        """W_VO of the heads of each key head, side by side."""
        s = self.shape
        return [Product(f"{self.path}.value_output_{g}", s.dim, s.group * s.dim) for g in range(s.kv_heads)]

    def bias(self) -> Product:
        """What is added to the output."""
        return Product(f"{self.path}.output_bias", 1, self.shape.dim)

    def query_heads(self) -> list[tuple[list[Frequency], int]]:
        """Of each query head the products of its key head's logits, and its number in the group."""
        return [(head, j) for head in self.logits() for j in range(self.shape.group)]

    def read(self, model: nn.Module) -> Projections:
        """The projections of a model."""
        s, scaling = self.shape, model.get_submodule(self.path).scaling
        *linears, (output, output_bias) = (linear_weights(model.get_submodule(path)) for path in self.linears)
        if len(linears) == 1:
            linears = list(zip(*(np.split(each, 3, axis=-1) for each in linears[0]), strict=True))

        def heads(number: int, count: int, constant: bool, scale: float = 1.0) -> np.ndarray:
            weight, bias = (each * scale for each in linears[number])
            matrices = weight.T.reshape(count, -1, len(weight)).transpose(0, 2, 1)
            return np.concatenate([matrices, bias.reshape(count, 1, -1)], 1) if constant else matrices

        return Projections(
            heads(0, s.heads, s.query_bias, scaling),  # type: ignore[arg-type]
            heads(1, s.kv_heads, s.key_bias),
            heads(2, s.kv_heads, False),
            output.reshape(s.heads, -1, s.dim),
            linears[2][1].reshape(s.kv_heads, -1),
            output_bias,
        )

    def targets(self, model: nn.Module) -> Iterator[tuple[Product, Array]]:
        """(product, (rows, columns)) one at a time, in the order of `products`."""
        s, p = self.shape, self.read(model)
        for g, head in enumerate(self.logits()):
            queries = p.query[g * s.group : (g + 1) * s.group]
            for f, (tokens, query_bias, key_bias) in enumerate(head):
                whole = logit_matrix(queries, p.key[g], f, s.pairs)
                yield tokens, whole[: s.dim, ..., : s.dim].reshape(tokens.rows, tokens.columns)
                if query_bias:
                    yield query_bias, whole[: s.dim, ..., -1].reshape(query_bias.rows, query_bias.columns)
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
            bias = p.output_bias + np.einsum("hk,hko->o", p.value_bias.repeat(s.group, 0), p.output)
            yield self.bias(), bias[None]

    def install(self, model: nn.Module) -> None:
        """Put an attention of products in its place in the model; its numbers are zero."""
        assert self.products_class is not None
        shapes = {p.name.removeprefix(f"{self.path}."): (p.rows, p.columns) for p in self.products()}
        model.set_submodule(self.path, self.products_class(self.shape, shapes, self.layer))


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
        logits: np.ndarray = np.einsum("kd,gqd->kgq", key, queries)
        return logits[:, :, None]
    q1, q2 = queries[..., frequency], queries[..., frequency + pairs]
    k1, k2 = key[:, frequency], key[:, frequency + pairs]
    cosine = np.einsum("k,gq->kgq", k1, q1) + np.einsum("k,gq->kgq", k2, q2)
    sine = np.einsum("k,gq->kgq", k2, q1) - np.einsum("k,gq->kgq", k1, q2)
    return np.stack([cosine, -sine], 2)


def linear_weights(module: Any) -> tuple[Float64[Array, "in out"], Float64[Array, " out"]]:
    """Weight and bias of nn.Linear or transformers' Conv1D; a bias that is not there is zeros."""
    weight = array(module.weight)
    if type(module).__name__ != "Conv1D":
        weight = weight.T
    return weight, np.zeros(weight.shape[1]) if module.bias is None else array(module.bias)


def array(tensor: Tensor) -> Float64[Array, "..."]:
    """The numbers of a tensor."""
    return tensor.detach().double().cpu().numpy()


def refuse(config: Any, **wrong: Any) -> None:
    """Raise if an option has the value given: `refuse(config, add_cross_attention=True)`."""
    for name, value in wrong.items():
        if getattr(config, name, None) == value:
            raise unsupported(f"{config.model_type} with {name}={value!r}")


def unsupported(model: str) -> StrongTicketError:
    """The error for a model, described in words, whose attention is not known as products."""
    return StrongTicketError(
        f"the attention of {model} is not known as products of its matrices",
        hint="Use attention='linear', which works for any model.",
    )


def body_of(model: nn.Module, *names: str) -> str:
    """Where the body of the model is: under one of the names in one with a head, the model itself otherwise."""
    return next((f"{name}." for name in names if hasattr(model, name)), "")


def within(path: str, *names: str) -> tuple[str, ...]:
    """Paths of parts of the module there."""
    return tuple(f"{path}.{name}" for name in names)
