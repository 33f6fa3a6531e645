"""Figure 4: the error against the hidden dimensions n_K = n_V of the random source, at T = 4."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np
import torch

from strongticket.builders import build_attention
from strongticket.builders.options import Init, NetworkAssignment
from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.experiments.driver import Options, Run
from strongticket.experiments.fit import Decay, fit_errors, fit_logs
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row, column, select, shares, spreads
from strongticket.experiments.tasks.angular import SAMPLES, Target, walks
from strongticket.experiments.tasks.reach import entries_out_of_reach
from strongticket.experiments.tasks.sources import (
    CODE,
    TargetRecord,
    batches,
    certificates,
    digest,
    input_radius,
    load_target,
    output_errors,
    source_seeds,
    trained_target,
)
from strongticket.nets import merge
from strongticket.subset_sum.programs import solver
from strongticket.ticket import Ticket

VERSION = code_version(*CODE, "experiments/figures/figure4/_measure.py")
ERRORS = ("error_max", "error_mean")  # over test sequences and positions
BOUNDS = ("bound", "paper_bound")


@dataclass(frozen=True)
class Scale:
    """other_widths: of the two other initialisations; samples: test sequences.

    many_sources: at the widths from many_from to many_to a few sources fail, and a mean needs many of them
    """

    widths: tuple[int, ...]
    other_widths: tuple[int, ...]
    mip_widths: tuple[int, ...]
    sources: int = 100
    many_sources: int = 1000
    many_from: int = 16
    many_to: int = 40
    samples: int = SAMPLES
    training: dict[str, int] = field(default_factory=dict)


SCALES = {
    "laptop": Scale(tuple(range(4, 65, 4)), (4, 8, 16, 24, 32, 40), tuple(range(4, 25, 4))),
    "paper": Scale(tuple(range(2, 81, 2)), tuple(range(4, 65, 4)), tuple(range(2, 33, 2))),
    "test": Scale((4, 6, 8), (4, 6, 8), (4, 6), 3, 3, 6, 8, 64, {"epochs": 1, "samples": 256}),
}


@dataclass(frozen=True)
class Line:
    """One way to make a ticket of each source; solver "exact" is ours, otherwise an integer program."""

    assignment: NetworkAssignment
    init: Init
    solver: str = "exact"

    @property
    def name(self) -> str:
        author = "ours" if self.assignment == "balanced" else self.assignment
        init = [self.init] if self.init != "theory" else []
        solver = [self.solver] if self.solver != "exact" else []
        return "-".join([author, *init, *solver])


OURS, PAPER, ONE_SIGN = (Line(name, "theory") for name in get_args(NetworkAssignment))
OTHERS = tuple(
    Line(assignment, init) for init in ("inverse", "xavier") for assignment in ("balanced", "paper")
)


@dataclass(frozen=True)
class Figure4:
    """What was measured.

    target: the record of target_point
    mip: the line solved by an integer program
    rows: one per source
    spreads: over the sources, one per line, width and error
    failures: one per line and width: the share of sources with an entry out of reach, and its interval
    fits: line -> error -> method -> curve
    """

    options: Options
    scale: Scale
    target: TargetRecord
    mip: Line
    rows: list[Row]
    spreads: list[Row]
    failures: list[Row]
    fits: dict[str, dict[str, dict[str, Decay]]]

    def of(self, line: Line, error: str = "error_max") -> list[Row]:
        """Return the spreads of one line, by width."""
        return select(self.spreads, line=line.name, error=error)

    def failing(self, line: Line) -> list[Row]:
        """Return the shares of one line that fail, by width."""
        return select(self.failures, line=line.name)

    def against_program(self) -> list[Row]:
        """Return by width the mean largest error of ours, of the paper's assignment solved exactly and of the
        integer program, all three over the sources that the program did not give up on."""
        errors: dict[str, dict[tuple[int, int], float | None]] = {}
        for row in self.rows:
            errors.setdefault(row["line"], {})[row["n"], row["source"]] = row["error_max"]
        program, pairs = errors[self.mip.name], []
        for n in self.scale.mip_widths:
            tried = [key for key in program if key[0] == n]
            solved = [key for key in tried if program[key] is not None]
            if solved:
                means = {
                    name: float(np.mean([errors[line.name][key] for key in solved]))
                    for name, line in (("ours", OURS), ("paper", PAPER), ("mip", self.mip))
                }
                pairs.append(dict(n=n, gave_up=len(tried) - len(solved), **means))
        return pairs

    def settings(self) -> dict[str, Any]:
        options = self.options
        return asdict(self.scale) | {"learning_rate": options.learning_rate, "mip": options.mip}

    def numbers(self) -> dict[str, Any]:
        pairs = self.against_program()
        return {
            "target_test_loss": self.target["test_loss"],
            "fits": {
                line: {
                    error: {method: fit.to_dict() for method, fit in fits.items()}
                    for error, fits in by_error.items()
                }
                for line, by_error in self.fits.items()
            },
            "delta": self.fits[OURS.name]["error_max"]["logs"].delta,
            "mean_error_over_mip": {str(pair["n"]): pair["ours"] / pair["mip"] for pair in pairs},
            "mip_gave_up": sum(pair["gave_up"] for pair in pairs),
            "failures": self.failures,
            "error_at_widest": {
                line.name: {name: widest[name] for name in ("n", "mean", "median")}
                for line in (OURS, PAPER, ONE_SIGN, *OTHERS)
                for widest in self.of(line)[-1:]
            },
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"errors.csv": self.rows, "spreads.csv": self.spreads, "failures.csv": self.failures}

    def headline(self) -> list[tuple[str, str]]:
        ours, paper, one_sign = (self.fits[line.name]["error_max"] for line in (OURS, PAPER, ONE_SIGN))
        return [
            ("ours, fit on log ε of the medians", ours["logs"].formula()),
            ("ours, least squares on ε as in the paper", ours["least_squares"].formula()),
            ("paper's assignment solved exactly, log ε", paper["logs"].formula()),
            ("paper's assignment solved exactly, ε", paper["least_squares"].formula()),
            ("units of one sign only, ε", one_sign["least_squares"].formula()),
            ("printed in the paper; workshop", "0.8·e^(−0.06 n); 0.77·e^(−0.055 n)"),
        ]


def measure(run: Run) -> Figure4:
    """Train the target, build a ticket of every source, and measure its errors."""
    solver(run.options.mip)  # if it is not installed, say so before minutes of work
    scale = SCALES[run.options.scale]
    record = trained_target(run, scale.training)
    mip = Line("paper", "theory", run.options.mip)
    points = _points(run.options, scale, mip, digest(record))
    tickets = sum(point["count"] for point in points)
    results = run.compute(
        f"{tickets} tickets of random sources", partial(compute, record=record), points, VERSION
    )
    rows = [row for point, result in zip(points, results, strict=True) for row in _rows(point, result)]
    rows.sort(key=lambda row: (row["line"], row["n"], row["source"]))
    # Gaps: sources that an integer program gave up on, and those without a certificate.
    spread = spreads(rows, ("line", "n"), (*ERRORS, *BOUNDS), skip_gaps_in=(*ERRORS, *BOUNDS))
    return Figure4(run.options, scale, record, mip, rows, spread, _failures(rows), _fits(spread))


def compute(settings: Settings, record: TargetRecord) -> dict[str, list[float | None]]:
    """Build one batch of tickets at one width of one line and return the columns of errors.csv.

    settings: a point
    record: the trained target, which the settings name by its digest
    """
    target = load_target(record)
    line = Line(**settings["line"])
    tickets = [_ticket(target, line, settings["n"], seed) for seed in source_seeds(settings)]
    made = [None if ticket is None else ticket.network(dtype=torch.float64) for ticket in tickets]
    networks = [network for network in made if network is not None]
    test = walks(settings["seed"], "test", settings["samples"])
    errors = output_errors(target.network, networks, target.inputs(test)) if networks else {}
    wanted = merge(target.network, torch.float64)
    result: dict[str, list[float | None]] = {
        "out_of_reach": [
            None if ticket is None else entries_out_of_reach(ticket, wanted) for ticket in tickets
        ]
    }
    for name in ERRORS:
        values = iter(errors.get(name, ()))
        result[name] = [None if network is None else next(values) for network in made]
    if settings["certify"]:
        result |= certificates(target.network, networks, input_radius(target))
    return result


def _ticket(target: Target, line: Line, n: int, seed: int) -> Ticket | None:
    """Return the ticket, or None where an integer program gives up: the others still count."""
    try:
        return build_attention(
            target.network,
            width=n,
            certificate=False,
            seed=seed,
            assignment=line.assignment,
            init=line.init,
            backend="auto" if line.solver == "exact" else line.solver,
        )
    except MissingDependency:
        raise
    except StrongTicketError:
        if line.solver == "exact":
            raise
        return None


def _points(options: Options, scale: Scale, mip: Line, target: str) -> list[Settings]:
    lines = [(mip, scale.mip_widths), *((line, scale.widths) for line in (OURS, PAPER, ONE_SIGN))]
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
            certify=line == OURS and first < scale.sources,
        )
        for line, widths in lines
        for n in widths
        for first, count in batches(_sources(scale, line, n))
    ]
    # The long ones first, so that no worker is left alone with one of them at the end.
    return sorted(points, key=lambda point: (point["line"]["solver"] == "exact", -point["n"]))


def _sources(scale: Scale, line: Line, n: int) -> int:
    many = line in (OURS, PAPER, ONE_SIGN) and scale.many_from <= n <= scale.many_to
    return scale.many_sources if many else scale.sources


def _rows(point: Settings, result: dict[str, list[float | None]]) -> list[Row]:
    line = Line(**point["line"])
    return [
        dict(line=line.name, **asdict(line), n=point["n"], source=point["first"] + i)
        | {name: result[name][i] if name in result else None for name in ("out_of_reach", *ERRORS, *BOUNDS)}
        for i in range(point["count"])
    ]


def _failures(rows: list[Row]) -> list[Row]:
    built = [row for row in rows if row["out_of_reach"] is not None]
    return shares(built, ("line", "n"), lambda row: row["out_of_reach"] > 0)


def _fits(spread: list[Row]) -> dict[str, dict[str, dict[str, Decay]]]:
    fits: dict[str, dict[str, dict[str, Decay]]] = {}
    for line in (OURS, PAPER, ONE_SIGN, *OTHERS):
        for error in ERRORS:
            by_width = select(spread, line=line.name, error=error)
            n, mean, median = (column(by_width, name) for name in ("n", "mean", "median"))
            fits.setdefault(line.name, {})[error] = {
                "least_squares": fit_errors(n, mean),
                "logs": fit_logs(n, median),
                "logs_of_means": fit_logs(n, mean),
            }
    return fits
