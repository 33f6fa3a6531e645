"""Tickets of random shapes, and the attack that suits each: for `benchmarks.theory`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Row
from strongticket import nets
from strongticket.builders import build_network
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.nets.norm import watch_norms

KINDS = ("attention", "block", "transformer", "pre-norm")


def random_case(kind: str, seed: int, steps: int) -> Row:
    """Build, certify and attack one ticket; d from 1 to 24, 1 to 4 heads, matrices of norm up to 1.2."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    target = _target(kind, rng)
    dim = target.dim_in if isinstance(target, MultiHeadAttention) else target.width
    radius = float(dim ** rng.uniform(0, 0.5))
    ticket = build_network(
        target, per_row=int(rng.integers(10, 19)), seed=seed, radius=radius, arithmetic="exact"
    )
    source, floors = ticket.network(), ticket.certificate.get("floors")
    found = attacked(target, source, dim, radius, seed=seed, floors=floors, steps=steps)
    ratio = ticket.certificate["bound"] / found.error
    return {"kind": kind, "ratio": ratio, "inputs": found.attempts * steps}


def _target(kind: str, rng: np.random.Generator) -> Any:
    dim = int(rng.integers(2 if kind == "pre-norm" else 1, 25))
    heads = int(rng.integers(1, 5))
    bias = bool(rng.integers(2))
    kv_heads = int(rng.choice([h for h in range(1, heads + 1) if heads % h == 0]))
    hidden = int(rng.integers(1, 9))
    common = dict(kv_heads=kv_heads, bias=bias, output_bias=bool(rng.integers(2)))
    if kind == "attention":
        context = int(rng.integers(1, 25)) if rng.random() < 0.25 else dim
        dim_out = int(rng.integers(1, 25))
        target: Any = MultiHeadAttention(dim, dim_out, heads, hidden, hidden, context_dim=context, **common)
    else:
        layers, blocks = int(rng.integers(1, 3)), 1 if kind == "block" else int(rng.integers(2, 4))
        norm = str(rng.choice(["layer", "rms"])) if kind == "pre-norm" else None
        parts = []
        for _ in range(blocks):
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
    """The attack that suits the target; for attention, also from the directions that do most harm to first order.

    options: of nets.attack; the floors of the certificate; tries, of start_directions
    """
    wanted, built = nets.merge(target, torch.float64), nets.merge(source, torch.float64)
    options = dict(restarts=4, tokens=(1, 2, 3, 5), masked=True) | options
    floors, tries = options.pop("floors", None), options.pop("tries", 4)
    networks: list[Any] = [built, wanted]
    if isinstance(target, MultiHeadAttention):
        context = target.context_dim
        if context != dim:
            # One sequence, whose last token asks: the others are the context.
            networks = [
                lambda x, network=each: network(x[:, -1:, :dim], x[:, :-1, :context]) for each in networks
            ]
            options |= dict(masked=False, tokens=(2, 3, 5), restarts=16)
        else:
            options["starts"] = start_directions(
                (built.query_key - wanted.query_key)[:, :dim, :dim].numpy(),
                wanted.value_output[:, :dim].numpy(),
                (built.value_output - wanted.value_output)[:, :dim].numpy(),
                seed=options["seed"],
                tries=tries,
            )
    if floors:
        options["accepts"] = respects_floors(built, floors)
    return nets.attack(*networks, max(dim, getattr(target, "context_dim", dim)), radius, **options)


def start_directions(
    qk_error: np.ndarray, target_vo: np.ndarray, vo_error: np.ndarray, *, seed: int = 0, tries: int = 16
) -> np.ndarray:
    """Find unit query x and key w at which the keys w and −w do the most harm to first order.

    That harm is Σ_h (xᵀΔQK_h w)(wᵀW_VO,h u): power iteration in turn over x, w and u, from each head's top
    singular vectors, from the worst value for all heads together, and from `tries` random ones.
    """
    rng = np.random.default_rng(seed)
    values = np.linalg.svd(vo_error.sum(0))[0][:, 0]
    found = [np.stack([values, values])]
    begin = [np.linalg.svd(error)[2][0] for error in qk_error]
    begin += list(rng.standard_normal((tries, qk_error.shape[1])))
    for key in begin:
        output = rng.standard_normal((target_vo.shape[2],))
        for _ in range(50):
            seen, carried = qk_error @ key, np.einsum("hio,i->ho", target_vo, key)
            query = _unit(np.einsum("hi,ho,o->i", seen, carried, output))
            pull = np.einsum("hij,i->hj", qk_error, query)
            output = _unit(np.einsum("hi,i,ho->o", pull, key, carried))
            mixed = np.einsum("hj,hio,o->ji", pull, target_vo, output)
            key = np.linalg.eigh(mixed + mixed.T)[1][:, -1]
        found.append(np.stack([query, key]))
    return np.stack(found)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-300)


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
