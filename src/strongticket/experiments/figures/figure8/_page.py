"""Charts and report page for Figure 8."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.experiments.figures.figure8._measure import Figure8, Series
from strongticket.experiments.tasks.valley import RULES, Valley
from strongticket.report import Cell, Facts, Page, PageBlock, Section, Table, Text, number
from strongticket.searching import TARGET_LOGIT_STD as TARGET

SCALE, LOGITS = "scale of query and key weights", "logits' standard deviation before training"
TICKS = (0.5, 1, 2, 4, 8)
LOGIT_TICKS = (0.05, 0.1, 0.2, 0.4, TARGET, 1.5, 3, 6)
EXCESS = "loss above the valley's lowest"
MARKERS = ("o", "s", "^", "D", "x")


def prints(result: Figure8) -> tuple[Print, ...]:
    """Return the charts for print."""
    alt = "Three charts: the valley of Figure 8, valleys for several head sizes, and for several deviations."
    scales = (_main(result), _scales(result, "heads"), _scales(result, "std"))
    logits = (_main_logits(result), _logits(result, "heads"), _logits(result, "std"))
    return (
        Print("figure8", scales, f"{alt} Against the scale."),
        Print("figure8-logits", logits, f"{alt} Against the {LOGITS}."),
    )


def page(result: Figure8) -> Page:
    """Return the page."""
    lead = " ".join(_main_sentence(valley) for _, valley in result.of("main")) + " " + verdict(result.rules)
    sections = (
        Section("In short", (_facts(result),)),
        Section("The loss against the scale", _main_blocks(result)),
        Section("Heads of other sizes, weights of other standard deviations", _other_blocks(result)),
        Section("Which rule finds the best scale", _rule_blocks(result)),
        Section("What was measured", (_method(result),)),
    )
    return Page("Figure 8: the best scale of queries and keys", lead, sections)


def verdict(rules: dict[str, Any]) -> str:
    """Say plainly whether the best scale is where the logits' standard deviation is about 0.7.

    rules: of compare_rules
    """
    paper, logits, best = rules["paper"], rules["logits"], rules["best_logit_std"]
    closer = logits["factor"] < paper["factor"]
    holds = closer and (logits["explained"] or 0) > 0.5
    answer = "does not hold"
    if holds:
        answer = "holds"
    elif closer:
        answer = "does not hold as it stands, though it is the better rule"
    return (
        f"That the best scale is where the attention logits' standard deviation is about {TARGET:g} "
        f"{answer}: over all valleys that rule is off by a factor of {logits['factor']:.2f}, n_K^¼ by "
        f"{paper['factor']:.2f} and the best constant by {rules['constant']['factor']:.2f}; at the best "
        f"scales the standard deviation is {best['lowest']:.2f} to {best['highest']:.2f}."
    )


def _main_sentence(valley: Valley) -> str:
    stds = valley.gain_in_stds()
    below = "" if stds is None else f", {stds:.0f} standard deviations below scale 1"
    return (
        f"The loss of tickets from `{valley.name}` is lowest at a scale of {valley.best_scale:.2f}{below}; "
        f"n_K^¼ is {valley.paper_scale:.2f}."
    )


def _facts(result: Figure8) -> Facts:
    rules = result.rules
    items = [
        (f"{valley.best_scale:.2f}", f"best scale of {valley.name}, n_K^¼ = {valley.paper_scale:.2f}")
        for _, valley in result.of("main")
    ]
    items += [(f"{rules[rule]['factor']:.2f}×", f"typical error of {name}") for rule, name in RULES.items()]
    return Facts(tuple(items))


def _main_blocks(result: Figure8) -> tuple[PageBlock, ...]:
    rows = []
    for series, valley in result.of("main"):
        points = zip(valley.scales, valley.means, valley.stds, valley.logit_stds, strict=True)
        for scale, mean, std, logits in points:
            rows.append((series.name, f"{scale:.3g}", f"{mean:.3f} ± {std:.3f}", f"{logits:.2g}"))
        dense = result.dense[series.name]
        rows.append((series.name, "dense", f"{dense['mean']:.3f} ± {dense['std']:.3f}", ""))
    seeds = result.of("main")[0][0].seeds
    return (
        plot(
            _main(result),
            "A valley: the loss falls from scale 0.5 to near n_K^¼ and rises again.",
            f"Validation loss in nats per token, mean and standard deviation of {seeds} seeds.",
            source="losses.csv",
        ),
        Table(("network", "scale", "loss", "logits' std"), tuple(rows)),
    )


def _other_blocks(result: Figure8) -> tuple[PageBlock, ...]:
    blocks: list[PageBlock] = [
        Text(
            "One setting says nothing about a rule: many rules give 2.83 there. With other numbers of "
            "heads at equal width n_K^¼ moves and the logits' standard deviation does not; with other "
            "standard deviations σ of the weights it is the other way round."
        )
    ]
    for family, what in (("heads", "head sizes n_K"), ("std", "standard deviations σ of the weights")):
        alts = (f"Valleys for several {what}, against the scale.", f"The same against the {LOGITS}.")
        for chart, alt in zip((_scales(result, family), _logits(result, family)), alts, strict=True):
            blocks.append(plot(chart, alt, source="valleys.csv"))
    return tuple(blocks)


def _rule_blocks(result: Figure8) -> tuple[PageBlock, ...]:
    rows: list[tuple[Cell, ...]] = []
    for series, valley in zip(result.series, result.valleys, strict=True):
        edge = "" if valley.is_inside else " (end of the scales)"
        costs = (f"{valley.loss_at(valley.rule(rule)) - valley.means[valley.best]:.3f}" for rule in RULES)
        rows.append(
            (
                valley.name,
                series.config.steps,
                f"{valley.best_scale:.2f}{edge}",
                *(f"{valley.rule(rule):.2f}" for rule in RULES),
                f"{valley.best_logit_std:.2f}",
                *costs,
            )
        )
    rules, slopes = result.rules, result.rules["slopes"]
    judged = tuple(
        (name, f"{rules[rule]['factor']:.2f}", _share(rules[rule]["explained"]), f"{rules[rule]['cost']:.4f}")
        for rule, name in RULES.items()
    )
    constant = rules["constant"]
    return (
        Text(verdict(rules)),
        Table(
            (
                "valley",
                "steps",
                "best scale",
                *RULES.values(),
                "std at best",
                *(f"cost of {r}" for r in RULES.values()),
            ),
            tuple(rows),
            "The best scale is the lowest point of a parabola through the lowest loss and its neighbours. "
            "Cost: loss at the rule's scale above the lowest, between measured scales on straight lines.",
        ),
        Table(
            ("rule", "off by a factor of", "of the variance explained", "mean cost"),
            (*judged, (f"always {constant['scale']:.2f}", f"{constant['factor']:.2f}", "0 %", None)),
            "Without the first valleys. Off by: root mean square in log scale. Below 0 % a constant does "
            "better.",
        ),
        Text(
            f"As a power law the best scale goes as n_K^({_power(slopes['head_size'])}) · "
            f"σ^({_power(slopes['std'])}). The paper's rule says n_K^(0.25) · σ^(0), the logits' standard "
            "deviation n_K^(0) · σ^(−1)."
        ),
    )


def _method(result: Figure8) -> Text:
    series, _ = result.of("main")[0]
    other, _ = result.of("heads")[0]
    config = series.config
    return Text(
        f"Edge-popup keeps {config.kept:.0%} of every tensor of a random GPT-2 with ReLU: width "
        f"{config.dim}, {config.layers} layers, {config.heads} heads, {config.steps:,} steps of "
        f"{config.batch} sequences of {config.context} tokens of `{config.data}`, {series.seeds} seeds. "
        f"The other valleys: {other.config.steps:,} steps, {other.seeds} seed(s), heads and σ as named and "
        "all else equal; σ is that of all linear maps, not of the embeddings. The logits' standard "
        "deviation is taken within the keys that a query sees, root mean square over queries, heads and "
        "layers, on 16 training sequences before the search, with the mask of the initial scores. Every "
        "run is a line of `losses.csv`."
    )


def _main(result: Figure8) -> Chart:
    curves = []
    for colour, (series, valley) in enumerate(result.of("main"), 1):
        low = [mean - std for mean, std in zip(valley.means, valley.stds, strict=True)]
        high = [mean + std for mean, std in zip(valley.means, valley.stds, strict=True)]
        name = f"tickets of {series.name}"
        curves.append(Curve(name, valley.scales, valley.means, colour, band=(low, high)))
        dense = result.dense[series.name]["mean"]
        ends = (valley.scales[0], valley.scales[-1])
        curves.append(Curve(f"dense training, {series.name}", ends, (dense, dense), colour, "fit"))
    bottom, top = _span(curves)
    mark = result.of("main")[0][1].paper_scale
    curves.append(Curve(f"n_K^(¼) = {mark:.2f}", (mark, mark), (bottom, top), 6, "printed"))
    return _chart("as in the paper", SCALE, "validation loss", curves, TICKS)


def _main_logits(result: Figure8) -> Chart:
    curves = [
        Curve(f"tickets of {series.name}", valley.logit_stds, valley.means, colour)
        for colour, (series, valley) in enumerate(result.of("main"), 1)
    ]
    curves.append(Curve(f"{TARGET:g}", (TARGET, TARGET), _span(curves), 6, "printed"))
    return _chart("the same against the logits", LOGITS, "validation loss", curves, LOGIT_TICKS)


def _scales(result: Figure8, family: str) -> Chart:
    curves = _excess(result, family, lambda valley: valley.scales)
    top = max(max(curve.y) for curve in curves)
    for colour, (_, valley) in enumerate(result.of(family), 1):
        if family == "heads" or colour == 1:
            mark = valley.paper_scale
            name = f"n_K^(¼) = {mark:.2f}"
            curves.append(Curve(name, (mark, mark), (0, top), colour if family == "heads" else 6, "printed"))
    return _chart(_title(family), SCALE, EXCESS, curves, TICKS)


def _logits(result: Figure8, family: str) -> Chart:
    curves = _excess(result, family, lambda valley: valley.logit_stds)
    top = max(max(curve.y) for curve in curves)
    curves.append(Curve(f"{TARGET:g}", (TARGET, TARGET), (0, top), 6, "printed"))
    return _chart(_title(family), LOGITS, EXCESS, curves, LOGIT_TICKS)


def _excess(result: Figure8, family: str, x: Callable[[Valley], Any]) -> list[Curve]:
    looks = enumerate(zip(result.of(family), MARKERS, strict=False), 1)
    return [
        Curve(_name(series, family), x(valley), _above_lowest(valley), colour, marker=marker)
        for colour, ((series, valley), marker) in looks
    ]


def _above_lowest(valley: Valley) -> list[float]:
    return [mean - min(valley.means) for mean in valley.means]


def _name(series: Series, family: str) -> str:
    return series.name if family == "heads" else f"σ = {series.config.std:g}"


def _title(family: str) -> str:
    return (
        "heads of other sizes, equal width" if family == "heads" else "weights of other standard deviations"
    )


def _chart(title: str, x_label: str, y_label: str, curves: list[Curve], ticks: tuple[float, ...]) -> Chart:
    low, high = min(min(curve.x) for curve in curves), max(max(curve.x) for curve in curves)
    shown = tuple(tick for tick in ticks if low <= tick * 1.001 and tick <= high * 1.001)
    return Chart(
        title, x_label, y_label, tuple(curves), log_x=True, log_y=False, x_ticks=shown, legend_columns=2
    )


def _span(curves: list[Curve]) -> tuple[float, float]:
    return min(min(curve.y) for curve in curves), max(max(curve.y) for curve in curves)


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %".replace("-", "−")


def _power(value: float | None) -> str:
    return "?" if value is None or not math.isfinite(value) else number(round(value, 2))
