"""A source against its target: the error of every matrix, what is certified, and what is measured."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from strongticket.errors import StrongTicketError
from strongticket.nets._certify import certify
from strongticket.nets._merge import merge
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.merged import MergedRelu
from strongticket.nets.relu import ReluNetwork
from strongticket.nets.transformer import Block, Transformer
from strongticket.theory import Certificate

_LOGITS = 1 << 20  # attention weights held at once while measuring


@dataclass(frozen=True)
class MatrixError:
    """One matrix of the theorems (queries with keys, values with outputs, a linear map)."""

    name: str
    shape: tuple[int, ...]
    largest: float  # entry of the target
    error: float  # largest of any entry


@dataclass(frozen=True)
class Comparison:
    """certificate: holds for all inputs; measured, mean: largest and mean output error on those tried."""

    matrices: tuple[MatrixError, ...]
    certificate: Certificate
    measured: float
    mean: float
    inputs: int


def compare(
    target: Any,
    source: Any,
    *,
    radius: float | None = None,
    inputs: int = 1024,
    tokens: int = 8,
    seed: int = 0,
) -> Comparison:
    """Compare two of our networks in float64; inputs: how many random ones, every token within the radius."""
    if inputs < 1 or tokens < 1:
        raise StrongTicketError(f"inputs={inputs}, tokens={tokens}: expected at least 1 of each")
    certificate = certify(target, source, radius)
    with torch.no_grad():
        matrices = tuple(_matrices("", target, source))
    probes = probe_inputs(target, certificate.radius, inputs, tokens, seed)
    distance = output_error(target, source, probes)
    return Comparison(matrices, certificate, float(distance.max()), float(distance.mean()), inputs)


def output_error(target: Any, source: Any, x: Tensor) -> Tensor:
    """‖source(x) − target(x)‖ at every position, in float64: the theorems' quantity. x: (batch, …, dim)."""
    goal, made = (deepcopy(network).double() for network in (target, source))
    tokens = x.shape[1] if x.ndim == 3 else 1
    with torch.no_grad():
        parts = x.double().split(max(1, _LOGITS // tokens**2))
        distances = [(made(part) - goal(part)).norm(dim=-1) for part in parts]
    return torch.cat(distances)


def probe_inputs(network: Any, radius: float, inputs: int, tokens: int, seed: int) -> Tensor:
    """Random directions; half of the vectors on the edge of the ball, half inside."""
    dim = network.dims[0] if isinstance(network, ReluNetwork) else _width(network)
    generator = torch.Generator().manual_seed(seed)
    shape = (inputs, dim) if isinstance(network, ReluNetwork) else (inputs, tokens, dim)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    length = torch.rand((*shape[:-1], 1), generator=generator, dtype=torch.float64)
    length = torch.where(length < 0.5, 2 * length, torch.ones(()).double())
    return x / x.norm(dim=-1, keepdim=True) * length * radius


def _width(network: Any) -> int:
    if isinstance(network, MultiHeadAttention):
        if network.context_dim != network.dim_in:
            raise StrongTicketError(
                "cross-attention has two inputs: compare its outputs on pairs of your own"
            )
        return network.dim_in
    return network.width


def _matrices(prefix: str, target: Any, source: Any) -> Iterator[MatrixError]:
    """Walk two networks of the same kind down to their attentions and ReLU networks."""
    if isinstance(target, Transformer):
        for i, (goal, made) in enumerate(zip(target.blocks, source.blocks, strict=True)):
            yield from _matrices(f"{prefix}blocks.{i}.", goal, made)
    elif isinstance(target, Block):
        yield from _matrices(f"{prefix}attention.", target.attention, source.attention)
        yield from _matrices(f"{prefix}feed_forward.", target.feed_forward, source.feed_forward)
    elif isinstance(target, ReluNetwork):
        folded = merge(source, torch.float64)
        if not isinstance(folded, MergedRelu):
            raise StrongTicketError(
                f"source's {prefix}layers do not fold into the target's: some hidden unit reads several inputs",
                hint="Compare with output_error and certify, or build the source.",
            )
        yield from _relu_matrices(prefix, target, folded)
    else:
        goal, made = merge(target, torch.float64), merge(source, torch.float64)
        for name in ("query_key", "value_output"):
            yield _matrix(f"{prefix}{name}", getattr(goal, name), getattr(made, name))


def _relu_matrices(prefix: str, target: ReluNetwork, source: MergedRelu) -> Iterator[MatrixError]:
    """Target layer i against the pair that stands for it: positive·relu(x) + negative·relu(−x) + constant."""
    for i, linear in enumerate(target.layers):
        layer: Any = linear
        weight = layer.weight.double()
        yield _matrix(f"{prefix}layers.{i}.weight", weight, source.positive[i])
        if i == 0:  # later layers read what a ReLU gave: never negative
            yield _matrix(f"{prefix}layers.{i}.weight, negative side", -weight, source.negative[i])
        if layer.bias is not None:
            yield _matrix(f"{prefix}layers.{i}.bias", layer.bias.double(), source.constant[i])


def _matrix(name: str, target: Tensor, source: Tensor) -> MatrixError:
    error = float((source - target).abs().max())
    return MatrixError(name, tuple(target.shape), float(target.abs().max()), error)
