"""A network's weights as the theory takes them: float64, each product merged once, every shape checked once."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from strongticket import checks
from strongticket.errors import StrongTicketError
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

Take = Callable[..., Tensor]  # name and shape -> the tensor in float64


def read(kind: str, settings: JsonObject, arrays: Mapping[str, np.ndarray]) -> Weights:
    """Read and merge the weights of a network; no module is made.

    Args:
        kind: of the network.
        settings: what the module's `settings` returns.
        arrays: tensors by their name in the module's state_dict, of any floating type.
    """
    taken = set()

    def take(name: str, *shape: int) -> Tensor:
        if name not in arrays:
            raise StrongTicketError(f"tensor {name!r} is missing: the settings ask for it")
        checks.shaped(shape, **{name: arrays[name]})
        taken.add(name)
        # In torch, whose products a network runs: NumPy may round them otherwise.
        return torch.tensor(arrays[name], dtype=torch.float64)

    weights = _READERS[kind](settings, take, "")
    if others := arrays.keys() - taken:
        raise StrongTicketError(
            f"tensor {min(others)!r} has no place in the network that the settings describe"
        )
    return weights


def width_of(weights: Weights) -> int:
    """Width of the tokens that a network reads; in cross-attention the larger of the two."""
    if isinstance(weights, ReluWeights):
        return int(weights.layers[0][0].shape[1])
    first = weights.blocks[0] if isinstance(weights, TransformerWeights) else weights
    return int(max(first.query_key.shape[1:])) - first.constant


def _attention(settings: JsonObject, take: Take, prefix: str) -> AttentionWeights:
    heads, kv_heads, key_dim, value_dim, dim_out = (
        settings[name] for name in ("heads", "kv_heads", "key_dim", "value_dim", "dim_out")
    )
    biased, constant = settings["bias"], settings["bias"] or settings["output_bias"]

    def factor(name: str, count: int, rows: int, columns: int) -> Tensor:
        """One matrix a head, with the constant's row last where biases need it."""
        weight = take(f"{prefix}{name}", count, rows, columns)
        row = torch.zeros_like(weight[:, :1])
        if biased:
            bias = take(f"{prefix}{name}_bias", count, columns)
            # The key's bias moves all logits of a row alike: softmax does not see it.
            row = row if name == "key" else bias[:, None]
        weight = torch.cat([weight, row], 1) if constant else weight
        return weight.repeat_interleave(heads // count, 0)

    query = factor("query", heads, settings["dim_in"], key_dim)
    key = factor("key", kv_heads, settings["context_dim"], key_dim)
    value = factor("value", kv_heads, settings["context_dim"], value_dim)
    output = take(f"{prefix}output", heads, value_dim, dim_out)
    output_bias = take(f"{prefix}output_bias", dim_out) if settings["output_bias"] else None
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
    dims, biases = settings["dims"], settings["bias"]
    for index, (dim_in, dim_out, biased) in enumerate(zip(dims[:-1], dims[1:], biases, strict=True)):
        name = f"{prefix}layers.{index}"
        bias = take(f"{name}.bias", dim_out).numpy() if biased else None
        layers.append((take(f"{name}.weight", dim_out, dim_in).numpy(), bias))
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
