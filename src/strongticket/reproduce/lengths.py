"""Sequences far longer than the paper's.

The error of attention tickets on up to 65,536 tokens, and language models whose context grows at equal tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from strongticket.builders import build_network
from strongticket.nets import MultiHeadAttention, certify, initialise
from strongticket.reproduce.plots import BOUND, COLOURS, PRINTED, Axes, curve, label
from strongticket.reproduce.rows import Row, select, spreads
from strongticket.reproduce.searches import scaled, searches
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.searching import SearchConfig, preset
from strongticket.work.store import Settings, code_version

VERSION = code_version("seeds", "subset_sum", "theory", "nets", "builders", "reproduce/lengths.py")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
METHODS = ("ticket", "dense")
RADIUS = 1.0
GROWTH = 2  # a median error that grows by less does not count: 4 tokens have fewer positions to be wrong at
_DIM, _KEY_DIM, _HEADS, _POSITIONS = 8, 8, 2, 16  # of the target, and how many positions are looked at


@dataclass(frozen=True)
class Lengths:
    """What is measured."""

    lengths: tuple[int, ...]  # of attention's input
    per_row: int  # units per row of the source
    sources: int
    contexts: tuple[int, ...]  # of the language models
    config: SearchConfig
    tokens: int  # per step of the language models
    seeds: int


def measure(run: Run, settings: Lengths) -> Tables:
    """Build tickets of attention and measure them at every length; search and train at every context."""
    shared = dict(per_row=settings.per_row, lengths=list(settings.lengths))
    points = [shared | {"seed": seed} for seed in run.seeds(settings.sources)]
    errors = run.rows(f"attention up to {max(settings.lengths):,} tokens", compute, points, VERSION, ())
    cases = [
        (dict(method=method, context=context, seed=seed), language(settings, method, context, seed))
        for seed in run.seeds(settings.seeds)
        for context in settings.contexts
        for method in METHODS
    ]
    losses = searches(run, cases)
    return {"errors": errors, "losses": losses} | spreads_of(errors, losses)


def spreads_of(errors: list[Row], losses: list[Row]) -> Tables:
    """Return the tables of errors over the sources and of losses over the seeds."""
    return {
        "error_spreads": spreads(errors, ("arithmetic", "length"), ("error",)),
        "loss_spreads": spreads(losses, ("method", "context"), ("loss",)),
    }


def compute(settings: Settings) -> list[Row]:
    """Build one ticket and return its largest error at every length, in float32 and float64.

    The error is that of a few positions against the target in float64, over tokens of random directions on the
    sphere of radius 1; all tokens are attended to.
    """
    seed = settings["seed"]
    target = MultiHeadAttention(_DIM, _DIM, _HEADS, _KEY_DIM, _KEY_DIM)
    initialise(target, seed=seed, normalised=True)
    ticket = build_network(target, width=settings["per_row"] * _DIM, seed=seed, radius=RADIUS)
    exact = target.double()
    generator = torch.Generator()
    rows = []
    for name, dtype in DTYPES.items():
        network = ticket.network(dtype=dtype)
        bound = certify(target, network, RADIUS).bound
        generator.manual_seed(seed)
        for length in settings["lengths"]:
            tokens = torch.randn(length, _DIM, generator=generator, dtype=torch.float64)
            tokens /= tokens.norm(dim=-1, keepdim=True) / RADIUS
            tokens = tokens.float().double()  # the same input in both arithmetics
            asked = tokens[:_POSITIONS]
            with torch.no_grad():
                found = network(asked.to(dtype), tokens.to(dtype)).double()
                error = float((found - exact(asked, tokens)).norm(dim=-1).max())
            rows.append(dict(arithmetic=name, length=length, source=seed, error=error, bound=bound))
    return rows


def language(settings: Lengths, method: str, context: int, seed: int) -> SearchConfig:
    """Return the search or training at one context: every step sees the same number of tokens."""
    batch = max(1, settings.tokens // context)
    config = settings.config.changed(context=context, batch=batch, micro_batch=min(batch, 16), seed=seed)
    return scaled(config, None, seed) if method == "dense" else config


def answer(tables: Tables, settings: Lengths) -> Answer:
    """Compare the median error at any length with that of the shortest, and every error with its certificate."""
    errors, losses = tables["error_spreads"], tables["loss_spreads"]
    medians = {name: [row["median"] for row in select(errors, arithmetic=name)] for name in DTYPES}
    growth = {name: max(found) / found[0] for name, found in medians.items()}
    bound = {name: max(row["bound"] for row in select(tables["errors"], arithmetic=name)) for name in DTYPES}
    above = sum(row["error"] > row["bound"] for row in tables["errors"])
    gaps = [
        ticket["mean"] - dense["mean"]
        for ticket, dense in zip(*(select(losses, method=method) for method in METHODS), strict=True)
    ]
    largest = max(growth.values())
    sentence = (
        f"{'No' if largest <= GROWTH and not above else 'Yes'}: up to {max(settings.lengths):,} tokens the median "
        f"error of an attention ticket is at most {largest:.2f} times that of {settings.lengths[0]} tokens, and "
        f"{above} of {len(tables['errors'])} errors exceed their certificate. In language models at equal tokens "
        f"the gap to dense training goes from {gaps[0]:.3f} nats at context {settings.contexts[0]:,} to "
        f"{gaps[-1]:.3f} at {settings.contexts[-1]:,}."
    )
    numbers = {
        "growth": growth,
        "bound": bound,
        "errors_above_their_certificate": above,
        "gap_to_dense": {str(context): gap for context, gap in zip(settings.contexts, gaps, strict=True)},
    }
    return Answer(sentence, numbers, errors)


def plot(tables: Tables, settings: Lengths, axes: Sequence[Axes]) -> None:
    """Draw the error against the length, below its certificate, and the loss against the context."""
    for name, style in zip(DTYPES, ("-", PRINTED), strict=True):  # one lies on the other
        rows = select(tables["error_spreads"], arithmetic=name)
        curve(axes[0], rows, x="length", band="quantiles", linestyle=style, label=f"error, {name}")
    bound = max(row["bound"] for row in tables["errors"])
    axes[0].axhline(bound, color=COLOURS[-1], linestyle=BOUND, label="largest certificate")
    label(axes[0], "attention", "tokens", "largest error", log="xy", ticks=settings.lengths[::2])
    for method in METHODS:
        rows = select(tables["loss_spreads"], method=method)
        curve(axes[1], rows, x="context", y="mean", band="std", label=method)
    label(axes[1], "language models", "context", "validation loss", log="x", ticks=settings.contexts)


_SEARCH = preset(
    "laptop", method="edge-popup", law="signed", qk_scale="paper", dim=64, heads=4, steps=200, warmup=20, lr=3e-3
)  # fmt: skip
_LAPTOP = Lengths(
    lengths=tuple(4**k for k in range(1, 9)),
    per_row=16,
    sources=5,
    contexts=(64, 256, 1024),
    config=_SEARCH,
    tokens=1024,
    seeds=3,
)
_QUICK = _SEARCH.changed(steps=100, warmup=10)
STUDY = Study(
    "Does the error grow on sequences far longer than the paper's?",
    {
        "quick": replace(_LAPTOP, lengths=_LAPTOP.lengths[:-1], sources=3, config=_QUICK, seeds=1),
        "laptop": _LAPTOP,
        "paper": Lengths(
            lengths=tuple(2**k for k in range(2, 17)),
            per_row=24,
            sources=100,
            contexts=(64, 128, 256, 512, 1024),
            config=preset("gpt2-mini", data="wikitext-103"),
            tokens=512 * 1024,
            seeds=3,
        ),
    },
    measure,
    answer,
    plot,
    panels=2,
)
