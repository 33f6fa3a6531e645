"""A certificate for two networks of ours: their weights merged in float64 and handed to the theory."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.nets._merge import merge
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.frozen import ROUNDED
from strongticket.nets.norm import Norm, find_norms, length_floors
from strongticket.nets.relu import ReluNetwork
from strongticket.nets.transformer import Block, Transformer
from strongticket.theory.certificate import Certificate, certify_attention
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.relu_certificate import certify_relu
from strongticket.theory.rounding import MAX_TOKENS, Arithmetic, AttentionFactors, attention_rounding, unit_of
from strongticket.theory.transformer_certificate import certify_transformer
from strongticket.theory.weights import BlockWeights, Layer


def certify(
    target: nn.Module,
    source: nn.Module,
    radius: Real | None = None,
    *,
    arithmetic: Arithmetic | None = None,
    tokens: int = MAX_TOKENS,
    floors: Sequence[float] | None = None,
) -> Certificate:
    """Bound ‖source(x) − target(x)‖ at every position, for all inputs with ‖x_i‖ ≤ radius, any mask.

    Args:
        target: one of this package's networks; it counts as mathematics, however it is run.
        source: of the same kind.
        radius: by default √d, d the input's width (the larger of the two in cross-attention): the least that
            the paper's α ≥ √d₁ allows. Tokens that rounding makes longer by a millionth are covered too, unless
            arithmetic is "exact". An infinite radius gives an infinite bound.
        arithmetic: "float32" holds for `Ticket.network()`, "float64" for network(dtype=torch.float64); "exact"
            is the source as mathematics. By default the source's own type.
        tokens: the longest context, for the rounding of its sums.
        floors: in networks with norms, for each norm the least length of what the source's norm reads; the
            certificate holds for inputs that keep to them. By default half of what random inputs show.

    >>> target = initialise(MultiHeadAttention(4, 4, 1, 2, 2), seed=1, normalised=True)
    >>> certify(target, target, radius=2.0, arithmetic="exact").bound < 1e-12  # its own rounding is counted
    True
    """
    check_same_kind(target, source)
    arithmetic = arithmetic or arithmetic_of(source)
    if radius == math.inf:  # without a ball there is no bound
        kind = "transformer" if isinstance(target, Block) else str(target.kind)
        return Certificate(kind, math.inf, math.inf, math.inf, arithmetic=arithmetic)
    radius = _width(target) ** 0.5 if radius is None else radius
    checks.positive(radius=radius)
    reach = radius * ROUNDED if unit_of(arithmetic) else radius
    found = _certify(target, source, reach, arithmetic, tokens, floors)
    context_radius = None if found.context_radius is None else float(radius)
    return replace(found, radius=float(radius), context_radius=context_radius)


def check_same_kind(target: nn.Module, source: nn.Module) -> None:
    """Raise unless both are networks of this package, and of the same kind."""
    if getattr(target, "kind", None) != getattr(source, "kind", None) or not hasattr(target, "kind"):
        raise StrongTicketError(
            f"target is a {type(target).__name__}, source a {type(source).__name__}: "
            "expected two networks of strongticket.nets of the same kind"
        )


def _certify(
    target: nn.Module,
    source: nn.Module,
    radius: Real,
    arithmetic: Arithmetic,
    tokens: int,
    floors: Sequence[float] | None,
) -> Certificate:
    if isinstance(target, MultiHeadAttention) and isinstance(source, MultiHeadAttention):
        if target.heads != source.heads:
            raise StrongTicketError(
                f"target has {target.heads} heads, source {source.heads}: expected equally many"
            )
        wanted, built = merge(target, torch.float64), merge(source, torch.float64)
        return certify_attention(
            wanted.query_key.numpy(),
            built.query_key.numpy(),
            wanted.value_output.numpy(),
            built.value_output.numpy(),
            radius,
            constant=wanted.constant,
            # The target's own merging is rounded too.
            rounding=attention_rounding(
                factors(source), radius, constant=wanted.constant, arithmetic=arithmetic, tokens=tokens
            )
            + attention_rounding(factors(target), radius, constant=wanted.constant),
            arithmetic=arithmetic,
        )
    if isinstance(target, ReluNetwork) and isinstance(source, ReluNetwork):
        return certify_relu(layers(target), layers(source), radius, arithmetic=arithmetic)
    if floors is None and find_norms(target):
        floors = length_floors(merge(target, torch.float64), blocks(target)[0].width, float(radius))
    return certify_transformer(
        [block_weights(block) for block in blocks(target)],
        [block_weights(block) for block in blocks(source)],
        radius,
        arithmetic=arithmetic,
        tokens=tokens,
        floors=floors,
        final_norm=_rule(target.norm) if isinstance(target, Transformer) else None,
    )


def _width(network: nn.Module) -> int:
    if isinstance(network, MultiHeadAttention):
        return max(network.dim_in, network.context_dim)
    return network.dims[0] if isinstance(network, ReluNetwork) else blocks(network)[0].width


def arithmetic_of(network: nn.Module) -> Arithmetic:
    """What the network's outputs are rounded to."""
    names: dict[torch.dtype, Arithmetic] = {torch.float32: "float32", torch.float64: "float64"}
    dtype = next(network.parameters()).dtype
    if dtype not in names:
        raise StrongTicketError(
            f"the source has weights of type {dtype}: expected float32 or float64",
            hint="Convert it with .float(), or pass arithmetic='exact'.",
        )
    return names[dtype]


def blocks(network: nn.Module) -> list[Block]:
    if isinstance(network, Transformer):
        return list(network.blocks)
    assert isinstance(network, Block)
    return [network]


def block_weights(block: Block) -> BlockWeights:
    """The block's merged attention, its feed-forward layers and its norm."""
    if not isinstance(block.attention, MultiHeadAttention) or not isinstance(block.feed_forward, ReluNetwork):
        raise StrongTicketError("a merged block cannot be certified: pass the block it was merged from")
    merged = merge(block.attention, torch.float64)
    return BlockWeights(
        merged.query_key.numpy(),
        merged.value_output.numpy(),
        tuple(layers(block.feed_forward)),
        merged.constant,
        factors(block.attention),
        _rule(block.attention_norm),
    )


def _rule(norm: nn.Module) -> Normalisation | None:
    return norm.rule if isinstance(norm, Norm) else None


def layers(network: ReluNetwork) -> list[Layer]:
    return [
        (_array(linear.weight), None if linear.bias is None else _array(linear.bias))
        for linear in network.layers
    ]


def factors(attention: MultiHeadAttention) -> AttentionFactors:
    """The four matrices of every head, the constant's row last where biases need it; the key's is left out,
    as in merging: softmax does not see it.
    """
    constant = attention.bias or attention.output_bias is not None
    group = attention.heads // attention.kv_heads

    def with_bias(weight: np.ndarray, bias: torch.Tensor | None) -> np.ndarray:
        if not constant:
            return weight
        row = np.zeros_like(weight[:, :1]) if bias is None else _array(bias)[:, None]
        return np.concatenate([weight, row], 1)

    return AttentionFactors(
        with_bias(_array(attention.query), attention.query_bias),
        with_bias(_array(attention.key), None).repeat(group, 0),
        with_bias(_array(attention.value), attention.value_bias).repeat(group, 0),
        _array(attention.output),
        None if attention.output_bias is None else _array(attention.output_bias),
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()
