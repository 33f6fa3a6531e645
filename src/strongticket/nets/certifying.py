"""A certificate for two networks: their weights, merged in float64, handed to the theory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.nets.merging import Merged, answer_type, merged_module, weights_of
from strongticket.nets.norm import find_norms, length_floors
from strongticket.nets.weights import width_of
from strongticket.theory.certificate import Certificate, certify_attention
from strongticket.theory.relu_certificate import certify_relu
from strongticket.theory.rounding import Arithmetic, unit_of
from strongticket.theory.transformer_certificate import certify_transformer
from strongticket.theory.weights import (
    AttentionWeights,
    BlockWeights,
    ReluWeights,
    TransformerWeights,
    Weights,
)

ROUNDED = 1 + 1e-6  # tokens scaled to a radius in float32 may be this much longer: certificates cover them
ARITHMETIC: dict[torch.dtype, Arithmetic] = {torch.float32: "float32", torch.float64: "float64"}


def certify(
    target: nn.Module,
    source: nn.Module,
    radius: Real | None = None,
    *,
    arithmetic: Arithmetic | None = None,
    floors: Sequence[float] | None = None,
) -> Certificate:
    """Bound ‖source(x) − target(x)‖ at every position, for all inputs with ‖x_i‖ ≤ radius, any mask.

    Args:
        target: one of this package's networks; treated as exact arithmetic, in whatever form.
        source: of the same kind: a Merged, as `Ticket.network()` returns it. Factors that run one by one have a
            bound in exact arithmetic alone.
        radius: by default √d, d the input's width (the larger of the two in cross-attention): the least that
            the paper's α ≥ √d₁ allows. Tokens that rounding makes longer by a millionth are covered too, unless
            arithmetic is "exact".
        arithmetic: "float32" holds for `Ticket.network()`, "float64" for network(dtype=torch.float64); "exact"
            is the source as mathematics. By default that of the source's answers. Floating point is counted for
            up to 65,536 tokens.
        floors: in networks with norms, for each norm the least length of what the source's norm reads; the
            certificate holds for inputs that respect them. By default half of what random inputs show.

    >>> target = initialise(MultiHeadAttention(4, 4, 1, 2, 2), seed=1, normalised=True)
    >>> certify(target, Merged(target), radius=2.0, arithmetic="exact").bound < 1e-12  # its own rounding is counted
    True
    """
    wanted, built, arithmetic = read_both(target, source, arithmetic)
    return certify_weights(wanted, built, radius, arithmetic=arithmetic, floors=floors)


def certify_weights(
    target: Weights,
    source: Any,
    radius: Real | None = None,
    *,
    arithmetic: Arithmetic,
    floors: Sequence[float] | None = None,
) -> Certificate:
    """Do what `certify` does, from weights that nets.weights has read: no network is needed.

    Both are of the same kind, and the source is the merged network of its weights. Other arguments: see certify.
    """
    if isinstance(target, BlockWeights):
        target, source = TransformerWeights((target,), None), TransformerWeights((source,), None)
    radius = width_of(target) ** 0.5 if radius is None else radius
    checks.positive(radius=radius)
    reach = radius * ROUNDED if unit_of(arithmetic) else radius
    if isinstance(target, ReluWeights):
        found = certify_relu(target.layers, source.layers, reach, arithmetic=arithmetic)
    elif isinstance(target, AttentionWeights):
        found = certify_attention(target, source, reach, arithmetic=arithmetic)
    else:
        if floors is None and find_norms(network := merged_module(target)):
            floors = length_floors(network, width_of(target), float(reach))
        found = certify_transformer(
            target.blocks,
            source.blocks,
            reach,
            arithmetic=arithmetic,
            floors=floors,
            final_norm=target.norm,
        )
    context_radius = None if found.context_radius is None else float(radius)
    return replace(found, radius=float(radius), context_radius=context_radius)


def read_both(
    target: nn.Module, source: nn.Module, arithmetic: Arithmetic | None
) -> tuple[Weights, Weights, Arithmetic]:
    """Read the weights of two networks of one kind; `arithmetic` is by default that of the source's answers."""
    if getattr(target, "kind", None) != getattr(source, "kind", None) or not hasattr(target, "kind"):
        raise StrongTicketError(
            f"target is a {type(target).__name__}, source a {type(source).__name__}: "
            "expected two networks of strongticket.nets of the same kind"
        )
    if arithmetic != "exact" and not isinstance(source, Merged):
        raise StrongTicketError(
            "the source runs its factors one by one: in floating point there is no bound for that",
            hint="Certify Merged(source), or pass arithmetic='exact'.",
        )
    arithmetic = arithmetic or ARITHMETIC.get(answer_type(source))
    if arithmetic is None:
        raise StrongTicketError(
            f"the source answers in {answer_type(source)}: expected float32 or float64",
            hint="Convert its factors with .float() and merge them, or pass arithmetic='exact'.",
        )
    return weights_of(target), weights_of(source), arithmetic
