"""The weights that certificates are made from, and whether target and source fit together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.rounding import (
    Arithmetic,
    AttentionFactors,
    AttentionRounding,
    attention_rounding,
    spectral_norm,
    unit_of,
)

# weight (out, in) applied as W x, bias (out,)
Layer = tuple[Float[np.ndarray, "_ _"], Float[np.ndarray, " _"] | None]


@dataclass(frozen=True)
class AttentionWeights:
    """Merged attention, float64.

    Attributes:
        query_key: W_QK, with 1/√d_K inside.
        value_output: W_VO.
        constant: whether rows and columns end in the constant coordinate that carries biases.
        factors: the four matrices of every head, to count the rounding of merging and of running the source.
    """

    query_key: Float[np.ndarray, "heads rows columns"]
    value_output: Float[np.ndarray, "heads columns dim_out"]
    constant: bool = False
    factors: AttentionFactors | None = None


@dataclass(frozen=True)
class BlockWeights(AttentionWeights):
    """One block: merged self-attention and the feed-forward's layers, which read the stream through `norm` if any."""

    layers: tuple[Layer, ...] = ()
    norm: Normalisation | None = None


@dataclass(frozen=True)
class ReluWeights:
    """The layers of a ReLU network, as they are."""

    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class TransformerWeights:
    """Blocks, and the norm behind the last one."""

    blocks: tuple[BlockWeights, ...]
    norm: Normalisation | None


Weights = AttentionWeights | ReluWeights | TransformerWeights  # a block is an attention with layers


@dataclass(frozen=True)
class MergedPair:
    """Two source layers as up·relu(x) + down·relu(−x) + constant, and units that mix inputs.

    What these add besides has norm at most `rest[0]·‖x‖ + rest[1]`.
    """

    up: Float[np.ndarray, "dim_out dim_in"]
    down: Float[np.ndarray, "dim_out dim_in"]
    constant: Float[np.ndarray, " dim_out"]
    rest: tuple[float, float] = (0.0, 0.0)


def merge_pair(first: Layer, second: Layer) -> MergedPair:
    """Merge two source layers; exact for units that read one input or the constant alone."""
    inner, outer = first[0], second[0]
    inner_bias, mixing = bias_of(first), mixing_units(first)
    up, down, constant = merge_layers(inner[~mixing], inner_bias[~mixing], outer[:, ~mixing], bias_of(second))
    if not mixing.any():
        return MergedPair(up, down, constant)
    # relu(h) = h/2 + |h|/2: the first half is linear, the second is only bounded.
    linear = outer[:, mixing] @ inner[mixing] / 2
    shift = outer[:, mixing] @ inner_bias[mixing] / 2
    gain = spectral_norm(outer[:, mixing]) / 2
    rest = gain * spectral_norm(inner[mixing]), gain * spectral_norm(inner_bias[None, mixing])
    return MergedPair(up + linear, down - linear, constant + shift, rest)


def mixing_units(layer: Layer) -> Bool[np.ndarray, " dim_out"]:
    """Which units of the first layer of a pair read more than one input or the constant."""
    inputs: np.ndarray = np.count_nonzero(layer[0], 1) + (bias_of(layer) != 0)
    return inputs > 1


def merge_layers(inner: Any, inner_bias: Any, outer: Any, outer_bias: Any) -> tuple[Any, Any, Any]:
    """Merge two layers whose units read one input each: up, down and constant of a MergedPair.

    Takes NumPy's arrays or torch's tensors: a network is merged by torch, whose products it runs.
    """
    up, down = outer @ inner.clip(min=0), outer @ (-inner).clip(min=0)
    return up, down, outer @ inner_bias.clip(min=0) + outer_bias


def bias_of(layer: Layer) -> Float[np.ndarray, " dim_out"]:
    """The layer's bias, zeros if it has none."""
    weight, bias = layer
    return np.zeros(len(weight)) if bias is None else bias


def both_roundings(
    target: AttentionWeights, source: AttentionWeights, radius: Real, arithmetic: Arithmetic
) -> AttentionRounding | None:
    """Rounding of running the source and of merging either; None where none is counted."""
    if source.factors is None and unit_of(arithmetic):
        raise StrongTicketError(
            f"the source's attention has no factors: rounding in {arithmetic} needs them",
            hint="Pass weights with factors, or arithmetic='exact'.",
        )
    if source.factors is None or not np.isfinite(radius):
        return None
    constant = source.constant
    rounding = attention_rounding(source.factors, radius, constant=constant, arithmetic=arithmetic)
    if target.factors is not None:
        rounding += attention_rounding(target.factors, radius, constant=constant)
    return rounding


def check_attention(target: AttentionWeights, source: AttentionWeights) -> None:
    """Raise unless all are finite and of fitting shapes, the source's equal to the target's."""
    heads, columns = target.query_key.shape[0], target.query_key.shape[-1]
    _check_array("target's query_key", target.query_key, None, None, None)
    _check_array("target's value_output", target.value_output, heads, columns, None)
    _check_array("source's query_key", source.query_key, *target.query_key.shape)
    _check_array("source's value_output", source.value_output, *target.value_output.shape)
    if target.constant != source.constant:  # a bias more and an input less have the same shapes
        raise StrongTicketError("of target and source one has biases: expected both or neither")


def check_layers(target: Sequence[Layer], source: Sequence[Layer]) -> None:
    """Raise unless all are finite, shapes chain, and the source has two layers for each of the target's."""
    if len(source) != 2 * len(target) or not target:
        raise StrongTicketError(
            f"source has {len(source)} layers for a target of {len(target)}: expected twice as many"
        )
    width = None
    for index, layer in enumerate(target):
        first, second = source[2 * index], source[2 * index + 1]
        for name, (weight, bias), shape in (
            (f"target[{index}]", layer, (None, width)),
            (f"source[{2 * index}]", first, (None, layer[0].shape[1])),
            (f"source[{2 * index + 1}]", second, (len(layer[0]), len(first[0]))),
        ):
            _check_array(name, weight, *shape)
            if bias is not None:
                _check_array(f"{name} bias", bias, len(weight))
        width = len(layer[0])


def check_blocks(target: Sequence[BlockWeights], source: Sequence[BlockWeights]) -> None:
    """Raise unless there are as many blocks in both, each fitting its counterpart and the one width."""
    if len(target) != len(source) or not target:
        raise StrongTicketError(
            f"{len(target)} target and {len(source)} source blocks: expected equally many, and at least one"
        )
    for number, (wanted, built) in enumerate(zip(target, source, strict=True), 1):
        if wanted.norm != built.norm:
            raise StrongTicketError(
                f"block {number}: the target's norm is {wanted.norm}, the source's {built.norm}: expected the same"
            )
        check_attention(wanted, built)
        check_layers(wanted.layers, built.layers)
        width = target[0].value_output.shape[2]
        rows = width + wanted.constant
        checks.shaped((None, rows, rows), **{f"query_key of block {number}": wanted.query_key})
        checks.shaped((None, None, width), **{f"value_output of block {number}": wanted.value_output})
        checks.shaped((None, width), **{f"first layer of block {number}": wanted.layers[0][0]})
        checks.shaped((width, None), **{f"last layer of block {number}": wanted.layers[-1][0]})


def _check_array(name: str, array: np.ndarray, *shape: int | None) -> None:
    """Raise unless it is a finite float64 array of this shape; None stands for any size."""
    checks.shaped(shape, **{name: array})
    if array.dtype != np.float64:
        raise StrongTicketError(f"{name} has dtype {array.dtype}: expected float64")
    checks.finite(**{name: array})
