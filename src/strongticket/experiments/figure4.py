"""Figure 4: the error against the hidden dimensions n_K = n_V of the random source, at T = 4."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from strongticket.build import build_attention
from strongticket.build.source import Assignment, Init
from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.experiments.angular import SAMPLES, Target, walks
from strongticket.experiments.fit import Decay, fit_errors, fit_logs
from strongticket.experiments.reproduce import Options, Step
from strongticket.experiments.runner import Settings, code_version
from strongticket.experiments.synthetic import (
    CODE,
    batches,
    certificates,
    digest,
    input_radius,
    load_target,
    output_errors,
    source_seeds,
    spread,
    trained_target,
)
from strongticket.report import Summary, write_results

VERSION = code_version(*CODE, "experiments/figure4.py")


@dataclass(frozen=True)
class Scale:
    widths: tuple[int, ...]
    other_widths: tuple[int, ...]  # of the two other initialisations
    mip_widths: tuple[int, ...]
    sources: int = 100
    samples: int = SAMPLES  # test sequences
    training: dict[str, int] = field(default_factory=dict)


SCALES = {
    "laptop": Scale(tuple(range(4, 65, 4)), (4, 8, 16, 24, 32, 40), tuple(range(4, 25, 4))),
    "paper": Scale(tuple(range(2, 81, 2)), tuple(range(4, 65, 4)), tuple(range(2, 33, 2))),
    "test": Scale((4, 6, 8), (4, 6, 8), (4, 6), 3, 64, {"epochs": 1, "samples": 256}),
}


@dataclass(frozen=True)
class Line:
    """One way to make a ticket of each source; solver "exact" is ours, else an integer program's."""

    assignment: Assignment
    init: Init
    solver: str = "exact"

    @property
    def name(self) -> str:
        who = {"balanced": "ours", "paper": "paper"}[self.assignment]
        return "-".join([who, *([self.init] if self.init != "theory" else []), *self._mip])

    @property
    def _mip(self) -> list[str]:
        return [] if self.solver == "exact" else [self.solver]


OURS, PAPER = Line("balanced", "theory"), Line("paper", "theory")
OTHERS = tuple(Line(who, init) for init in ("inverse", "xavier") for who in ("balanced", "paper"))


@dataclass(frozen=True)
class Result:
    """All that the page tells of. rows: one a source; fits: line -> error -> method -> curve."""

    options: Options
    scale: Scale
    target: dict[str, Any]  # the record of target_point
    mip: Line
    rows: list[dict[str, Any]]
    spreads: list[dict[str, Any]]
    fits: dict[str, dict[str, dict[str, Decay]]]

    def of(self, line: Line, error: str = "error_max") -> list[dict[str, Any]]:
        """The spreads of one line, by width."""
        return [s for s in self.spreads if s["line"] == line.name and s["error"] == error]

    def against_program(self) -> list[dict[str, Any]]:
        """By width the mean largest error of ours, of the paper's assignment solved exactly and of the integer
        program, all three over the sources that the program did not give up on."""
        by_line: dict[str, dict[tuple[int, int], float | None]] = {}
        for row in self.rows:
            by_line.setdefault(row["line"], {})[row["n"], row["source"]] = row["error_max"]
        program, pairs = by_line[self.mip.name], []
        for n in self.scale.mip_widths:
            tried = [key for key in program if key[0] == n]
            solved = [key for key in tried if program[key] is not None]
            if solved:
                means = {
                    name: float(np.mean([by_line[line.name][key] for key in solved]))
                    for name, line in (("ours", OURS), ("paper", PAPER), ("mip", self.mip))
                }
                pairs.append(dict(n=n, gave_up=len(tried) - len(solved), **means))
        return pairs


def run(options: Options, step: Step) -> dict[str, Any]:
    from strongticket.experiments.figure4_page import charts, draw_page

    start = time.perf_counter()
    scale = SCALES[options.scale]
    record = trained_target(options, scale.training, step, "figure 4")
    mip = Line("paper", "theory", options.mip)
    points = _points(options, scale, mip, digest(record))
    with step(f"figure 4: {sum(p['count'] for p in points)} tickets of random sources") as advance:
        found = options.results(partial(compute, record=record), points, VERSION, advance)
    rows = sorted((row for p, r in zip(points, found, strict=True) for row in _rows(p, r)), key=_order)
    result = _result(options, scale, record, mip, rows)
    folder = options.out / "figure4"
    folder.mkdir(parents=True, exist_ok=True)
    charts(result, folder)
    results = _numbers(result)
    summary = Summary(
        options.command("figure4"),
        options.seed,
        asdict(scale) | {"learning_rate": options.learning_rate, "mip": options.mip},
        results,
        time.perf_counter() - start,
    )
    page = write_results(
        folder, draw_page(result), summary, {"errors.csv": rows, "spreads.csv": result.spreads}
    )
    return {
        "figure": "figure4",
        "page": str(page),
        "seconds": round(summary.seconds, 1),
        "headline": _headline(result),
        **results,
    }


def compute(settings: Settings, record: dict[str, Any]) -> dict[str, Any]:
    """One batch of sources at one width of one line -> a list a column of errors.csv."""
    target = load_target(record)
    line = Line(**settings["line"])
    made = [_ticket(target, line, settings["n"], seed) for seed in source_seeds(settings)]
    networks = [network for network in made if network is not None]
    test = walks(settings["seed"], "test", settings["samples"])
    found = output_errors(target.network, networks, target.inputs(test)) if networks else {}
    result: dict[str, Any] = {}
    for name in ("error_max", "error_mean"):
        values = iter(found.get(name, ()))
        result[name] = [None if network is None else next(values) for network in made]
    if settings["certify"]:
        result |= certificates(target.network, networks, input_radius(target))
    return result


def _ticket(target: Target, line: Line, n: int, seed: int) -> Any:
    """The pruned source; None where an integer program gives up, which is no reason to lose all the others."""
    try:
        return build_attention(
            target.network,
            width=n,
            certificate=False,
            seed=seed,
            assignment=line.assignment,
            init=line.init,
            backend="auto" if line.solver == "exact" else line.solver,
        ).network()
    except MissingDependency:
        raise
    except StrongTicketError:
        if line.solver == "exact":
            raise
        return None


def _points(options: Options, scale: Scale, mip: Line, target: str) -> list[Settings]:
    lines = [(mip, scale.mip_widths), (OURS, scale.widths), (PAPER, scale.widths)]
    lines += [(line, scale.other_widths) for line in OTHERS]
    points = [
        dict(
            figure=4,
            target=target,
            line=asdict(line),
            n=n,
            seed=options.seed,
            first=first,
            count=count,
            samples=scale.samples,
            certify=line == OURS,
        )
        for line, widths in lines
        for n in widths
        for first, count in batches(scale.sources)
    ]
    # The long ones first, so that no worker is left alone with one of them at the end.
    return sorted(points, key=lambda p: (p["line"]["solver"] == "exact", -p["n"]))


def _rows(point: Settings, result: dict[str, Any]) -> list[dict[str, Any]]:
    line = Line(**point["line"])
    names = ("error_max", "error_mean", "bound", "paper_bound")
    return [
        dict(line=line.name, **asdict(line), n=point["n"], source=point["first"] + i)
        | {name: result[name][i] if name in result else None for name in names}
        for i in range(point["count"])
    ]


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["line"], row["n"], row["source"]


def _result(
    options: Options, scale: Scale, record: dict[str, Any], mip: Line, rows: list[dict[str, Any]]
) -> Result:
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["line"], row["n"]), []).append(row)
    spreads = []
    for (name, width), group in groups.items():
        for error in ("error_max", "error_mean", "bound", "paper_bound"):
            values = [row[error] for row in group if row[error] is not None]
            # A source that an integer program gave up on is a gap; a bound too large for a number is not.
            if len(values) == len(group) or (values and error.startswith("error")):
                spreads.append(dict(line=name, n=width, error=error, count=len(values), **spread(values)))
    fits: dict[str, dict[str, dict[str, Decay]]] = {}
    for line in (OURS, PAPER, *OTHERS):
        for error in ("error_max", "error_mean"):
            some = [s for s in spreads if s["line"] == line.name and s["error"] == error]
            n, mean, median = ([s[what] for s in some] for what in ("n", "mean", "median"))
            fits.setdefault(line.name, {})[error] = {
                "least_squares": fit_errors(n, mean),
                "logs": fit_logs(n, median),
                "logs_of_means": fit_logs(n, mean),
            }
    return Result(options, scale, record, mip, rows, spreads, fits)


def _numbers(result: Result) -> dict[str, Any]:
    """The results of summary.json."""
    return {
        "target_test_loss": result.target["test_loss"],
        "fits": {
            line: {
                error: {how: fit.to_dict() for how, fit in fits.items()} for error, fits in by_error.items()
            }
            for line, by_error in result.fits.items()
        },
        "delta": result.fits[OURS.name]["error_max"]["logs"].delta,
        "mean_error_over_mip": {
            str(pair["n"]): pair["ours"] / pair["mip"] for pair in result.against_program()
        },
        "mip_gave_up": sum(pair["gave_up"] for pair in result.against_program()),
        "error_at_widest": {
            line.name: {"n": s["n"], "mean": s["mean"], "median": s["median"]}
            for line in (OURS, PAPER, *OTHERS)
            for s in result.of(line)[-1:]
        },
    }


def _headline(result: Result) -> list[tuple[str, str]]:
    def text(fit: Decay) -> str:
        return f"{fit.gamma:.2g}·e^(−{fit.delta:.3g} n)"

    ours, paper = (result.fits[line.name]["error_max"] for line in (OURS, PAPER))
    return [
        ("ours, fit on log ε of the medians", text(ours["logs"])),
        ("ours, least squares on ε as in the paper", text(ours["least_squares"])),
        ("paper's assignment solved exactly, log ε", text(paper["logs"])),
        ("paper's assignment solved exactly, ε", text(paper["least_squares"])),
        ("printed in the paper; workshop", "0.8·e^(−0.06 n); 0.77·e^(−0.055 n)"),
    ]
