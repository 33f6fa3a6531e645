"""A network's weights as the theory takes them: float64, each product merged once."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from strongticket.files import JsonObject
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.rounding import AttentionFactors
from strongticket.theory.weights import (
    AttentionWeights,
    BlockWeights,
    Layer,
    ReluWeights,
    TransformerWeights,
    Weights,
)

Take = Callable[[str], Tensor]  # name -> the tensor in float64


def read(kind: str, settings: JsonObject, arrays: Mapping[str, np.ndarray]) -> Weights:
    """Read and merge the weights of a network, given by what its module has for kind, settings and state_dict."""

    def take(name: str) -> Tensor:
        # In torch, whose products a network runs: NumPy may round them otherwise.
        return torch.tensor(arrays[name], dtype=torch.float64)

    return _READERS[kind](settings, take, "")


def width_of(weights: Weights) -> int:
    """Width of the tokens that a network reads; in cross-attention the larger of the two."""
    if isinstance(weights, ReluWeights):
        return int(weights.layers[0][0].shape[1])
    first = weights.blocks[0] if isinstance(weights, TransformerWeights) else weights
    return int(max(first.query_key.shape[1:])) - first.constant


def _attention(settings: JsonObject, take: Take, prefix: str) -> AttentionWeights:
    heads, key_dim = settings["heads"], settings["key_dim"]
    biased, constant = settings["bias"], settings["bias"] or settings["output_bias"]

    def factor(name: str) -> Tensor:
        """One matrix a head, with the constant's row last where biases need it."""
        weight = take(f"{prefix}{name}")
        if constant and name != "output":
            row = torch.zeros_like(weight[:, :1])
            # The key's bias moves all logits of a row alike: softmax does not see it.
            if biased and name != "key":
                row = take(f"{prefix}{name}_bias")[:, None]
            weight = torch.cat([weight, row], 1)
        return weight.repeat_interleave(heads // len(weight), 0)

    def halves(name: str, units: int | None) -> tuple[Tensor, Tensor]:
        """A factor, and the product of its halves' magnitudes: the factor itself where it is one matrix."""
        weight = factor(name)
        if units is None:
            return weight, weight
        inner = take(f"{prefix}{name}_inner")
        inner = inner.repeat_interleave(heads // len(inner), 0)
        first, second = (inner, weight) if name == "output" else (weight, inner)
        return first @ second, first.abs() @ second.abs()

    key_inner, value_inner = settings.get("key_inner"), settings.get("value_inner")
    (query, query_size), (key, key_size) = halves("query", key_inner), halves("key", key_inner)
    (value, value_size), (output, output_size) = halves("value", value_inner), halves("output", value_inner)
    output_bias = take(f"{prefix}output_bias") if settings["output_bias"] else None
    query_key = query @ key.transpose(1, 2) / key_dim**0.5
    value_output = value @ output
    if output_bias is not None:
        # Softmax rows sum to 1, so a constant row passes through unchanged; the heads share it.
        value_output[:, -1] += output_bias / heads
    factors = AttentionFactors(
        query.numpy(),
        key.numpy(),
        value.numpy(),
        output.numpy(),
        None if output_bias is None else output_bias.numpy(),
        inner=(key_inner or 0, value_inner or 0),
        sizes=tuple(size.numpy() for size in (query_size, key_size, value_size, output_size)),
    )
    return AttentionWeights(query_key.numpy(), value_output.numpy(), bool(constant), factors)


def _relu(settings: JsonObject, take: Take, prefix: str) -> ReluWeights:
    layers: list[Layer] = []
    for index, biased in enumerate(settings["bias"]):
        name = f"{prefix}layers.{index}"
        bias = take(f"{name}.bias").numpy() if biased else None
        layers.append((take(f"{name}.weight").numpy(), bias))
    return ReluWeights(tuple(layers))


def _block(settings: JsonObject, take: Take, prefix: str) -> BlockWeights:
    attention = _attention(settings["attention"], take, f"{prefix}attention.")
    layers = _relu(settings["feed_forward"], take, f"{prefix}feed_forward.").layers
    return BlockWeights(**vars(attention), layers=layers, norm=_norm(settings))


def _transformer(settings: JsonObject, take: Take, prefix: str) -> TransformerWeights:
    blocks = (_block(block, take, f"{prefix}blocks.{i}.") for i, block in enumerate(settings["blocks"]))
    return TransformerWeights(tuple(blocks), _norm(settings))


def _norm(settings: JsonObject) -> Normalisation | None:
    return Normalisation(settings["norm"], settings["norm_epsilon"]) if settings.get("norm") else None


_READERS: dict[str, Callable[[JsonObject, Take, str], Weights]] = dict(
    attention=_attention, relu=_relu, block=_block, transformer=_transformer
)
