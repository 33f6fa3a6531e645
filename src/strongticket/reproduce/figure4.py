"""Figure 4: the error against the hidden dimensions n_K = n_V of the random source, at T = 4.

The target is that of appendix B.1: single-head attention from 2 to 1 dimensions with d_K = 8, trained to estimate
the angular velocity of points on the unit circle. benchmarks/subset_sum.py solves the same problems by the paper's
integer program and finds the same optimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from strongticket.reproduce import sources
from strongticket.reproduce.angular import SAMPLES, walks
from strongticket.reproduce.plots import BOUND, COLOURS, FIT, PRINTED, Axes, curve, label
from strongticket.reproduce.rows import Decay, Row, failures, fit_errors, fit_logs, select, spreads
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.work.store import Settings, code_version

VERSION = code_version(*sources.CODE, "reproduce/figure4.py")
ERRORS = ("error_max", "error_mean")  # over test sequences and positions
BOUNDS = ("bound", "paper_bound")
# As printed in section 4.2 of the AAAI paper and in section 4 of the workshop version.
PRINTED_FITS = {"paper": Decay(0.8, 0.06, math.nan), "workshop version": Decay(0.77, 0.055, math.nan)}
INITS = {"theory": "U[±n$^{¼}$]", "inverse": "U[±n$^{−¼}$]", "xavier": "Xavier"}


@dataclass(frozen=True)
class Figure4:
    """What is measured."""

    widths: tuple[int, ...]
    other_widths: tuple[int, ...]  # of the two other initialisations
    sources: int = 100
    many_sources: int = 1000  # at the widths from many_from to many_to: a few fail, and a mean needs many
    many_from: int = 16
    many_to: int = 40
    samples: int = SAMPLES  # test sequences
    training: dict[str, Any] = field(default_factory=dict)  # arguments of train_target


# One way to make a ticket of each source: line -> what it is called; its assignment and initialisation.
NAMES = {
    "ours": "ours",
    "paper": "paper's assignment, solved exactly",
    "one-sign": "paper's assignment, units of one sign",
}
LINES = {
    "ours": dict(assignment="balanced", init="theory"),
    "paper": dict(assignment="paper", init="theory"),
    "one-sign": dict(assignment="one-sign", init="theory"),
    "ours-inverse": dict(assignment="balanced", init="inverse"),
    "paper-inverse": dict(assignment="paper", init="inverse"),
    "ours-xavier": dict(assignment="balanced", init="xavier"),
    "paper-xavier": dict(assignment="paper", init="xavier"),
}


def measure(run: Run, settings: Figure4) -> Tables:
    """Train the target, build a ticket of every source, and measure its errors."""
    record = sources.trained_target(run, settings.training)
    points = []
    for line, made in LINES.items():
        certified = settings.sources if line == "ours" else 0
        shared = dict(line=line, **made, target=record, samples=settings.samples, certified=certified)
        for n in settings.widths if line in NAMES else settings.other_widths:
            is_many = line in NAMES and settings.many_from <= n <= settings.many_to
            count = settings.many_sources if is_many else settings.sources
            points += sources.batches(run.seed, count, shared | {"n": n})
    # The long ones first, so that no worker is left alone with one of them at the end.
    points.sort(key=lambda point: -point["n"])
    what = f"{sum(point['count'] for point in points)} tickets of random sources"
    rows = run.rows(what, compute, points, VERSION, ("line", "assignment", "init", "n"))
    rows.sort(key=lambda row: (row["line"], row["n"], row["source"]))
    found = spreads(rows, ("line", "n"), (*ERRORS, *BOUNDS))
    return {
        "errors": rows,
        "spreads": found,
        "failures": failures(rows, ("line", "n"), lambda row: row["out_of_reach"] > 0),
        "fits": _fits(found),
        "target": [{"test_loss": record["test_loss"]}],
    }


def compute(settings: Settings) -> list[Row]:
    """Build one batch of tickets at one width of one line; return a row of errors.csv for each."""
    target, networks, unreached = sources.attention_sources(settings)
    test = walks(settings["seed"], "test", settings["samples"])
    errors = sources.output_errors(target.network, networks, target.inputs(test))
    bounds = [dict.fromkeys(BOUNDS)] * len(networks)
    if settings["first"] < settings["certified"]:
        bounds = sources.certificates(target, networks)
    return [
        dict(source=settings["first"] + i, out_of_reach=unreached[i]) | errors[i] | bounds[i]
        for i in range(len(networks))
    ]


def _fits(found: list[Row]) -> list[Row]:
    """Fit every line and error: on ε of the means as the paper does, and on log ε, where every width counts."""
    rows = []
    for line in LINES:
        for error in ERRORS:
            by_width = select(found, line=line, error=error)
            n, mean, median = ([row[name] for row in by_width] for name in ("n", "mean", "median"))
            fits = {
                "least_squares": fit_errors(n, mean),
                "logs": fit_logs(n, median),
                "logs_of_means": fit_logs(n, mean),
            }
            rows += [dict(line=line, error=error, fit=name, **asdict(fit)) for name, fit in fits.items()]
    return rows


def answer(tables: Tables, settings: Figure4) -> Answer:
    """Set our decay beside the paper's, fitted alike."""
    ours, paper = (_fit(tables, line, "least_squares") for line in ("ours", "paper"))
    widest = select(tables["spreads"], line="ours", n=settings.widths[-1])
    (error,), (bound,) = (select(widest, error=name) for name in ("error_max", "bound"))
    sentence = (
        "Fitted as the paper fits, by least squares on the means, the largest error falls as "
        f"{ours.formula()}, and as {paper.formula()} with the paper's own assignment solved exactly; the paper "
        f"prints 0.8·e^(−0.06 n). At n = {error['n']} the median error is {error['median']:.2g} and certified to "
        f"be below {bound['median']:.2g} for every input."
    )
    numbers = {
        "target_test_loss": tables["target"][0]["test_loss"],
        "fits": tables["fits"],
        "delta": _fit(tables, "ours", "logs").delta,
        "failures": tables["failures"],
        "error_at_widest": {
            line: {name: found[-1][name] for name in ("n", "mean", "median")}
            for line in LINES
            if (found := select(tables["spreads"], line=line, error="error_max"))
        },
    }
    return Answer(sentence, numbers, [_width(tables, line, n) for line in NAMES for n in settings.widths])


def _fit(tables: Tables, line: str, method: str) -> Decay:
    (row,) = select(tables["fits"], line=line, error="error_max", fit=method)
    return Decay(row["gamma"], row["delta"], row["r2"])


def _width(tables: Tables, line: str, n: int) -> Row:
    (errors,) = select(tables["spreads"], line=line, n=n, error="error_max")
    (failing,) = select(tables["failures"], line=line, n=n)
    half = 1.96 * errors["std"] / errors["count"] ** 0.5  # where the mean of many sources would lie
    return {
        "line": NAMES[line],
        "n": n,
        "sources": failing["sources"],
        "fail": f"{failing['share']:.1%}",
        "95 % interval": f"{failing['share_low']:.1%} to {failing['share_high']:.1%}",
        "median error": errors["median"],
        "mean error": errors["mean"],
        "its 95 % interval": f"{max(0.0, errors['mean'] - half):.3g} to {errors['mean'] + half:.3g}",
    }


def plot(tables: Tables, settings: Figure4, axes: Sequence[Axes]) -> None:
    """Draw medians on a logarithmic scale, means as the paper does, and the three initialisations."""
    x, y = "hidden dimensions $n_K = n_V$ of the source", "largest output error ε"
    by_line = {line: select(tables["spreads"], line=line, error="error_max") for line in LINES}
    medians, means, inits = axes
    for (line, name), colour, marker in zip(NAMES.items(), COLOURS, "os^", strict=False):
        style: dict[str, Any] = dict(color=colour, marker=marker)
        curve(medians, by_line[line], band="quantiles", label=name, **style)
        curve(means, by_line[line], y="mean", band="std", label=name, **style)
        fit = _fit(tables, line, "least_squares")
        means.plot(settings.widths, fit(settings.widths), FIT, color=colour, label=fit.formula())
    for error, name, colour in zip(BOUNDS, ("our certificate", "paper's bound"), COLOURS[::3], strict=False):
        bounds = select(tables["spreads"], line="ours", error=error)
        curve(medians, bounds, marker="", linestyle=BOUND, color=colour, label=name)
    for (name, fit), colour in zip(PRINTED_FITS.items(), (COLOURS[5], COLOURS[3]), strict=True):
        for axis in (medians, means):
            text = f"{name}: {fit.formula()}"
            axis.plot(settings.widths, fit(settings.widths), PRINTED, color=colour, label=text)
    for line, made in LINES.items():
        if line != "one-sign":
            colour = COLOURS[list(INITS).index(made["init"])]
            author, marker = ("ours", "o") if made["assignment"] == "balanced" else ("paper's assignment", "")
            curve(inits, by_line[line], color=colour, marker=marker, label=f"{INITS[made['init']]}, {author}")
    label(medians, "median over sources", x, y, below=2)
    medians.set_ylim(top=30)
    label(means, "mean ± std, as in the paper", x, y, log="", below=2)
    means.set_ylim(0, 0.8)
    label(inits, "three initialisations", x, y, below=2)


STUDY = Study(
    "How does the error fall with the width of the random source?",
    {
        "quick": Figure4(tuple(range(8, 41, 8)), (8, 16, 24), sources=20, many_sources=50, samples=1000),
        "laptop": Figure4(tuple(range(4, 65, 4)), (4, 8, 16, 24, 32, 40)),
        "paper": Figure4(tuple(range(2, 81, 2)), tuple(range(4, 65, 4))),
        # for the tests: seconds, and no numbers to quote
        "test": Figure4((4, 6, 8), (4, 6, 8), 3, 3, 6, 8, 64, {"epochs": 1, "samples": 256}),
    },
    measure,
    answer,
    plot,
    panels=3,
)
