"""Figure 5: the error against the sequence length T, for several widths of the random source.

The paper trains on 4 to 256 points, so longer sequences are longer than any the target has seen. circle.py counts
every position of every sequence all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from strongticket.nets import merge
from strongticket.reproduce import sources
from strongticket.reproduce.angular import walks
from strongticket.reproduce.circle import circle_errors
from strongticket.reproduce.plots import BOUND, COLOURS, Axes, curve, label
from strongticket.reproduce.rows import Row, failures, select, spreads
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.work.store import Settings, code_version

VERSION = code_version(*sources.CODE, "reproduce/figure5.py")
NAMES = {"balanced": "ours", "paper": "paper's assignment, solved exactly"}
GROWS = 1.5  # times the error at the shortest length, from which on it counts as growth
BATCH = 50  # sources per point: they share the work on the test sequences


@dataclass(frozen=True)
class Figure5:
    """What is measured."""

    widths: tuple[int, ...]
    lengths: tuple[int, ...] = tuple(2**k for k in range(2, 13))
    sources: int = 100
    sequences: int = 10_000  # test sequences of each length
    training: dict[str, Any] = field(default_factory=dict)  # arguments of train_target
    init: str = "theory"  # of queries and keys


def measure(run: Run, settings: Figure5) -> Tables:
    """Train the target, build a ticket of every source, and measure its errors at every length."""
    record = sources.trained_target(run, settings.training)
    shared = dict(
        target=record, init=settings.init, lengths=list(settings.lengths), sequences=settings.sequences
    )
    points = [
        point
        for n in sorted(settings.widths, reverse=True)  # the long ones first
        for assignment in NAMES
        for point in sources.batches(
            run.seed, settings.sources, shared | dict(assignment=assignment, n=n), BATCH
        )
    ]
    what = f"{len(settings.lengths)} lengths up to {max(settings.lengths)}"
    rows = run.rows(what, compute, points, VERSION, ("assignment", "init", "n"))
    rows.sort(key=lambda row: (row["assignment"], row["n"], row["length"], row["source"]))
    shortest = select(rows, length=settings.lengths[0])
    return {
        "errors": rows,
        "spreads": spreads(rows, ("assignment", "n", "length"), ("error_max", "error_mean", "bound")),
        "failures": failures(shortest, ("assignment", "n"), lambda row: row["out_of_reach"] > 0),
    }


def compute(settings: Settings) -> list[Row]:
    """Build one batch of tickets at one width; return a row of errors.csv for each ticket and length."""
    target, networks, unreached = sources.attention_sources(settings)
    merged = [merge(network, torch.float64) for network in networks]
    query_key = torch.cat([network.query_key for network in merged])
    value_output = torch.cat([network.value_output for network in merged])
    wanted = merge(target.network, torch.float64)
    test = walks(settings["seed"], "test", settings["sequences"])
    bounds = sources.certificates(target, networks)
    rows = []
    for length in settings["lengths"]:
        found = circle_errors(wanted, query_key, value_output, target.token, test.angles(length))
        rows += [
            dict(length=length, source=settings["first"] + i, out_of_reach=unreached[i]) | errors | bounds[i]
            for i, errors in enumerate(sources.error_columns(*found))
        ]
    return rows


def answer(tables: Tables, settings: Figure5) -> Answer:
    """Compare the largest error at any length with that at the shortest."""
    table = [_line(tables, assignment, n) for assignment in NAMES for n in settings.widths]
    growth = {
        assignment: {str(row["n"]): row["ratio"] for row in select(table, assignment=name)}
        for assignment, name in NAMES.items()
    }
    worst, shortest = max(growth["balanced"].values()), min(settings.lengths)
    sentence = (
        f"{'No' if worst < GROWS else 'Yes'}: from {shortest} to {max(settings.lengths):,} points the largest error "
        f"of a ticket (median over {settings.sources} sources) is at most {worst:.2f} times that at {shortest}, and "
        "its certificate is the same for every length."
    )
    return Answer(sentence, {"largest_over_shortest": growth, "failures": tables["failures"]}, table)


def _line(tables: Tables, assignment: str, n: int) -> Row:
    rows = select(tables["spreads"], assignment=assignment, n=n)
    largest, bounds = select(rows, error="error_max"), select(rows, error="bound")
    peak = max(largest, key=lambda row: row["median"])
    (failing,) = select(tables["failures"], assignment=assignment, n=n)
    return {
        "assignment": NAMES[assignment],
        "n": n,
        "sources that fail": f"{failing['share']:.0%}",
        "error at the shortest": largest[0]["median"],
        "largest at any T": peak["median"],
        "at T": peak["length"],
        "ratio": peak["median"] / largest[0]["median"],
        "certificate": bounds[0]["median"],
    }


def plot(tables: Tables, settings: Figure5, axes: Sequence[Axes]) -> None:
    """Draw the error against the length, a panel per assignment, each width below its certificate."""
    for axis, (assignment, name) in zip(axes, NAMES.items(), strict=True):
        for colour, n in zip(COLOURS, settings.widths, strict=False):
            rows = select(tables["spreads"], assignment=assignment, n=n)
            errors, bounds = select(rows, error="error_max"), select(rows, error="bound")
            curve(axis, errors, x="length", band="quantiles", color=colour, label=f"$n$ = {n}")
            last = "certificate" if n == settings.widths[-1] else None
            curve(axis, bounds, x="length", color=colour, linestyle=BOUND, marker="", label=last)
        ticks = settings.lengths[::2]
        label(axis, name, "sequence length $T$", "largest output error ε", log="xy", ticks=ticks, below=3)


STUDY = Study(
    "Does the error grow with the sequence?",
    {
        "quick": Figure5((8, 16, 32), sources=20, sequences=100),
        "laptop": Figure5((8, 16, 24, 32, 48), sequences=500),
        "paper": Figure5((8, 16, 24, 32, 48, 64)),
        # for the tests: seconds, and no numbers to quote
        "test": Figure5((4, 8), (4, 16), 3, 16, {"epochs": 1, "samples": 256}),
    },
    measure,
    answer,
    plot,
    panels=2,
)
