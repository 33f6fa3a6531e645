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
        row = torch.zeros_like(weight[:, :1])
        # The key's bias moves all logits of a row alike: softmax does not see it.
        if biased and name != "key":
            row = take(f"{prefix}{name}_bias")[:, None]
        weight = torch.cat([weight, row], 1) if constant else weight
        return weight.repeat_interleave(heads // len(weight), 0)

    query, key, value = factor("query"), factor("key"), factor("value")
    output = take(f"{prefix}output")
    output_bias = take(f"{prefix}output_bias") if settings["output_bias"] else None
    query_key = query @ key.transpose(1, 2) / key_dim**0.5
    value_output = value @ output
    if output_bias is not None:
        # Softmax rows sum to 1, so a constant row passes through unchanged; the heads share it.
        value_output[:, -1] += output_bias / heads
    arrays = (
        None if tensor is None else tensor.numpy() for tensor in (query, key, value, output, output_bias)
    )
    return AttentionWeights(
        query_key.numpy(),
        value_output.numpy(),
        bool(constant),
        AttentionFactors(*arrays),  # type: ignore[arg-type]
    )


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
