"""Figure 6: the error against n_MHA = n_FC for transformers of 1 … 6 blocks, the target untrained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from strongticket.builders import build_transformer
from strongticket.builders.options import Assignment
from strongticket.experiments.driver import Options, Run
from strongticket.experiments.fit import Decay, fit_errors, fit_gamma, fit_logs
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row, column, select, shares, spreads
from strongticket.experiments.tasks.angular import SHORTEST, walks
from strongticket.experiments.tasks.sources import CODE, Stack, batches, largest_and_mean, source_seeds
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer, certify, initialise

VERSION = code_version(*CODE, "experiments/figures/figure6/_measure.py")
ERRORS = ("error_max", "error_mean", "bound")
BLOCKS = 6
OUTLIER = 10  # a source fails if its error is this many times the median
RADIUS = 1 + 1e-6  # of the inputs: the unit circle up to float32 rounding, the token at its start, zero
_ROWS = 50_000  # of (source, sequence) evaluated at once


@dataclass(frozen=True)
class Scale:
    """sequences: test sequences
    certified: how many of the sources get a certificate, which costs more than their ticket
    """

    widths: tuple[int, ...]
    sources: int = 100
    sequences: int = 10_000
    certified: int = 100


SCALES = {
    # Up to 80: two rows share attention's units, and past 40 per row the paper's assignment has no exact optimum.
    "laptop": Scale(tuple(range(8, 81, 12)), sequences=1000, certified=10),
    "paper": Scale(tuple(range(8, 81, 8))),
    "test": Scale((8, 12, 16), 2, 16, 1),
}


@dataclass(frozen=True)
class Line:
    """One curve. normalised: the target's matrices are shrunk to norm 1 at most, as the theorems assume."""

    assignment: Assignment
    normalised: bool = True

    @property
    def name(self) -> str:
        author = {"balanced": "ours", "paper": "paper"}[self.assignment]
        return author if self.normalised else f"{author}-as-printed"


OURS, PAPER, PRINTED = Line("balanced"), Line("paper"), Line("balanced", normalised=False)


@dataclass(frozen=True)
class Figure6:
    """What was measured.

    rows: one per source and number of blocks
    spreads: over the sources, one per line, number of blocks, width and error
    shared: line -> one curve per number of blocks, with the δ of one block
    own: the same, each with its own δ
    least_squares: line -> curve of one block, fitted on ε as the paper does
    """

    options: Options
    scale: Scale
    rows: list[Row]
    spreads: list[Row]
    shared: dict[str, list[Decay]]
    own: dict[str, list[Decay]]
    least_squares: dict[str, Decay]

    def of(self, line: Line, blocks: int, error: str = "error_max") -> list[Row]:
        """Return the spreads of one line and number of blocks, by width."""
        return select(self.spreads, line=line.name, blocks=blocks, error=error)

    def certified(self, line: Line, blocks: int, n: int) -> list[Row]:
        """Return the rows of the sources that have a certificate."""
        rows = select(self.rows, line=line.name, blocks=blocks, n=n)
        return [row for row in rows if row["bound"] is not None]

    def failures(self) -> list[Row]:
        """Return for each line, number of blocks and width the share of sources far above the median."""
        medians = {
            (s["line"], s["blocks"], s["n"]): s["median"] for s in select(self.spreads, error="error_max")
        }
        return shares(
            self.rows,
            ("line", "blocks", "n"),
            lambda row: row["error_max"] > OUTLIER * medians[row["line"], row["blocks"], row["n"]],
        )

    def settings(self) -> dict[str, Any]:
        return asdict(self.scale) | {"init": self.options.init}

    def numbers(self) -> dict[str, Any]:
        return {
            "shared_delta": {name: fits[0].delta for name, fits in self.shared.items()},
            "r2": {name: [fit.r2 for fit in fits] for name, fits in self.shared.items()},
            "gamma": {name: [fit.gamma for fit in fits] for name, fits in self.shared.items()},
            "own_delta": {name: [fit.delta for fit in fits] for name, fits in self.own.items()},
            "failures": self.failures(),
            "least_squares": {name: fit.to_dict() for name, fit in self.least_squares.items()},
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"errors.csv": self.rows, "spreads.csv": self.spreads, "failures.csv": self.failures()}

    def headline(self) -> list[tuple[str, str]]:
        ours = self.shared[OURS.name]
        return [
            ("δ of one block, used for all", f"{ours[0].delta:.3f}"),
            ("R² of the log fits with that δ, at least", f"{min(fit.r2 for fit in ours):.3f}"),
            (f"γ of {BLOCKS} blocks over γ of one", f"{ours[-1].gamma / ours[0].gamma:.3g}"),
        ]


def measure(run: Run) -> Figure6:
    """Build a ticket of every random transformer and measure the error after each block."""
    scale = SCALES[run.options.scale]
    points = _points(run.options, scale)
    tickets = sum(point["count"] for point in points)
    results = run.compute(f"{tickets} random transformers of {BLOCKS} blocks", compute, points, VERSION)
    rows = [row for point, result in zip(points, results, strict=True) for row in _rows(point, result)]
    rows.sort(key=lambda row: (row["line"], row["blocks"], row["n"], row["source"]))
    spread = spreads(rows, ("line", "blocks", "n"), ERRORS, skip_gaps_in=ERRORS)
    return _fitted(run.options, scale, rows, spread)


def make_target(seed: int, *, normalised: bool, blocks: int = BLOCKS) -> Transformer:
    """Draw single heads of width 2 with d_K = 8 and one-layer feed-forward networks, as in appendix B.1.

    seed: of its weights
    normalised: shrink its matrices to norm 1 at most
    blocks: the first B blocks of a larger target are the target of B blocks, as every block is drawn by its name
    """
    target = Transformer(
        [Block(MultiHeadAttention(2, 2, 1, 8, 8), ReluNetwork([2, 2])) for _ in range(blocks)]
    )
    initialise(target, seed, normalised=normalised)
    return target.requires_grad_(False)


def compute(settings: Settings) -> dict[str, list[list[float]]]:
    """Build one batch of tickets at one width; return errors and bounds as [blocks][source].

    The first B blocks of a six-block source are the source of B blocks: one build serves all six curves.

    settings: a point
    """
    line = Line(**settings["line"])
    target = make_target(settings["seed"], normalised=line.normalised)
    networks = [
        build_transformer(
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
    result: dict[str, list[list[float]]] = {"error_max": [], "error_mean": []}
    for errors in _block_errors(target, networks, x):
        for name, values in largest_and_mean(errors).items():
            result[name].append(values)
    certified = [
        certify(target, network, RADIUS).terms["error"] for network in networks[: settings["certified"]]
    ]
    result["bound"] = [[bounds[b] for bounds in certified] for b in range(BLOCKS)]
    return result


def _block_errors(target: Transformer, networks: Sequence[Any], x: Tensor) -> list[Tensor]:
    """Return ‖source − target‖ after each block, (sources, sequences · positions)."""
    exact = [Stack([block]) for block in target.blocks]
    pruned = [Stack([network.blocks[b] for network in networks]) for b in range(BLOCKS)]
    errors: list[list[Tensor]] = [[] for _ in range(BLOCKS)]
    for part in x.split(max(1, _ROWS // len(networks))):
        of_target, of_sources = part[None], part.expand(len(networks), *part.shape)
        for b in range(BLOCKS):
            of_target, of_sources = exact[b](of_target), pruned[b](of_sources)
            errors[b].append((of_sources - of_target).norm(dim=-1).flatten(1))
    return [torch.cat(parts, 1) for parts in errors]


def _points(options: Options, scale: Scale) -> list[Settings]:
    points = [
        dict(
            figure=6,
            line=asdict(line),
            init=options.init,
            n=n,
            seed=options.seed,
            first=first,
            count=count,
            sequences=scale.sequences,
            certified=max(0, min(count, scale.certified - first)) if line == OURS else 0,
        )
        for line in (OURS, PAPER, PRINTED)
        for n in scale.widths
        for first, count in batches(scale.sources)
    ]
    return sorted(points, key=lambda point: -point["n"])


def _rows(point: Settings, result: dict[str, list[list[float]]]) -> list[Row]:
    line = Line(**point["line"])
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


def _fitted(options: Options, scale: Scale, rows: list[Row], spread: list[Row]) -> Figure6:
    result = Figure6(options, scale, rows, spread, {}, {}, {})
    for line in (OURS, PAPER, PRINTED):
        n = column(result.of(line, 1), "n")
        medians = [column(result.of(line, b), "median") for b in range(1, BLOCKS + 1)]
        result.own[line.name] = [fit_logs(n, errors) for errors in medians]
        delta = result.own[line.name][0].delta
        result.shared[line.name] = [fit_gamma(n, errors, delta) for errors in medians]
        result.least_squares[line.name] = fit_errors(n, column(result.of(line, 1), "mean"))
    return result
