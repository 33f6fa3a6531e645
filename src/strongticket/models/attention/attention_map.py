"""An attention layer as products: W_QK of every head (with RoPE, two per frequency), W_VO, and its biases."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.models.attention.products import ProductAttention, Shape

Array = np.ndarray


@dataclass(frozen=True)
class Projections:
    """Projections of all heads, float64; the query has the logits' scale inside.

    The last row of queries and keys is that of the constant coordinate if softmax sees their bias. A key's bias that it
    does not see changes all logits of a query alike; key_bias is 0 otherwise.
    """

    query: Float64[Array, "heads query_dim head_dim"]
    key: Float64[Array, "kv_heads key_dim head_dim"]
    value: Float64[Array, "kv_heads value_dim value_head_dim"]
    output: Float64[Array, "heads value_head_dim dim_out"]
    key_bias: Float64[Array, "kv_heads head_dim"]
    value_bias: Float64[Array, "kv_heads value_head_dim"]
    output_bias: Float64[Array, " dim_out"]


@dataclass(frozen=True)
class AttentionMap:
    """Where the matrices of one attention layer are, and what they are as products.

    Attributes:
        path: of the module, in which its products are, too.
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

    def products(self) -> dict[str, tuple[int, int]]:
        """Name -> (rows, columns) of every matrix that is made in its place."""
        return {f"{self.path}.{name}": sizes for name, sizes in self.shape.products().items()}

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
            linears[1][1].reshape(s.kv_heads, -1) * (not s.key_bias),
            linears[2][1].reshape(s.kv_heads, -1),
            output_bias,
        )

    def targets(self, model: nn.Module) -> Iterator[tuple[str, Array]]:
        """(name in the module, product) one at a time, in the order of `products`."""
        s, p = self.shape, self.read(model)
        for g in range(s.kv_heads):
            queries = p.query[g * s.group : (g + 1) * s.group]
            for f in range(s.frequencies):
                whole = logit_matrix(queries, p.key[g], f, s.pairs)
                yield f"query_key_{f}_{g}", whole[: s.dim, ..., : s.dim].reshape(s.dim, -1)
                if s.query_bias:
                    yield f"query_bias_{f}_{g}", whole[: s.dim, ..., -1].reshape(s.dim, -1)
                if s.key_bias:
                    yield f"key_bias_{f}_{g}", whole[-1].reshape(1, -1)
        for g in range(s.kv_heads):
            outputs = p.output[g * s.group : (g + 1) * s.group]
            yield f"value_output_{g}", np.einsum("vk,gko->vgo", p.value[g], outputs).reshape(s.dim, -1)
        if s.output_bias:
            # Softmax rows sum to one: the values' bias reaches the output unchanged.
            bias = p.output_bias + np.einsum("hk,hko->o", p.value_bias.repeat(s.group, 0), p.output)
            yield "output_bias", bias[None]

    def install(self, model: nn.Module) -> None:
        """Put an attention of products in its place in the model; its numbers are zero."""
        assert self.products_class is not None
        model.set_submodule(self.path, self.products_class(self.shape, self.layer))


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
