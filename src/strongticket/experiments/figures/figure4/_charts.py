"""Charts of Figure 4."""

from __future__ import annotations

import math

from strongticket.experiments.chart import Chart, Curve, spread_curve
from strongticket.experiments.figures.figure4._measure import ONE_SIGN, OTHERS, OURS, PAPER, Figure4, Line
from strongticket.experiments.fit import PRINTED, Decay

NAMES = {
    OURS: "ours",
    PAPER: "paper's assignment, solved exactly",
    ONE_SIGN: "paper's assignment, units of one sign",
    Line("balanced", "inverse"): "ours",
    Line("paper", "inverse"): "paper's assignment",
    Line("balanced", "xavier"): "ours",
    Line("paper", "xavier"): "paper's assignment",
}
SOLVERS = {"highs": "HiGHS", "gurobi": "Gurobi", "cpsat": "CP-SAT"}
INITS = {"theory": "U[±n^(+¼)]", "inverse": "U[±n^(−¼)]", "xavier": "Xavier"}
X_LABEL = "hidden dimensions n_K = n_V of the random source"
ERROR = "largest output error ε"


def decay(result: Figure4) -> Chart:
    """Median error and certificates against the width, on a logarithmic scale."""
    curves = [
        spread_curve(NAMES[OURS], result.of(OURS), 1, band="quantiles"),
        spread_curve(NAMES[PAPER], result.of(PAPER), 2, band="quantiles", marker="s"),
        spread_curve(NAMES[ONE_SIGN], result.of(ONE_SIGN), 3, marker="^"),
        spread_curve(_by_program(result), result.of(result.mip), 5, marker="x", line=False),
        spread_curve("our certificate", result.of(OURS, "bound"), 1, kind="bound"),
        spread_curve("paper's bound, same weights", result.of(OURS, "paper_bound"), 4, kind="bound"),
        *_printed(result),
    ]
    low = min(min(c.band[0]) if c.band else min(c.y) for c in curves)
    return Chart("median over sources", X_LABEL, ERROR, tuple(curves), y_range=(low / 3, 30))


def as_printed(result: Figure4) -> Chart:
    """Mean and standard deviation on a linear scale, as the paper draws it."""
    curves = []
    for line, colour, marker in ((OURS, 1, "o"), (PAPER, 2, "s"), (ONE_SIGN, 3, "^")):
        mean = spread_curve(NAMES[line], result.of(line), colour, y="mean", band="std", marker=marker)
        fit = result.fits[line.name]["error_max"]["least_squares"]
        curves += [mean, Curve(_label(fit), mean.x, fit(mean.x), colour, "fit")]
    curves.append(
        spread_curve(_by_program(result), result.of(result.mip), 5, y="mean", marker="x", line=False)
    )
    curves += _printed(result)
    return Chart("mean ± std, as in the paper", X_LABEL, ERROR, tuple(curves), log_y=False, y_range=(0, 0.8))


def initialisations(result: Figure4) -> Chart:
    """Median error of the sources drawn in three ways."""
    curves = []
    for line in (OURS, PAPER, *OTHERS):
        name = f"{INITS[line.init]}, {NAMES[line].split(',')[0]}"
        colour = list(INITS).index(line.init) + 1
        marker = "o" if line.assignment == "balanced" else ""
        curves.append(spread_curve(name, result.of(line), colour, marker=marker))
    return Chart("three initialisations", X_LABEL, ERROR, tuple(curves))


def _printed(result: Figure4) -> list[Curve]:
    n = list(result.scale.widths)
    curves = []
    for (name, (gamma, delta)), colour in zip(PRINTED.items(), (6, 4), strict=True):
        fit = Decay(gamma, delta, math.nan, math.nan, math.nan)
        curves.append(Curve(f"{name}: {_label(fit)}", n, fit(n), colour, "printed"))
    return curves


def _by_program(result: Figure4) -> str:
    return f"paper's assignment by {SOLVERS[result.mip.solver]}"


def _label(fit: Decay) -> str:
    return f"{fit.gamma:.2g}·exp(−{fit.delta:.3g} n)"
