"""Figure 6: the error against n_MHA = n_FC for transformers of 1 to 6 blocks, the target untrained.

Single-head blocks of width 2 with d_K = 8, a one-layer feed-forward network and residuals, as in section 3.3 and
appendix B.1. The theorems assume matrices of spectral norm 1 at most, so the target is drawn as the appendix says
and then shrunk to that; two further lines leave it as drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from strongticket import theory
from strongticket.builders import build_network
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer, certify, initialise
from strongticket.reproduce import plots
from strongticket.reproduce.angular import SHORTEST, walks
from strongticket.reproduce.plots import COLOURS, FIT, PRINTED, Axes, curve, label
from strongticket.reproduce.rows import Decay, Row, failures, fit_logs, select, spreads
from strongticket.reproduce.sources import CODE, ROWS, Stack, batches, error_columns, source_seeds
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


# One way to make target and tickets: line -> what it is called; and how.
NAMES = {
    "ours": "ours",
    "paper": "paper's assignment, solved exactly",
    "ours-as-printed": "ours, target not normalised",
    "paper-as-printed": "paper's assignment, target not normalised",
}
# Normalised: the target's matrices are shrunk to norm 1 at most, as the theorems assume.
LINES: dict[str, dict[str, Any]] = {
    "ours": dict(assignment="balanced", normalised=True),
    "paper": dict(assignment="paper", normalised=True),
    "ours-as-printed": dict(assignment="balanced", normalised=False),
    "paper-as-printed": dict(assignment="paper", normalised=False),
}


def measure(run: Run, settings: Figure6) -> Tables:
    """Build a ticket of every random transformer and measure the error after each block."""
    points = []
    for line, made in LINES.items():
        certified = settings.certified if line == "ours" else 0
        shared = dict(line=line, **made, sequences=settings.sequences, certified=certified)
        for n in settings.widths:
            points += batches(run.seed, settings.sources, shared | {"n": n})
    points.sort(key=lambda point: -point["n"])  # the long ones first
    what = f"{sum(point['count'] for point in points)} random transformers of {BLOCKS} blocks"
    rows = run.rows(what, compute, points, VERSION, ("line", *LINES["ours"], "n"))
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
    drawn = [Block(MultiHeadAttention(2, 2, 1, 8, 8), ReluNetwork([2, 2])) for _ in range(blocks)]
    target = Transformer(drawn)
    initialise(target, seed, normalised=normalised)
    return target.requires_grad_(False)


def compute(settings: Settings) -> list[Row]:
    """Build one batch of tickets at one width; return a row of errors.csv for each ticket and number of blocks.

    The first B blocks of a six-block source are the source of B blocks: one build serves all six curves.
    """
    target = make_target(settings["seed"], normalised=settings["normalised"])
    how = dict(width=settings["n"], assignment=settings["assignment"], certificate=False)
    networks = [
        build_network(target, seed=seed, **how).network(dtype=torch.float64)
        for seed in source_seeds(settings)
    ]
    points = walks(settings["seed"], "test", settings["sequences"]).points(SHORTEST).double()
    x = torch.cat([torch.zeros(len(points), 1, 2).double(), points], 1)  # the token of an untrained target
    bounds: list[Any] = [[None] * BLOCKS for _ in networks]
    for i, network in enumerate(networks[: max(0, settings["certified"] - settings["first"])]):
        bounds[i] = certify(target, network, RADIUS).terms["error"]
    return [
        dict(blocks=b + 1, source=settings["first"] + i, bound=bounds[i][b]) | columns
        for b, errors in enumerate(_block_errors(target, networks, x))
        for i, columns in enumerate(error_columns(errors.amax(1), errors.mean(1)))
    ]


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


def _fits(line: str, found: list[Row]) -> list[Row]:
    """Fit the medians of each number of blocks with the δ of one block, as the paper does, and with its own."""
    rows: list[Row] = []
    for blocks in range(1, BLOCKS + 1):
        by_width = select(found, line=line, blocks=blocks, error="error_max")
        n, medians = ([row[name] for row in by_width] for name in ("n", "median"))
        own_delta = fit_logs(n, medians).delta
        shared = fit_logs(n, medians, rows[0]["delta"] if rows else own_delta)
        rows.append(dict(line=line, blocks=blocks, **asdict(shared), own_delta=own_delta))
    return rows


def amplification(blocks: int) -> float:
    """Return log of 2^(B−1)·Π_{j=2..B} 16H√d₁β_j²: how much Theorem 14 lets the first block's error grow."""
    radii = (theory.lemmas.block_radius_log(j, ALPHA, 1, 2) for j in range(2, blocks + 1))
    return sum(math.log(2) + math.log(16 * math.sqrt(2)) + 2 * radius for radius in radii)


def answer(tables: Tables, settings: Figure6) -> Answer:
    """Say how much γ grows with the blocks, beside what Theorem 14 allows for."""
    ours = select(tables["fits"], line="ours")
    growth = ours[-1]["gamma"] / ours[0]["gamma"]
    sentence = (
        f"Fitted as the paper does, with the δ = {ours[0]['delta']:.3g} of one block for all, the factor γ of the "
        f"error grows {growth:.3g} times from one block to {BLOCKS}, with R² at least "
        f"{min(fit['r2'] for fit in ours):.2f}. Theorem 14, which must hold for any target, allows for "
        f"{math.exp(amplification(BLOCKS)):.2g} times."
    )
    numbers = {
        "shared_delta": {line: select(tables["fits"], line=line)[0]["delta"] for line in NAMES},
        **{
            name: {line: [fit[name] for fit in select(tables["fits"], line=line)] for line in NAMES}
            for name in ("r2", "gamma", "own_delta")
        },
        "failures": tables["failures"],
    }
    return Answer(sentence, numbers, [_against_theorem(tables, fit) for fit in ours])


def _against_theorem(tables: Tables, fit: Row) -> Row:
    """Return a line of the table: what was measured with so many blocks, and what Theorem 14 says of it."""
    blocks = fit["blocks"]
    constant = theory.measured_constant("relu", "norm")
    layers = theory.transformer_widths(EPSILON, 2, 1, ALPHA, 1, blocks, constant=constant)
    one = select(tables["fits"], line="ours", blocks=1)[0]
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
    }


def plot(tables: Tables, settings: Figure6, axes: Sequence[Axes]) -> None:
    """Draw the errors of both assignments with their fits, and how they grow with the blocks."""
    *widths, growth = axes
    numbers = list(range(1, BLOCKS + 1))
    for axis, line, marker in zip(widths, ("ours", "paper"), "os", strict=True):
        fits = select(tables["fits"], line=line)
        for colour, fit in zip(COLOURS, fits, strict=True):
            medians = select(tables["spreads"], line=line, blocks=fit["blocks"], error="error_max")
            band: plots.Band = "quantiles" if fit["blocks"] in (1, BLOCKS) else ""
            name = "1 block" if fit["blocks"] == 1 else f"{fit['blocks']} blocks"
            curve(axis, medians, band=band, color=colour, label=name)
            fitted = Decay(fit["gamma"], fit["delta"], fit["r2"])
            axis.plot(
                settings.widths, fitted(settings.widths), FIT, color=colour, label=f"γ = {fit['gamma']:.3g}"
            )
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
