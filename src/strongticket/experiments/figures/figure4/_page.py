"""Report page of Figure 4."""

from __future__ import annotations

import math

from strongticket.experiments.chart import Print, plot
from strongticket.experiments.figures.figure4._charts import (
    INITS,
    NAMES,
    SOLVERS,
    as_printed,
    decay,
    initialisations,
)
from strongticket.experiments.figures.figure4._measure import ONE_SIGN, OTHERS, OURS, PAPER, Figure4
from strongticket.experiments.fit import PRINTED, Decay
from strongticket.experiments.spread import mean_interval
from strongticket.report import Cell, Facts, Page, PageBlock, Section, Table, Text, number


def prints(result: Figure4) -> tuple[Print, ...]:
    """Return the charts for print."""
    alt = "Three charts: mean error on a linear scale, median error on a logarithmic one, three initialisations."
    return (Print("figure4", (as_printed(result), decay(result), initialisations(result)), alt),)


def page(result: Figure4) -> Page:
    """Return the page."""
    ours = result.fits[OURS.name]["error_max"]["logs"]
    lead = (
        "Prune a random attention head until it computes what a trained one computes: how close does it get? "
        f"The paper found that the error falls as 0.8·e^(−0.06n). Here it falls as {ours.formula()}: "
        f"every {math.log(10) / ours.delta:.1f} additional hidden units divide it by ten, where the paper "
        "needed 38."
    )
    sections = (
        Section("In short", (_facts(result),)),
        Section("The error against the width", _widths(result)),
        Section("Sources that fail", _failures(result)),
        Section("The fits", _fits(result)),
        Section("Against an integer program", _program(result)),
        Section("Three initialisations", _initialisations(result)),
        Section("What was measured", (_method(result),)),
    )
    return Page("Figure 4: the error falls exponentially with the width", lead, sections)


def _facts(result: Figure4) -> Facts:
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
            (
                number(_one_sign(result).delta),
                "δ if units of one sign serve an entry, fitted as the paper does",
            ),
            (f"{len(result.rows):,}", "tickets built"),
        )
    )


def _widths(result: Figure4) -> tuple[PageBlock, ...]:
    caption = (
        f"The largest error over {result.scale.samples:,} test sequences and all positions. Line: median over "
        f"random sources ({_counts(result)}); band: the middle 80 %. The certificate holds for every input "
        "in the unit circle, of any length. Dotted: the fits printed in the two papers."
    )
    alt = "On a logarithmic scale both lines fall straight down to 10^(−9); the printed fits hardly fall."
    linear = (
        "The same as the paper draws it: mean and standard deviation on a linear scale. Only errors above 0.01 "
        "are visible, and only they influence a least-squares fit on ε."
    )
    return (
        plot(decay(result), alt, caption, source="spreads.csv"),
        plot(
            as_printed(result),
            "All lines fall to zero, ours first, the printed fits last.",
            linear,
            source="spreads.csv",
        ),
    )


def _failures(result: Figure4) -> tuple[PageBlock, ...]:
    rows: list[tuple[Cell, ...]] = []
    for line in (OURS, PAPER, ONE_SIGN):
        for failing, errors in zip(result.failing(line), result.of(line), strict=True):
            low, high = mean_interval(errors)
            rows.append(
                (
                    NAMES[line],
                    failing["n"],
                    failing["sources"],
                    f"{failing['share']:.1%}",
                    f"{failing['share_low']:.1%} to {failing['share_high']:.1%}",
                    errors["median"],
                    errors["mean"],
                    f"{number(low)} to {number(high)}",
                )
            )
    return (
        Text(
            "A source fails if an entry of W_QK or W_VO is out of reach: larger than all products of its sign "
            "together. Its error is then of the size of the entry, thousands of times the median, and a few "
            "such sources decide the mean. Whether units of both signs serve an entry matters most: if only "
            "those with a positive query or value weight do, as in the ReLU construction, where the others "
            f"serve the negative part, means fall as {_one_sign(result).formula()}. The paper prints "
            "0.8·e^(−0.06 n) and its workshop version 0.77·e^(−0.055 n). No other reading that we tried comes "
            "as near; the paper's code is not public, so this stays a guess."
        ),
        Table(
            (
                "line",
                "n",
                "sources",
                "fail",
                "95 % interval",
                "median error",
                "mean error",
                "95 % interval of the mean",
            ),
            tuple(rows),
            "Intervals of shares are Clopper and Pearson's; those of means are 1.96 standard errors.",
        ),
    )


def _fits(result: Figure4) -> tuple[PageBlock, ...]:
    rows: list[tuple[Cell, ...]] = []
    for line in (OURS, PAPER, ONE_SIGN):
        for error, which in (("error_max", "largest"), ("error_mean", "mean")):
            fits = result.fits[line.name][error]
            for method, label in (("least_squares", "on ε, means"), ("logs", "on log ε, medians")):
                rows.append((NAMES[line], which, label, *_cells(fits[method])))
    rows += [
        (f"{name}, as printed", "not stated", "on ε", gamma, None, delta, None, None)
        for name, (gamma, delta) in PRINTED.items()
    ]
    return (
        Text(
            "The curve is ε = γ·e^(−δn). Least squares on ε, as the paper fits, is decided by the few widths "
            "where the error is large; least squares on log ε uses all of them. *Largest* is the theorems' "
            "quantity, the maximum over test sequences and positions; *mean* is the average over both. Two "
            "rows of each matrix share the n units, so no assignment can keep up more than "
            "δ = ln 2 / 2 ≈ 0.347: each additional unit doubles the number of subset sums of one row."
        ),
        Table(
            ("line", "error", "least squares", "γ", "± std", "δ", "± std", "R²"),
            tuple(rows),
            "± is the standard error of the fit.",
        ),
    )


def _program(result: Figure4) -> tuple[PageBlock, ...]:
    solver = SOLVERS[result.mip.solver]
    pairs = result.against_program()
    rows = tuple((p["n"], p["ours"], p["paper"], p["mip"], p["ours"] / p["mip"]) for p in pairs)
    gave_up = sum(p["gave_up"] for p in pairs)
    missing = f" {solver} gave up on {gave_up} of them, which are left out of all columns." if gave_up else ""
    return (
        Text(
            f"The authors solve each subset-sum problem with Gurobi's integer programming. Here {solver} solves "
            "the same problems of the same random sources, with no gap allowed. It finds the same optimum as "
            "the exact solver, so the solver does not explain the paper's slow decay; ours is better because "
            "it gives each hidden unit to the row that can use it."
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
            f"Mean over the first {result.scale.sources} sources of the largest error.{missing}",
        ),
    )


def _initialisations(result: Figure4) -> tuple[PageBlock, ...]:
    rows: list[tuple[Cell, ...]] = []
    for line in (OURS, PAPER, *OTHERS):
        widest = result.of(line)[-1]
        fit = result.fits[line.name]["error_max"]["least_squares"]
        rows.append(
            (INITS[line.init], NAMES[line], widest["n"], widest["median"], fit.gamma, fit.delta, fit.r2)
        )
    return (
        Text(
            "The paper names three laws for the source's queries and keys. With U[±n^(+¼)] "
            "(section 3.1) the factor 1/√n inside the softmax is compensated, every product of two weights "
            "stays of order one, and the error keeps falling. With U[±n^(−¼)] (section 4.1) each product is "
            "of order 1/n: all n/2 of a row together reach no further than a constant, about 1/16 for either "
            "sign, and whatever W_QK has beyond it remains as error. With Xavier's (appendix B.1) the "
            "products of queries and keys are smaller still, and the sums of values and outputs are bounded "
            "too, so W_VO is out of reach as well. Both lines therefore end in a floor that no width removes."
        ),
        plot(
            initialisations(result),
            "With the two other initialisations the error stops falling at a floor.",
            "Median over the sources of the largest error.",
            source="spreads.csv",
        ),
        Table(
            ("initialisation", "assignment", "n", "median error at that n", "γ", "δ", "R²"),
            tuple(rows),
            "γ and δ by least squares on ε, as the paper fits.",
        ),
    )


def _method(result: Figure4) -> Text:
    return Text(
        "As in appendix B.1: single-head attention from 2 to 1 dimensions with d_K = 8, trained with AdamW "
        f"(batch 1024, learning rate {result.options.learning_rate:g}, weight decay 0.01, 25 epochs) to "
        "estimate the angular velocity of points on the unit circle, 4 to 256 of them, from 10,000 sequences; "
        f"its mean squared error on test data is {number(result.target['test_loss'])}. Test sequences have "
        "the regression token and 4 points. The error is ‖source(x) − target(x)‖, computed in float64 at "
        "every position. Every number is in `errors.csv`, one row per source."
    )


def _one_sign(result: Figure4) -> Decay:
    return result.fits[ONE_SIGN.name]["error_max"]["least_squares"]


def _counts(result: Figure4) -> str:
    scale = result.scale
    return f"{scale.many_sources:,} from n = {scale.many_from} to {scale.many_to}, else {scale.sources}"


def _cells(fit: Decay) -> tuple[Cell, ...]:
    values = fit.to_dict()
    return tuple(values[name] for name in ("gamma", "gamma_std", "delta", "delta_std", "r2"))
