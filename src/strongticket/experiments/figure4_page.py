"""Figure 4 drawn and told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from strongticket.experiments.chart import Chart, Curve, plot, save
from strongticket.experiments.figure4 import OTHERS, OURS, PAPER, Line, Result
from strongticket.experiments.fit import PRINTED, Decay
from strongticket.report import Block, Facts, Image, Images, Page, Section, Table, Text
from strongticket.report.html import number

NAMES = {
    OURS: "ours",
    PAPER: "paper's assignment, solved exactly",
    Line("balanced", "inverse"): "ours",
    Line("paper", "inverse"): "paper's assignment",
    Line("balanced", "xavier"): "ours",
    Line("paper", "xavier"): "paper's assignment",
}
SOLVERS = {"highs": "HiGHS", "gurobi": "Gurobi", "cpsat": "CP-SAT"}
INITS = {"theory": "U[±n^(+¼)]", "inverse": "U[±n^(−¼)]", "xavier": "Xavier"}
X_LABEL = "hidden dimensions n_K = n_V of the random source"
ERROR = "largest output error ε"


def charts(result: Result, folder: Path) -> None:
    save([_as_printed(result), _decay(result), _inits(result)], folder, "figure4")


def draw_page(result: Result) -> Page:
    ours = result.fits[OURS.name]["error_max"]["logs"]
    lead = (
        "Prune a random attention head until it computes what a trained one computes: how near does it come? "
        f"The paper found that the error falls as 0.8·e^(−0.06n). Here it falls as {_formula(ours)}: "
        f"every {math.log(10) / ours.delta:.1f} hidden units more leave a tenth of it, where the paper "
        "needed 38."
    )
    sections = (
        Section("In short", (_facts(result),)),
        Section("The error against the width", _widths(result)),
        Section("The fits", _fits(result)),
        Section("Against an integer program", _program(result)),
        Section("Three initialisations", _initialisations(result)),
        Section("For print", _images()),
        Section("What was measured", (_method(result),)),
    )
    return Page("Figure 4: the error falls exponentially with the width", lead, sections)


def _facts(result: Result) -> Facts:
    ours, paper = (result.fits[line.name]["error_max"]["logs"] for line in (OURS, PAPER))
    widest = result.of(OURS)[-1]
    bound = result.of(OURS, "bound")[-1]
    return Facts(
        (
            (f"{ours.delta:.3f}", "δ of ours (log fit, medians)"),
            (f"{paper.delta:.3f}", "δ of the paper's assignment, solved exactly"),
            ("0.06", "δ printed in the paper"),
            (number(widest["median"]), f"median error of ours at n = {widest['n']}"),
            (number(bound["median"]), "its certificate, for every input"),
            (f"{len(result.rows):,}", "tickets built"),
        )
    )


def _widths(result: Result) -> tuple[Block, ...]:
    caption = (
        f"The largest error over {result.scale.samples:,} test sequences and all positions; line: median over "
        f"{result.scale.sources} random sources, band: the middle 80 %. The certificate holds for every "
        "input in "
        "the unit circle, of any length. Dotted: the fits printed in the two papers."
    )
    alt = "On a logarithmic scale both lines fall straight down to 10^(−9); the printed fits hardly fall."
    linear = (
        "The same as the paper draws it: mean and standard deviation on a linear scale. Only errors above 0.01 "
        "can be seen, and only they decide a least-squares fit on ε."
    )
    return (
        plot(_decay(result), alt, caption, source="spreads.csv"),
        plot(
            _as_printed(result),
            "All lines fall to zero, ours first, the printed fits last.",
            linear,
            source="spreads.csv",
        ),
    )


def _fits(result: Result) -> tuple[Block, ...]:
    rows: list[tuple[Any, ...]] = []
    for line in (OURS, PAPER):
        for error, what in (("error_max", "largest"), ("error_mean", "mean")):
            fits = result.fits[line.name][error]
            for how, method in (("least_squares", "on ε, means"), ("logs", "on log ε, medians")):
                rows.append((NAMES[line], what, method, *_cells(fits[how])))
    rows += [
        (f"{name}, as printed", "not said", "on ε", gamma, None, delta, None, None)
        for name, (gamma, delta) in PRINTED.items()
    ]
    return (
        Text(
            "The curve is ε = γ·e^(−δn). Least squares on ε, as the paper fits, looks at the few widths "
            "where the "
            "error is large; least squares on log ε looks at all of them. *Largest* is the theorems' "
            "quantity, the "
            "maximum over test sequences and positions; *mean* is the average over both. Two rows of each "
            "matrix "
            "share the n units, so no assignment can do better than δ = ln 2 / 2 ≈ 0.347 for long: a unit more "
            "doubles the number of subset sums of one row."
        ),
        Table(
            ("line", "error", "least squares", "γ", "± std", "δ", "± std", "R²"),
            tuple(rows),
            "± is the standard error of the fit.",
        ),
    )


def _program(result: Result) -> tuple[Block, ...]:
    solver = SOLVERS[result.mip.solver]
    pairs = result.against_program()
    rows = tuple((p["n"], p["ours"], p["paper"], p["mip"], p["ours"] / p["mip"]) for p in pairs)
    gave_up = sum(p["gave_up"] for p in pairs)
    missing = f" {solver} gave up on {gave_up} of them, which are left out of all columns." if gave_up else ""
    return (
        Text(
            f"The authors give each subset-sum problem to Gurobi's integer programming. Here {solver} "
            "solves the "
            "same problems of the same random sources, with no gap allowed. It finds the same optimum as "
            "the exact "
            "solver, so the solver does not explain the paper's slow decay; ours is better because it "
            "gives each "
            "hidden unit to the row that can use it."
        ),
        Table(
            (
                "n",
                "ours",
                "paper's assignment, exact",
                f"paper's assignment, {solver}",
                f"ours ÷ {solver}",
            ),
            rows,
            f"Mean over {result.scale.sources} sources of the largest error.{missing}",
        ),
    )


def _initialisations(result: Result) -> tuple[Block, ...]:
    rows: list[tuple[Any, ...]] = []
    for line in (OURS, PAPER, *OTHERS):
        widest = result.of(line)[-1]
        fit = result.fits[line.name]["error_max"]["least_squares"]
        rows.append(
            (INITS[line.init], NAMES[line], widest["n"], widest["mean"], fit.gamma, fit.delta, fit.r2)
        )
    return (
        Text(
            "The paper names three distributions for the source's queries and keys. With U[±n^(+¼)] "
            "(section 3.1) "
            "the factor 1/√n inside the softmax is made good, every product of two weights stays of order "
            "one, and "
            "the error falls for ever. With U[±n^(−¼)] (section 4.1) each product is of order 1/n: all n/2 "
            "of a row together reach no further than a constant, about 1/16 for either sign, and what "
            "W_QK has beyond "
            "it stays as error. With Xavier's (appendix B.1) the queries' and keys' products are smaller "
            "still, and "
            "the values' and outputs' sums are bounded too, so that W_VO is out of reach as well. Both "
            "lines therefore end in a floor that no width removes."
        ),
        plot(
            _inits(result),
            "With the two other initialisations the error stops falling at a floor.",
            "Median over the sources of the largest error.",
            source="spreads.csv",
        ),
        Table(
            ("initialisation", "assignment", "n", "mean error at that n", "γ", "δ", "R²"),
            tuple(rows),
            "γ and δ by least squares on ε, as the paper fits.",
        ),
    )


def _images() -> tuple[Block, ...]:
    alt = "Three charts: mean error on a linear scale, median error on a logarithmic one, three initialisations."
    return (Images((Image("figure4.png", alt, "`figure4.png`; the same as vectors in `figure4.pdf`."),)),)


def _method(result: Result) -> Text:
    rate = result.options.learning_rate
    return Text(
        "As in appendix B.1: single-head attention from 2 to 1 dimensions with d_K = 8, trained with "
        "AdamW (batch "
        f"1024, learning rate {rate:g}, weight decay 0.01, 25 epochs) to tell the angular velocity of "
        "points on the "
        "unit circle, 4 to 256 of them, from 10,000 sequences; its mean squared error on test data is "
        f"{number(result.target['test_loss'])}. Test sequences have the regression token and 4 points. The "
        "error is "
        "‖source(x) − target(x)‖, computed in float64 at every position. Every number is in `errors.csv`, "
        "one row "
        "a source."
    )


def _decay(result: Result) -> Chart:
    curves = [
        _median(result, OURS, 1, band=True),
        _median(result, PAPER, 2, band=True, marker="s"),
        _curve(
            result,
            result.mip,
            5,
            f"the same by {SOLVERS[result.mip.solver]}",
            "median",
            marker="x",
            joined=False,
        ),
        _curve(result, OURS, 3, "our certificate", "median", "bound", kind="bound"),
        _curve(result, OURS, 4, "paper's bound, same weights", "median", "paper_bound", kind="bound"),
        *_printed(result),
    ]
    low = min(min(c.band[0]) if c.band else min(c.y) for c in curves)
    return Chart("median over sources", X_LABEL, ERROR, tuple(curves), y_range=(low / 3, 30))


def _as_printed(result: Result) -> Chart:
    curves = []
    for line, colour, marker in ((OURS, 1, "o"), (PAPER, 2, "s")):
        spreads = result.of(line)
        band = [s["mean"] - s["std"] for s in spreads], [s["mean"] + s["std"] for s in spreads]
        n, mean = [s["n"] for s in spreads], [s["mean"] for s in spreads]
        curves.append(Curve(NAMES[line], n, mean, colour, band=band, marker=marker))
        fit = result.fits[line.name]["error_max"]["least_squares"]
        curves.append(Curve(_label(fit), n, fit(n), colour, "fit"))
    name = f"the same by {SOLVERS[result.mip.solver]}"
    curves.append(_curve(result, result.mip, 5, name, "mean", marker="x", joined=False))
    curves += _printed(result)
    return Chart("mean ± std, as in the paper", X_LABEL, ERROR, tuple(curves), log_y=False, y_range=(0, 0.8))


def _inits(result: Result) -> Chart:
    curves = []
    for line in (OURS, PAPER, *OTHERS):
        name = f"{INITS[line.init]}, {NAMES[line].split(',')[0]}"
        colour = list(INITS).index(line.init) + 1
        curves.append(
            _median(result, line, colour, name=name, marker="o" if line.assignment == "balanced" else "")
        )
    return Chart("three initialisations", X_LABEL, ERROR, tuple(curves))


def _median(
    result: Result, line: Line, colour: int, *, name: str = "", band: bool = False, marker: str = "o"
) -> Curve:
    spreads = result.of(line)
    edges = ([s["low"] for s in spreads], [s["high"] for s in spreads]) if band else None
    n, median = [s["n"] for s in spreads], [s["median"] for s in spreads]
    return Curve(name or NAMES[line], n, median, colour, band=edges, marker=marker)


def _curve(
    result: Result,
    line: Line,
    colour: int,
    name: str,
    what: str,
    error: str = "error_max",
    *,
    kind: Any = "data",
    marker: str = "o",
    joined: bool = True,
) -> Curve:
    spreads = result.of(line, error)
    return Curve(
        name, [s["n"] for s in spreads], [s[what] for s in spreads], colour, kind, marker=marker, line=joined
    )


def _printed(result: Result) -> list[Curve]:
    n = list(result.scale.widths)
    curves = []
    for (name, (gamma, delta)), colour in zip(PRINTED.items(), (6, 4), strict=True):
        fit = Decay(gamma, delta, math.nan, math.nan, math.nan)
        curves.append(Curve(f"{name}: {_label(fit)}", n, fit(n), colour, "printed"))
    return curves


def _label(fit: Decay) -> str:
    return f"{fit.gamma:.2g}·exp(−{fit.delta:.3g} n)"


def _formula(fit: Decay) -> str:
    return f"{fit.gamma:.2g}·e^(−{fit.delta:.3g}n)"


def _cells(fit: Decay) -> tuple[Any, ...]:
    numbers = fit.to_dict()
    return tuple(numbers[name] for name in ("gamma", "gamma_std", "delta", "delta_std", "r2"))
