"""Figure 5: the error against the sequence length T, for several widths of the random source."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch

from strongticket.build import build_attention
from strongticket.experiments.angular import walks
from strongticket.experiments.circle import circle_errors
from strongticket.experiments.reproduce import Options, Step
from strongticket.experiments.runner import Settings, code_version
from strongticket.experiments.synthetic import (
    CODE,
    batches,
    certificates,
    digest,
    input_radius,
    load_target,
    source_seeds,
    spread,
    trained_target,
)
from strongticket.nets import merge
from strongticket.report import Summary, write_results

VERSION = code_version(*CODE, "experiments/figure5.py")
ASSIGNMENTS = ("balanced", "paper")
BATCH = 50  # sources a point: they share the work on the test sequences
SHORTEST = 4  # the paper's length of figure 4: the one to compare with


@dataclass(frozen=True)
class Scale:
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
class Result:
    """All that the page tells of. rows: one a source and length; spreads: over the sources."""

    options: Options
    scale: Scale
    rows: list[dict[str, Any]]
    spreads: list[dict[str, Any]]

    def of(self, assignment: str, n: int, error: str = "error_max") -> list[dict[str, Any]]:
        """One line's spreads, by length."""
        wanted = (assignment, n, error)
        return [s for s in self.spreads if (s["assignment"], s["n"], s["error"]) == wanted]

    def growth(self, assignment: str, n: int) -> float:
        """The largest mean error of any length over that at T = 4."""
        means = [s["mean"] for s in self.of(assignment, n)]
        return max(means) / means[0]


def run(options: Options, step: Step) -> dict[str, Any]:
    from strongticket.experiments.figure5_page import charts, draw_page

    start = time.perf_counter()
    scale = SCALES[options.scale]
    record = trained_target(options, scale.training, step, "figure 5")
    points = _points(options, scale, digest(record))
    with step(f"figure 5: {len(scale.lengths)} lengths up to {max(scale.lengths)}") as advance:
        found = options.results(partial(compute, record=record), points, VERSION, advance)
    rows = sorted((row for p, r in zip(points, found, strict=True) for row in _rows(p, r)), key=_order)
    result = Result(options, scale, rows, _spreads(rows))
    folder = options.out / "figure5"
    folder.mkdir(parents=True, exist_ok=True)
    charts(result, folder)
    growth = {name: {str(n): result.growth(name, n) for n in scale.widths} for name in ASSIGNMENTS}
    settings = asdict(scale) | {"learning_rate": options.learning_rate, "init": options.init}
    summary = Summary(
        options.command("figure5"),
        options.seed,
        settings,
        {"largest_over_shortest": growth},
        time.perf_counter() - start,
    )
    page = write_results(
        folder, draw_page(result), summary, {"errors.csv": rows, "spreads.csv": result.spreads}
    )
    worst = max(growth["balanced"].values())
    return {
        "figure": "figure5",
        "page": str(page),
        "seconds": round(summary.seconds, 1),
        "headline": [
            ("error at any T over error at T = 4, at most", f"{worst:.2f} (ours, any n)"),
            ("certificate", "the same for every T"),
        ],
        **summary.results,
    }


def compute(settings: Settings, record: dict[str, Any]) -> dict[str, Any]:
    """One batch of sources at one width -> errors, a list a length with one number a source; certificates."""
    target = load_target(record)
    networks = [
        build_attention(
            target.network,
            width=settings["n"],
            certificate=False,
            seed=seed,
            assignment=settings["assignment"],
            init=settings["init"],
        ).network()
        for seed in source_seeds(settings)
    ]
    merged = [merge(network, torch.float64) for network in networks]
    query_key = torch.cat([network.query_key for network in merged])
    value_output = torch.cat([network.value_output for network in merged])
    test = walks(settings["seed"], "test", settings["sequences"])
    result: dict[str, Any] = {"error_max": [], "error_mean": []}
    for length in settings["lengths"]:
        goal = merge(target.network, torch.float64)
        errors = circle_errors(goal, query_key, value_output, target.token, test.angles(length))
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


def _rows(point: Settings, result: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        dict(
            assignment=point["assignment"],
            init=point["init"],
            n=point["n"],
            length=length,
            source=point["first"] + i,
            error_max=result["error_max"][t][i],
            error_mean=result["error_mean"][t][i],
            bound=result["bound"][i],
            paper_bound=result["paper_bound"][i],
        )
        for t, length in enumerate(point["lengths"])
        for i in range(point["count"])
    ]


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["assignment"], row["n"], row["length"], row["source"]


def _spreads(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["assignment"], row["n"], row["length"]), []).append(row)
    return [
        dict(assignment=assignment, n=n, length=length, error=error, **spread([row[error] for row in group]))
        for (assignment, n, length), group in groups.items()
        for error in ("error_max", "error_mean", "bound")
    ]
