"""Figure 5: the error against the sequence length T, for several widths of the random source."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch

from strongticket.builders import build_attention
from strongticket.experiments.driver import Options, Run
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row, column, select, shares, spreads
from strongticket.experiments.tasks.angular import walks
from strongticket.experiments.tasks.circle import circle_errors
from strongticket.experiments.tasks.reach import entries_out_of_reach
from strongticket.experiments.tasks.sources import (
    CODE,
    TargetRecord,
    batches,
    certificates,
    digest,
    input_radius,
    load_target,
    source_seeds,
    trained_target,
)
from strongticket.nets import merge

VERSION = code_version(*CODE, "experiments/figures/figure5/_measure.py")
ASSIGNMENTS = ("balanced", "paper")
BATCH = 50  # sources per point: they share the work on the test sequences
SHORTEST = 4  # the length of the paper's Figure 4, which the others are compared with


@dataclass(frozen=True)
class Scale:
    """sequences: test sequences of each length."""

    widths: tuple[int, ...]
    lengths: tuple[int, ...] = tuple(2**k for k in range(2, 13))
    sources: int = 100
    sequences: int = 10_000
    training: dict[str, int] = field(default_factory=dict)


SCALES = {
    "laptop": Scale((8, 16, 24, 32, 48), sequences=500),
    "paper": Scale((8, 16, 24, 32, 48, 64)),
    "test": Scale((4, 8), (4, 16), 3, 16, {"epochs": 1, "samples": 256}),
}


@dataclass(frozen=True)
class Figure5:
    """What was measured.

    rows: one per source and length
    spreads: over the sources, one per assignment, width, length and error
    """

    options: Options
    scale: Scale
    rows: list[Row]
    spreads: list[Row]

    def of(self, assignment: str, n: int, error: str = "error_max") -> list[Row]:
        """Return the spreads of one assignment and width, by length."""
        return select(self.spreads, assignment=assignment, n=n, error=error)

    def growth(self, assignment: str, n: int) -> float:
        """Return the largest median error at any length over that at T = 4."""
        medians = column(self.of(assignment, n), "median")
        return max(medians) / medians[0]

    def failures(self) -> list[Row]:
        """Return for each assignment and width the share of sources with an entry out of reach."""
        shortest = select(self.rows, length=self.scale.lengths[0])
        return shares(shortest, ("assignment", "n"), lambda row: row["out_of_reach"] > 0)

    def settings(self) -> dict[str, Any]:
        options = self.options
        return asdict(self.scale) | {"learning_rate": options.learning_rate, "init": options.init}

    def numbers(self) -> dict[str, Any]:
        return {
            "largest_over_shortest": {
                name: {str(n): self.growth(name, n) for n in self.scale.widths} for name in ASSIGNMENTS
            },
            "failures": self.failures(),
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"errors.csv": self.rows, "spreads.csv": self.spreads, "failures.csv": self.failures()}

    def headline(self) -> list[tuple[str, str]]:
        worst = max(self.growth("balanced", n) for n in self.scale.widths)
        return [
            ("median error at any T over that at T = 4, at most", f"{worst:.2f} (ours, any n)"),
            ("certificate", "the same for every T"),
        ]


def measure(run: Run) -> Figure5:
    """Train the target, build a ticket of every source, and measure its errors at every length."""
    scale = SCALES[run.options.scale]
    record = trained_target(run, scale.training)
    points = _points(run.options, scale, digest(record))
    results = run.compute(
        f"{len(scale.lengths)} lengths up to {max(scale.lengths)}",
        partial(compute, record=record),
        points,
        VERSION,
    )
    rows = [row for point, result in zip(points, results, strict=True) for row in _rows(point, result)]
    rows.sort(key=lambda row: (row["assignment"], row["n"], row["length"], row["source"]))
    spread = spreads(rows, ("assignment", "n", "length"), ("error_max", "error_mean", "bound"))
    return Figure5(run.options, scale, rows, spread)


def compute(settings: Settings, record: TargetRecord) -> dict[str, list[Any]]:
    """Build one batch of tickets at one width; return errors[length][source] and certificates[source].

    settings: a point
    record: the trained target, which the settings name by its digest
    """
    target = load_target(record)
    tickets = [
        build_attention(
            target.network,
            width=settings["n"],
            certificate=False,
            seed=seed,
            assignment=settings["assignment"],
            init=settings["init"],
        )
        for seed in source_seeds(settings)
    ]
    networks = [ticket.network(dtype=torch.float64) for ticket in tickets]
    merged_target = merge(target.network, torch.float64)
    merged = [merge(network, torch.float64) for network in networks]
    query_key = torch.cat([network.query_key for network in merged])
    value_output = torch.cat([network.value_output for network in merged])
    test = walks(settings["seed"], "test", settings["sequences"])
    out_of_reach = [entries_out_of_reach(ticket, merged_target) for ticket in tickets]
    result: dict[str, list[Any]] = {"error_max": [], "error_mean": [], "out_of_reach": out_of_reach}
    for length in settings["lengths"]:
        errors = circle_errors(merged_target, query_key, value_output, target.token, test.angles(length))
        result["error_max"].append(errors.largest.tolist())
        result["error_mean"].append(errors.mean.tolist())
    return result | certificates(target.network, networks, input_radius(target))


def _points(options: Options, scale: Scale, target: str) -> list[Settings]:
    return [
        dict(
            figure=5,
            target=target,
            assignment=assignment,
            init=options.init,
            n=n,
            lengths=list(scale.lengths),
            seed=options.seed,
            first=first,
            count=count,
            sequences=scale.sequences,
        )
        for n in sorted(scale.widths, reverse=True)
        for assignment in ASSIGNMENTS
        for first, count in batches(scale.sources, BATCH)
    ]


def _rows(point: Settings, result: dict[str, list[Any]]) -> list[Row]:
    return [
        dict(
            assignment=point["assignment"],
            init=point["init"],
            n=point["n"],
            length=length,
            source=point["first"] + i,
            out_of_reach=result["out_of_reach"][i],
            error_max=result["error_max"][t][i],
            error_mean=result["error_mean"][t][i],
            bound=result["bound"][i],
            paper_bound=result["paper_bound"][i],
        )
        for t, length in enumerate(point["lengths"])
        for i in range(point["count"])
    ]
