"""Figure 6: the error against n_MHA = n_FC for transformers of 1 to 6 blocks, the target untrained.

Single-head blocks of width 2 with d_K = 8, a one-layer feed-forward network and residuals, as in section 3.3 and
appendix B.1. The theorems assume matrices of spectral norm 1 at most, so the target is drawn as the appendix says
and then shrunk to that; a third line leaves it as drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strongticket import theory
from strongticket.builders import build_network
from strongticket.builders.product import Assignment
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer, certify, initialise
from strongticket.reproduce import plots
from strongticket.reproduce.angular import SHORTEST, walks
from strongticket.reproduce.plots import COLOURS, FIT, PRINTED, Axes, curve, label
from strongticket.reproduce.rows import Row, failures, fit_errors, fit_logs, select, spreads
from strongticket.reproduce.sources import CODE, ROWS, Stack, batches, source_seeds
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.work.store import Settings, code_version

VERSION = code_version(*CODE, "reproduce/figure6.py")
BLOCKS = 6
OUTLIER = 10  # a source fails if its error is this many times the median
RADIUS = 1 + 1e-6  # of the inputs: the unit circle up to float32 rounding, the token at its start, zero
ALPHA = math.sqrt(2)  # the smallest radius that the theorems allow: α ≥ √d₁
EPSILON = 0.1  # the error whose width is compared with Theorem 14's


@dataclass(frozen=True)
class Figure6:
    """What is measured."""

    widths: tuple[int, ...]
    sources: int = 100
    sequences: int = 10_000  # test sequences
    certified: int = 100  # how many of the sources get a certificate, which costs more than their ticket
    init: str = "theory"  # of queries and keys


@dataclass(frozen=True)
class TargetVariant:
    """One way to make target and tickets."""

    assignment: Assignment
    normalised: bool = True  # the target's matrices are shrunk to norm 1 at most, as the theorems assume

    @property
    def name(self) -> str:
        author = {"balanced": "ours", "paper": "paper"}[self.assignment]
        return author if self.normalised else f"{author}-as-printed"


OURS, AS_PAPER = TargetVariant("balanced"), TargetVariant("paper")
AS_PRINTED = TargetVariant("balanced", normalised=False)
NAMES = {
    OURS: "ours",
    AS_PAPER: "paper's assignment, solved exactly",
    AS_PRINTED: "ours, target not normalised",
}


def measure(run: Run, settings: Figure6) -> Tables:
    """Build a ticket of every random transformer and measure the error after each block."""
    points = _points(run.seed, settings)
    tickets = sum(point["count"] for point in points)
    results = run.map(f"{tickets} random transformers of {BLOCKS} blocks", compute, points, VERSION)
    rows = [row for point, result in zip(points, results, strict=True) for row in _rows(point, result)]
    rows.sort(key=lambda row: (row["line"], row["blocks"], row["n"], row["source"]))
    by = ("line", "blocks", "n")
    found = spreads(rows, by, ("error_max", "error_mean", "bound"))
    medians = {tuple(row[name] for name in by): row["median"] for row in select(found, error="error_max")}
    return {
        "errors": rows,
        "spreads": found,
        "failures": failures(
            rows, by, lambda row: row["error_max"] > OUTLIER * medians[row["line"], row["blocks"], row["n"]]
        ),
        "fits": [fit for line in NAMES for fit in _fits(line, found)],
    }


def make_target(seed: int, *, normalised: bool, blocks: int = BLOCKS) -> Transformer:
    """Draw single heads of width 2 with d_K = 8 and one-layer feed-forward networks, as in appendix B.1.

    The first B blocks of a larger target are the target of B blocks, as every block is drawn by its name.
    """
    target = Transformer(
        [Block(MultiHeadAttention(2, 2, 1, 8, 8), ReluNetwork([2, 2])) for _ in range(blocks)]
    )
    initialise(target, seed, normalised=normalised)
    return target.requires_grad_(False)


def compute(settings: Settings) -> dict[str, list[list[float]]]:
    """Build one batch of tickets at one width; return errors and bounds as [blocks][source].

    The first B blocks of a six-block source are the source of B blocks: one build serves all six curves.
    """
    line = TargetVariant(**settings["line"])
    target = make_target(settings["seed"], normalised=line.normalised)
    networks = [
        build_network(
            target,
            width=settings["n"],
            certificate=False,
            seed=seed,
            assignment=line.assignment,
            init=settings["init"],
        ).network(dtype=torch.float64)
        for seed in source_seeds(settings)
    ]
    points = walks(settings["seed"], "test", settings["sequences"]).points(SHORTEST).double()
    x = torch.cat([torch.zeros(len(points), 1, 2).double(), points], 1)  # the token of an untrained target
    errors = _block_errors(target, networks, x)
    certified = [
        certify(target, network, RADIUS).terms["error"] for network in networks[: settings["certified"]]
    ]
    return {
        "error_max": [of_block.amax(1).tolist() for of_block in errors],
        "error_mean": [of_block.mean(1).tolist() for of_block in errors],
        "bound": [[bounds[b] for bounds in certified] for b in range(BLOCKS)],
    }


def _block_errors(target: Transformer, networks: Sequence[Any], x: Tensor) -> list[Tensor]:
    """Return ‖source − target‖ after each block, (sources, sequences · positions)."""
    exact = [Stack([block]) for block in target.blocks]
    pruned = [Stack([network.factors.blocks[b] for network in networks]) for b in range(BLOCKS)]
    errors: list[list[Tensor]] = [[] for _ in range(BLOCKS)]
    for part in x.split(max(1, ROWS // len(networks))):
        of_target, of_sources = part[None], part.expand(len(networks), *part.shape)
        for b in range(BLOCKS):
            of_target, of_sources = exact[b](of_target), pruned[b](of_sources)
            errors[b].append((of_sources - of_target).norm(dim=-1).flatten(1))
    return [torch.cat(parts, 1) for parts in errors]


def _points(seed: int, settings: Figure6) -> list[Settings]:
    points = [
        dict(
            figure=6,
            line=asdict(line),
            init=settings.init,
            n=n,
            seed=seed,
            first=first,
            count=count,
            sequences=settings.sequences,
            certified=max(0, min(count, settings.certified - first)) if line == OURS else 0,
        )
        for line in NAMES
        for n in settings.widths
        for first, count in batches(settings.sources)
    ]
    return sorted(points, key=lambda point: -point["n"])


def _rows(point: Settings, result: dict[str, list[list[float]]]) -> list[Row]:
    line = TargetVariant(**point["line"])
    return [
        dict(
            line=line.name,
            **asdict(line),
            init=point["init"],
            n=point["n"],
            blocks=b + 1,
            source=point["first"] + i,
            error_max=result["error_max"][b][i],
            error_mean=result["error_mean"][b][i],
            bound=result["bound"][b][i] if i < point["certified"] else None,
        )
        for b in range(BLOCKS)
        for i in range(point["count"])
    ]


def _fits(line: TargetVariant, found: list[Row]) -> list[Row]:
    """Fit the medians of each number of blocks with the δ of one block, as the paper does, and with its own."""
    rows: list[Row] = []
    for blocks in range(1, BLOCKS + 1):
        by_width = select(found, line=line.name, blocks=blocks, error="error_max")
        n, medians, means = ([row[name] for row in by_width] for name in ("n", "median", "mean"))
        own = fit_logs(n, medians)
        delta = rows[0]["delta"] if rows else own.delta
        shared, on_means = fit_logs(n, medians, delta), fit_errors(n, means) if blocks == 1 else None
        rows.append({
            "line": line.name,
            "blocks": blocks,
            "gamma": shared.gamma,
            "delta": delta,
            "r2": shared.r2,
            "own_delta": own.delta,
            "own_r2": own.r2,
            "least_squares": on_means.formula() if on_means else None,
        })  # fmt: skip
    return rows


def amplification(blocks: int) -> float:
    """Return log of 2^(B−1)·Π_{j=2..B} 16H√d₁β_j²: how much Theorem 14 lets the first block's error grow."""
    radii = (theory.lemmas.block_radius_log(j, ALPHA, 1, 2) for j in range(2, blocks + 1))
    return sum(math.log(2) + math.log(16 * math.sqrt(2)) + 2 * radius for radius in radii)


def answer(tables: Tables, settings: Figure6) -> Answer:
    """Say how much γ grows with the blocks, beside what Theorem 14 allows for."""
    fits = {line.name: select(tables["fits"], line=line.name) for line in NAMES}
    ours = fits[OURS.name]
    growth = ours[-1]["gamma"] / ours[0]["gamma"]
    sentence = (
        f"Fitted as the paper does, with the δ = {ours[0]['delta']:.3g} of one block for all, the factor γ of the "
        f"error grows {growth:.3g} times from one block to {BLOCKS}, with R² at least "
        f"{min(fit['r2'] for fit in ours):.2f}. Theorem 14, which must hold for any target, allows for "
        f"{math.exp(amplification(BLOCKS)):.2g} times."
    )
    numbers = {
        "shared_delta": {name: rows[0]["delta"] for name, rows in fits.items()},
        "r2": {name: [row["r2"] for row in rows] for name, rows in fits.items()},
        "gamma": {name: [row["gamma"] for row in rows] for name, rows in fits.items()},
        "own_delta": {name: [row["own_delta"] for row in rows] for name, rows in fits.items()},
        "failures": tables["failures"],
    }
    return Answer(sentence, numbers, [_against_theorem(tables, fit) for fit in ours])


def _against_theorem(tables: Tables, fit: Row) -> Row:
    """Return a line of the table: what was measured with so many blocks, and what Theorem 14 says of it."""
    blocks = fit["blocks"]
    constant = theory.measured_constant("relu", "norm")
    layers = theory.transformer_widths(EPSILON, 2, 1, ALPHA, 1, blocks, constant=constant)
    one = select(tables["fits"], line=OURS.name, blocks=1)[0]
    bound = select(tables["spreads"], line=OURS.name, blocks=blocks, error="bound")[-1]
    sources = select(tables["errors"], line=OURS.name, blocks=blocks, n=bound["n"])
    # Of the certified sources alone: medians of different sources would not compare.
    certified = [row["error_max"] for row in sources if row["bound"] is not None]
    return {
        "blocks": blocks,
        "γ_B / γ_1": fit["gamma"] / one["gamma"],
        "Theorem 14's factor": math.exp(amplification(blocks)),
        "own δ": fit["own_delta"],
        "R² with the shared δ": fit["r2"],
        f"n for ε = {EPSILON:g}, from the fit": max(
            1, round(math.log(fit["gamma"] / EPSILON) / fit["delta"])
        ),
        "n that Theorem 14 asks for": max(max(layer.n_MHA.width, layer.n_FC.width) for layer in layers),
        f"error at n = {bound['n']}": float(np.median(certified)),
        "certificate there": bound["median"],
    }


def plot(tables: Tables, settings: Figure6, axes: Sequence[Axes]) -> None:
    """Draw the errors of both assignments with their fits, and how they grow with the blocks."""
    *widths, growth = axes
    numbers = list(range(1, BLOCKS + 1))
    for axis, line, marker in zip(widths, (OURS, AS_PAPER), "os", strict=True):
        fits = select(tables["fits"], line=line.name)
        for colour, fit in zip(COLOURS, fits, strict=True):
            medians = select(tables["spreads"], line=line.name, blocks=fit["blocks"], error="error_max")
            band: plots.Band = "quantiles" if fit["blocks"] in (1, BLOCKS) else ""
            name = "1 block" if fit["blocks"] == 1 else f"{fit['blocks']} blocks"
            curve(axis, medians, band=band, color=colour, label=name)
            fitted = [fit["gamma"] * math.exp(-fit["delta"] * n) for n in settings.widths]
            axis.plot(settings.widths, fitted, FIT, color=colour, label=f"γ = {fit['gamma']:.3g}")
        title = f"{NAMES[line]}; δ = {fits[0]['delta']:.3f}"
        label(axis, title, "hidden dimensions $n_{MHA} = n_{FC}$", "largest output error ε", below=4)
        factors = [fit["gamma"] / fits[0]["gamma"] for fit in fits]
        growth.plot(numbers, factors, marker=marker, label=NAMES[line])
    allowed = [math.exp(amplification(blocks)) for blocks in numbers]
    growth.plot(numbers, allowed, PRINTED, color=COLOURS[5], label="Theorem 14's worst case")
    label(growth, "error against that of one block", "blocks $B$", "factor", ticks=numbers)


STUDY = Study(
    "How does the error grow with the number of blocks?",
    {
        "quick": Figure6((8, 32, 56, 80), sources=10, sequences=200, certified=2),
        # Up to 80: two rows share attention's units, and past 40 per row the paper's assignment has no exact optimum.
        "laptop": Figure6(tuple(range(8, 81, 12)), sequences=1000, certified=10),
        "paper": Figure6(tuple(range(8, 81, 8))),
    },
    measure,
    answer,
    plot,
    panels=3,
)
