"""Inputs that look for the largest error: random ones, and ones that gradient ascent made worse."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from benchmarks.random_tickets import heads_of

from strongticket import nets
from strongticket.builders import build_network
from strongticket.nets import output_error, probe_inputs

TOKENS = (1, 2, 3, 8)
STEPS = 30
RESTARTS = 256  # at once


def targets() -> dict[str, torch.nn.Module]:
    """Attention of every make, and a ReLU network and a block."""
    attention = nets.MultiHeadAttention
    return {
        "one head": attention(3, 2, 1, 3, 3),
        "four heads": attention(8, 8, 4, 2, 2),
        "wide": attention(16, 4, 2, 8, 8),
        "biases": attention(4, 4, 2, 2, 2, bias=True, output_bias=True),
        "shared keys": attention(4, 4, 4, 2, 2, kv_heads=2),
        "relu": nets.ReluNetwork([4, 8, 3], bias=True),
        "block": nets.Block(attention(4, 4, 2, 2, 2), nets.ReluNetwork([4, 8, 4])),
    }


def attack_certificates(inputs: int) -> list[dict[str, Any]]:
    """`inputs` in all, half of them ascended, on tickets of two widths; one row a ticket."""
    tickets = [(name, network, n) for name, network in targets().items() for n in (4, 14)]
    share = -(-inputs // len(tickets))
    return [_attack(*each, share, seed) for seed, each in enumerate(tickets)]


def _attack(name: str, target: torch.nn.Module, per_row: int, inputs: int, seed: int) -> dict[str, Any]:
    nets.initialise(target, seed=seed, normalised=True)
    ticket = build_network(target, per_row=per_row, seed=seed)
    assert ticket.certificate
    radius, bound = ticket.certificate["radius"], ticket.certificate["bound"]
    source, goal = ticket.network(dtype=torch.float64), nets.Merged(target.double())
    share = -(-inputs // (2 * len(TOKENS)))
    probes = [probe_inputs(goal, radius, share, count, seed) for count in TOKENS]
    random = torch.cat(
        [
            output_error(goal, source, x).amax(-1) if x.ndim == 3 else output_error(goal, source, x)
            for x in probes
        ]
    )
    ascended = _ascend(source, goal, heads_of(target), probes[0].shape[-1], radius, inputs // 2, seed)
    limit = bound + 1e-13 * (1 + radius)  # rounding of running both in float64
    return {
        "ticket": f"{name}, {per_row} a row",
        "random": len(random),
        "ascended": sum(each.attempts for each in ascended),
        "above": int((random > limit).sum()) + sum(each.error > limit for each in ascended),
        "random_error": float(random.max()),
        "ascended_error": max(each.error for each in ascended),
        "bound": bound,
    }


def _ascend(
    source: torch.nn.Module,
    goal: torch.nn.Module,
    heads: int | None,
    dim: int,
    radius: float,
    inputs: int,
    seed: int,
) -> list[nets.Attack]:
    """At least `inputs` ascents in parts that fit the memory; of attention also with masks, each head's its own."""
    # Five masks for every length but one, and four sequences with masks of their own in every round.
    ways = len(TOKENS) if heads is None else 5 * len(TOKENS) - 4 + 16
    parts = -(-inputs // (ways * RESTARTS))
    options = dict(tokens=TOKENS, restarts=-(-inputs // (ways * parts)), steps=STEPS, heads=heads)
    return [
        nets.attack(source, goal, dim, radius, seed=1000 * seed + part, **options) for part in range(parts)
    ]


if __name__ == "__main__":
    json.dump(attack_certificates(int(sys.argv[1])), sys.stdout)
