"""Tickets of random shapes, and the attack that suits each: for `benchmarks.theory`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Row
from strongticket import nets
from strongticket.builders import build_network
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.nets.norm import watch_norms


@dataclass(frozen=True)
class Kind:
    """Networks to draw. blocks: none for attention alone; shorter: inputs are shorter than √d, as drawn."""

    blocks: int = 0
    prenorm: bool = False
    shorter: bool = False


KINDS = {
    "attention": Kind(),
    "attention, shorter inputs": Kind(shorter=True),
    "one block": Kind(1),
    "two blocks": Kind(2),
    "three blocks": Kind(3),
    "pre-norm, two blocks": Kind(2, prenorm=True),
}


def random_case(name: str, seed: int, steps: int) -> Row:
    """Build, certify and attack one ticket; d from 1 to 24, 1 to 4 heads, matrices of norm up to 1.2."""
    kind = KINDS[name]
    rng = np.random.default_rng([seed, list(KINDS).index(name)])
    target = _target(kind, rng)
    dim = target.width if kind.blocks else target.dim_in
    radius = float(dim ** (rng.uniform(0, 0.5) if kind.shorter else 0.5))
    ticket = build_network(
        target, per_row=int(rng.integers(10, 19)), seed=seed, radius=radius, arithmetic="exact"
    )
    source, floors = ticket.network(), ticket.certificate.get("floors")
    found = attacked(target, source, dim, radius, seed=seed, floors=floors, steps=steps)
    ratio = ticket.certificate["bound"] / found.error
    return {"kind": name, "ratio": ratio, "inputs": found.attempts * steps}


def _target(kind: Kind, rng: np.random.Generator) -> Any:
    dim = int(rng.integers(2 if kind.prenorm else 1, 25))
    heads = int(rng.integers(1, 5))
    bias = bool(rng.integers(2))
    kv_heads = int(rng.choice([h for h in range(1, heads + 1) if heads % h == 0]))
    hidden = int(rng.integers(1, 9))
    common = dict(kv_heads=kv_heads, bias=bias, output_bias=bool(rng.integers(2)))
    if not kind.blocks:
        context = int(rng.integers(1, 25)) if rng.random() < 0.25 else dim
        dim_out = int(rng.integers(1, 25))
        target: Any = MultiHeadAttention(dim, dim_out, heads, hidden, hidden, context_dim=context, **common)
    else:
        layers = int(rng.integers(1, 3))
        norm = str(rng.choice(["layer", "rms"])) if kind.prenorm else None
        parts = []
        for _ in range(kind.blocks):
            attention = MultiHeadAttention(dim, dim, heads, hidden, hidden, **common)
            parts.append(Block(attention, ReluNetwork([dim] * (layers + 1), bias=bias), norm=norm))
        target = Transformer(parts)
    nets.initialise(target, int(rng.integers(1 << 30)), normalised=True)
    scale = float(rng.uniform(0.6, 1.2))
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.mul_(scale)
    return target.requires_grad_(False)


def attacked(target: Any, source: Any, dim: int, radius: float, **options: Any) -> Any:
    """The attack that suits the target, in float64.

    options: of nets.attack; and the floors of the certificate
    """
    wanted, built = nets.merge(target, torch.float64), nets.merge(source, torch.float64)
    options = dict(restarts=4, tokens=(1, 2, 3, 5), heads=heads_of(target)) | options
    floors, context = options.pop("floors", None), getattr(target, "context_dim", dim)
    networks: list[Any] = [built, wanted]
    if context != dim:
        # One sequence, whose last token asks: the others are the context.
        networks = [
            lambda x, mask, network=each: network(x[:, -1:, :dim], x[:, :-1, :context], mask[:, :, -1:, :-1])
            for each in networks
        ]
        options["tokens"] = ()
    if floors:
        options["accepts"] = respects_floors(built, floors)
    return nets.attack(*networks, max(dim, context), radius, **options)


def heads_of(network: torch.nn.Module) -> int | None:
    """Of its attention; None without any."""
    return next((part.heads for part in network.modules() if isinstance(part, MultiHeadAttention)), None)


def respects_floors(network: torch.nn.Module, floors: Sequence[float]) -> Callable[..., torch.Tensor]:
    """For `accepts` of nets.attack: is all that the norms of `network` read at least as long as its floor?"""

    def accepts(x: torch.Tensor, **options: Any) -> torch.Tensor:
        fine = torch.ones(len(x), dtype=torch.bool)

        def see(number: int, lengths: torch.Tensor) -> None:
            fine.logical_and_(lengths.amin(-1) >= floors[number])

        with torch.no_grad(), watch_norms(network, see):
            network(x, **options)
        return fine

    return accepts


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
            moved = best.repeat(50, 1, 1) + size * torch.randn(1000, tokens, dim, generator=generator)
            x = torch.cat([best, on_sphere(moved)])
        largest = max(largest, float(errors(x).max()))
    return largest
