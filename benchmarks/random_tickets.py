"""Tickets of random shapes, and the attack that suits each: for `benchmarks.build`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from strongticket import nets
from strongticket.builders import build_network
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer

KINDS = ("attention", "block", "transformer", "pre-norm")


@dataclass(frozen=True)
class Case:
    """One ticket: what was built, what is certified, what was found."""

    kind: str
    shape: str
    bound: float
    attacked: float
    inputs: int

    @property
    def ratio(self) -> float:
        return self.bound / self.attacked


def random_case(kind: str, seed: int, steps: int) -> Case:
    """Build, certify and attack one ticket; d from 1 to 24, 1 to 4 heads, matrices of norm up to 1.2."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    target, shape = _target(kind, rng)
    dim = target.dim_in if isinstance(target, MultiHeadAttention) else target.width
    radius = float(dim ** rng.uniform(0, 0.5))
    ticket = build_network(
        target, per_row=int(rng.integers(10, 19)), seed=seed, radius=radius, evaluation="exact"
    )
    source, floors = ticket.network(), ticket.certificate.get("floors")
    error, inputs = _attack(target, source, dim, radius, seed, steps, floors)
    return Case(kind, shape, ticket.certificate["bound"], error, inputs)


def _target(kind: str, rng: np.random.Generator) -> tuple[Any, str]:
    dim = int(rng.integers(2 if kind == "pre-norm" else 1, 25))
    heads = int(rng.integers(1, 5))
    bias = bool(rng.integers(2))
    kv_heads = int(rng.choice([h for h in range(1, heads + 1) if heads % h == 0]))
    hidden = int(rng.integers(1, 9))
    common = dict(kv_heads=kv_heads, bias=bias, output_bias=bool(rng.integers(2)))
    shape = f"d={dim} H={heads}/{kv_heads} {'bias' if bias else ''}"
    if kind == "attention":
        context = int(rng.integers(1, 25)) if rng.random() < 0.25 else dim
        dim_out = int(rng.integers(1, 25))
        target: Any = MultiHeadAttention(dim, dim_out, heads, hidden, hidden, context_dim=context, **common)
        shape += f" out={dim_out}" + (f" context={context}" if context != dim else "")
    else:
        layers, blocks = int(rng.integers(1, 3)), 1 if kind == "block" else int(rng.integers(2, 4))
        norm = str(rng.choice(["layer", "rms"])) if kind == "pre-norm" else None
        parts = [
            Block(
                MultiHeadAttention(dim, dim, heads, hidden, hidden, **common),
                ReluNetwork([dim] * (layers + 1), bias=bias),
                norm=norm,
            )
            for _ in range(blocks)
        ]
        target = Transformer(parts)
        shape += f" B={blocks} L={layers} {norm or ''}"
    nets.initialise(target, int(rng.integers(1 << 30)), normalised=True)
    scale = float(rng.uniform(0.6, 1.2))
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.mul_(scale)
    return target.requires_grad_(False), shape


def _attack(
    target: Any, source: Any, dim: int, radius: float, seed: int, steps: int, floors: Any
) -> tuple[float, int]:
    wanted, built = nets.merge(target, torch.float64), nets.merge(source, torch.float64)
    options: dict[str, Any] = dict(restarts=4, steps=steps, seed=seed, tokens=(1, 2, 3, 5), masked=True)
    networks: tuple[Callable[..., Any], Callable[..., Any]] = (built, wanted)
    if isinstance(target, MultiHeadAttention):
        context = target.context_dim
        if context != dim:
            networks = tuple(_crossed(network, dim, context) for network in networks)  # type: ignore[assignment]
            options |= dict(masked=False, tokens=(2, 3, 5), restarts=16)
        else:
            options["starts"] = nets.start_directions(
                (built.query_key - wanted.query_key)[:, :dim, :dim].numpy(),
                wanted.value_output[:, :dim].numpy(),
                (built.value_output - wanted.value_output)[:, :dim].numpy(),
                seed=seed,
                tries=4,
            )
        dim = max(dim, context)
    if floors:
        options["accepts"] = nets.keeps_to(built, floors)
    found = nets.attack(*networks, dim, radius, **options)
    return found.error, found.attempts * steps


def _crossed(network: Any, dim: int, context: int) -> Callable[..., Any]:
    """Cross-attention as a function of one sequence: the last token asks, the others are the context."""
    return lambda x: network(x[:, -1:, :dim], x[:, :-1, :context])


def largest_float32_error(target: Any, source: Any, dim: int, radius: float, seed: int, rounds: int) -> float:
    """Of the network as it is returned: hill climbing over float32 inputs, where gradients see no rounding."""
    wanted = nets.merge(target, torch.float64)
    generator = torch.Generator().manual_seed(seed)
    largest = 0.0

    def on_sphere(x: torch.Tensor) -> torch.Tensor:
        return (x / x.norm(dim=-1, keepdim=True) * radius * (1 - 1e-6)).float()

    def errors(x: torch.Tensor) -> torch.Tensor:
        return (source(x).double() - wanted(x.double())).norm(dim=-1)[:, -1]

    found = nets.attack(
        nets.merge(source, torch.float64), wanted, dim, radius, restarts=4, steps=60, seed=seed
    )
    for tokens in (1, 2, 3, len(found.inputs)):
        x = on_sphere(torch.randn(1000, tokens, dim, generator=generator))
        if tokens == len(found.inputs):
            x[0] = on_sphere(torch.from_numpy(found.inputs))
        for _ in range(rounds):
            best = x[errors(x).topk(20).indices]
            size = 10 ** (-5 * torch.rand(1000, 1, 1, generator=generator))
            x = torch.cat(
                [
                    best,
                    on_sphere(
                        best.repeat(50, 1, 1) + size * torch.randn(1000, tokens, dim, generator=generator)
                    ),
                ]
            )
        largest = max(largest, float(errors(x).max()))
    return largest
