"""What an adapter gives, and how adapters read and check a model. Arrays are float64 with the rows of x first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.attention.attention_map import AttentionMap, Projections
from strongticket.models.attention.products import Shape

Array = np.ndarray


@dataclass(frozen=True)
class Family:
    """classes: names of the model classes; check: refuses options of a config by name; attention: the layers."""

    classes: tuple[str, ...]
    check: Callable[[Any], None]
    attention: Callable[[nn.Module], list[AttentionMap]]


def refuse(config: Any, **wrong: Any) -> None:
    """Raise if an option has one of the values given: `refuse(config, add_cross_attention=True)`."""
    for name, value in wrong.items():
        if getattr(config, name, None) == value:
            raise unsupported(f"{config.model_type} with {name}={value!r}")


def unsupported(model: str) -> StrongTicketError:
    """The error for a model, described in words, whose attention is not known as products."""
    return StrongTicketError(
        f"the attention of {model} is not known as products of its matrices",
        hint="Use attention='linear', which works for any model.",
    )


def prefix_of(model: nn.Module, name: str) -> str:
    """Where the body of the model is: under `name` in one with a head, the model itself otherwise."""
    return f"{name}." if hasattr(model, name) else ""


def heads_of(weight: Array, heads: int) -> Float64[Array, "heads dim_in head_dim"]:
    """(heads·head_dim, dim_in) as torch stores it -> one matrix per head, rows of x first."""
    return weight.reshape(heads, -1, weight.shape[1]).transpose(0, 2, 1)


def linear_weights(module: nn.Module) -> tuple[Float64[Array, "in out"], Float64[Array, " out"] | None]:
    """Weight and bias of nn.Linear or transformers' Conv1D."""
    weight = array(module.weight)  # type: ignore[arg-type]
    if type(module).__name__ != "Conv1D":
        weight = weight.T
    return weight, None if module.bias is None else array(module.bias)  # type: ignore[arg-type]


def projections(shape: Shape, linears: tuple[nn.Module, ...], scaling: float) -> Projections:
    """Of the linear layers of query, key, value and output; scaling: of the logits."""
    counts = (shape.heads, shape.kv_heads, shape.kv_heads)
    weights, biases = [], []
    for linear, heads, scale in zip(linears, counts, (scaling, 1.0, 1.0), strict=False):
        weight, bias = linear_weights(linear)
        weights.append(heads_of(weight.T * scale, heads))
        biases.append(None if bias is None else bias.reshape(heads, -1) * scale)
    output, output_bias = linear_weights(linears[3])
    query, key, value = weights
    query_bias, key_bias, value_bias = biases
    return Projections(
        query,
        key,
        value,
        output.reshape(shape.heads, -1, shape.dim),
        query_bias,
        key_bias if shape.key_bias else None,
        value_bias,
        output_bias,
    )


def norm_weights(model: nn.Module, path: str) -> tuple[Array, Array | None]:
    """(gain, shift) of a norm."""
    norm: Any = model.get_submodule(path)
    shift = getattr(norm, "bias", None)
    return array(norm.weight), None if shift is None else array(shift)


def array(tensor: torch.Tensor) -> Float64[Array, "..."]:
    """The numbers of a tensor."""
    return tensor.detach().double().cpu().numpy()


def find(model: nn.Module, path: str) -> Any:
    """The module or parameter there."""
    found: Any = model
    for name in path.split("."):
        if not hasattr(found, name):
            raise StrongTicketError(
                f"{type(model).__name__} has no {path!r}: this version of transformers lays it out differently",
                hint="Install transformers 5.",
            )
        found = getattr(found, name)
    return found
