"""Charts and report page for the initialisations."""

from __future__ import annotations

from strongticket.experiments.chart import Chart, Print, plot, spread_curve
from strongticket.experiments.studies.initialisations._measure import (
    PROPERTIES,
    SCALINGS,
    InitialisationsStudy,
    weight_std,
)
from strongticket.experiments.tasks.tuning import at_an_end
from strongticket.report import Facts, Page, Section, Table, Text

MARKERS = ("o", "s", "^", "D", "x", "o")


def prints(result: InitialisationsStudy) -> tuple[Print, ...]:
    """Return the charts for print."""
    charts = tuple(_chart(result, data) for data in result.scale.data)
    alt = "Loss against the logits' standard deviation before training, a line for each initialisation."
    return (Print("initialisations", charts, alt),)


def verdict(result: InitialisationsStudy) -> str:
    """Say in a sentence per kind of data which property predicts the loss."""
    sentences = []
    for data in result.scale.data:
        found = result.predictors(data)
        shares = {name: found[name] for name in PROPERTIES}
        order = sorted(shares, key=lambda name: -shares[name][0])
        listed = ", ".join(
            f"{n} {shares[n][0]:.0%} ({shares[n][1]:.0%} to {shares[n][2]:.0%})" for n in order
        )
        ranges = result.ranges(data)
        first, last = result.scale.scalings[0], result.scale.scalings[-1]
        sentences.append(
            f"For {data} the best single predictor of the loss is the {order[0]}; share of the variance predicted on "
            f"left-out cases: {listed}. The initialisations are {ranges[first]:.3f} apart {SCALINGS[first]} and "
            f"{ranges[last]:.3f} with {SCALINGS[last]}."
        )  # fmt: skip
    return " ".join(sentences)


def page(result: InitialisationsStudy) -> Page:
    """Return the page."""
    best = tuple(
        (f"{case['mean']:.3f}", f"{data}: {case['initialisation']}, {SCALINGS[case['scaling']]}")
        for data in result.scale.data
        for case in [result.best(data)]
    )
    shares = tuple(
        (data, name, f"{share:.0%}", f"{low:.0%} to {high:.0%}")
        for data in result.scale.data
        for name, (share, low, high) in result.predictors(data).items()
    )
    sections = (
        Section("In short", (Facts(best),)),
        *(
            Section(data.capitalize(), (
                plot(_chart(result, data), f"Loss of {data} against the logits' deviation.", source="cases.csv"),
                _losses(result, data),
            ))
            for data in result.scale.data
        ),
        Section("Which property predicts the loss", (
            Table(("data", "property", "predicted share", "95 % interval"), shares,
                  "Every case is predicted by a fit to the others; intervals from drawing cases with replacement. "
                  "Variance and logits enter as logarithm and its square."),
        )),
        Section("Learning rates", (_tuning(result),)),
        Section("What was measured", (Text(_method(result)),)),
    )  # fmt: skip
    return Page("Initialisations: what about the random weights matters?", verdict(result), sections)


def _losses(result: InitialisationsStudy, data: str) -> Table:
    cases = [[result.case(data, n, s) for s in result.scale.scalings] for n in result.scale.initialisations]
    rows = tuple(
        (
            name,
            f"{group[0]['std_of_weights']:.3g}",
            *(f"{case['mean']:.3f} ± {case['std']:.3f} ({case['logit_std']:.2g})" for case in group),
        )
        for name, group in zip(result.scale.initialisations, cases, strict=True)
    )
    columns = ("initialisation", "σ", *(SCALINGS[scaling] for scaling in result.scale.scalings))
    return Table(
        columns,
        rows,
        f"Loss, mean ± deviation of {result.scale.seeds} seeds; in brackets the logits' deviation before training. "
        f"σ is that of a square matrix. Between seeds the pooled deviation is {result.seed_std(data):.3f}.",
    )


def _tuning(result: InitialisationsStudy) -> Table:
    keys = ("data", "initialisation", "scaling")
    tried: dict[tuple[str, ...], dict[float, float]] = {}
    for row in result.tuning:
        tried.setdefault(tuple(row[key] for key in keys), {})[row["rate"]] = row["loss"]
    rows = tuple(
        (data, name, SCALINGS[scaling], *(f"{losses[rate]:.3f}" for rate in result.scale.rates))
        for (data, name, scaling), losses in tried.items()
    )
    ends = at_an_end(result.rows, result.scale.rates)
    caption = (
        f"First seed; the lowest loss is taken. In {ends} of {len(rows)} cases it is at an end of the rates."
    )
    return Table((*keys, *(f"{rate:g}" for rate in result.scale.rates)), rows, caption)


def _method(result: InitialisationsStudy) -> str:
    parts = []
    for data, config in result.scale.data.items():
        parts.append(
            f"{data.capitalize()}: a {config.architecture} of {config.layers} block(s), width {config.dim}, "
            f"n_K = {config.dim // config.heads}, {config.steps:,} steps of {config.batch} sequences or images, "
            f"{config.kept:.0%} of every tensor kept by edge-popup; σ = {weight_std(config):g} unless Kaiming (normal) "
            f"or Xavier (uniform) sets it."
        )
    return " ".join(parts) + " Orthogonal is the Hadamard law."


def _chart(result: InitialisationsStudy, data: str) -> Chart:
    curves = []
    for colour, name in enumerate(result.scale.initialisations, 1):
        cases = [result.case(data, name, scaling) for scaling in result.scale.scalings]
        cases.sort(key=lambda case: case["logit_std"])
        curves.append(
            spread_curve(name, cases, colour, x="logit_std", y="mean", band="std", marker=MARKERS[colour - 1])
        )
    return Chart(
        data,
        "logits' standard deviation before training",
        "validation loss",
        tuple(curves),
        log_x=True,
        log_y=False,
    )
