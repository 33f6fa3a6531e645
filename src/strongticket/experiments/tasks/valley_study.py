"""A study of one valley: loss and accuracy of tickets against the scale of queries and keys, beside dense training.

What a study brings is its searches; the rules, the charts and the page are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import head_size, paper_scale, scale_text
from strongticket.experiments.tasks.tuning import Searches
from strongticket.experiments.tasks.valley import RULES, Valley
from strongticket.report import Facts, Page, Section, Table, Text
from strongticket.searching import SearchConfig


@dataclass(frozen=True)
class Scale:
    """config: of the searches; scales: of queries and keys; seeds: how many"""

    config: SearchConfig
    scales: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class ValleyStudy:
    """What was measured.

    name: of the study, as in the catalogue
    method: what was measured, in words
    rows: one per search or training
    valley: means over seeds
    """

    name: str
    method: str
    scale: Scale
    rows: list[Row]
    valley: Valley

    def at(self, scale: float | None) -> dict[str, Row]:
        """Return the spread of loss and accuracy at one scale; None is dense training."""
        group = select(self.rows, scale=scale)
        return {name: spread(column(group, name)) for name in ("loss", "accuracy")}

    def settings(self) -> dict[str, Any]:
        return asdict(self.scale)

    def numbers(self) -> dict[str, Any]:
        dense = {name: found["mean"] for name, found in self.at(None).items()}
        return {
            "valley": self.valley.to_dict(),
            "accuracy": [self.at(scale)["accuracy"]["mean"] for scale in self.scale.scales],
            "dense": dense,
            "cpu_seconds": round(sum(column(self.rows, "cpu_seconds")), 1),
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"losses.csv": self.rows}

    def headline(self) -> list[tuple[str, str]]:
        valley = self.valley
        one, best = self.at(self.scale.scales[0]), self.at(valley.scales[valley.best])
        return [
            ("best scale; n_K^¼; logit rule", self.three_scales()),
            ("accuracy: unscaled, best scale, dense", " · ".join(
                f"{found['accuracy']['mean']:.1%}" for found in (one, best, self.at(None))
            )),
        ]  # fmt: skip

    def three_scales(self) -> str:
        """Return the best scale beside what the rules give."""
        valley = self.valley
        return f"{valley.best_scale:.2f}; {valley.rule('paper'):.2f}; {valley.rule('logits'):.2f}"


def measure_valley(name: str, method: str, scale: Scale, seed: int, searches: Searches) -> ValleyStudy:
    """Search at every scale with every seed, and train the same networks.

    name, method: see ValleyStudy
    scale: its first scale is the one that counts as unscaled
    seed: the first one
    searches: runs configs; its rows have loss, accuracy, logit_std and cpu_seconds
    """
    wanted: list[tuple[float | None, SearchConfig]] = []
    for each_seed in range(seed, seed + scale.seeds):
        config = replace(scale.config, seed=each_seed)
        wanted += [(each, replace(config, qk_scale=scale_text(each))) for each in scale.scales]
        wanted.append((None, replace(config, method="dense", qk_scale="1", lr=config.lr / 3, lr_end=0.0)))
    rows = [
        dict(method=config.method, scale=each, seed=config.seed, **result)
        for (each, config), result in zip(wanted, searches([config for _, config in wanted]), strict=True)
    ]
    groups = [select(rows, scale=each) for each in scale.scales]
    valley = Valley(
        name,
        head_size(scale.config),
        scale.config.std,
        paper_scale(scale.config),
        scale.scales,
        [column(group, "loss") for group in groups],
        [spread(column(group, "logit_std"))["mean"] for group in groups],
    )
    return ValleyStudy(name, method, scale, rows, valley)


def verdict(result: ValleyStudy) -> str:
    """Say in a sentence what the valley shows."""
    valley = result.valley
    costs = {rule: valley.loss_at(valley.rule(rule)) - valley.means[valley.best] for rule in RULES}
    gain = valley.means[0] - valley.means[valley.best]
    helps = (
        f"lowers the loss by {gain:.3f}"
        if gain > valley.stds[0]
        else "changes the loss by less than its spread"
    )
    return (
        f"Scaling queries and keys {helps}; the best scale is {valley.best_scale:.2f}, where the logits' "
        f"standard deviation is {valley.best_logit_std:.2f}; n_K^¼ costs {costs['paper']:.3f} and the logit rule "
        f"{costs['logits']:.3f} above the lowest loss."
    )


def valley_page(result: ValleyStudy, title: str) -> Page:
    """Return the page of a study.

    title: of the page
    """
    loss, accuracy = _charts(result)
    rows = []
    for each in (*result.scale.scales, None):
        found = result.at(each)
        logits = spread(column(select(result.rows, scale=each), "logit_std"))["mean"] if each else None
        rows.append((
            "dense" if each is None else f"{each:.3g}",
            f"{found['loss']['mean']:.3f} ± {found['loss']['std']:.3f}",
            f"{found['accuracy']['mean']:.1%} ± {found['accuracy']['std']:.1%}",
            "" if logits is None else f"{logits:.2g}",
        ))  # fmt: skip
    facts = Facts(((result.three_scales(), "best scale; n_K^¼; logit rule"), (f"{len(result.rows)}", "runs")))
    caption = f"{result.scale.seeds} seeds, mean ± deviation."
    sections = (
        Section("In short", (facts,)),
        Section(
            "Against the scale",
            (
                plot(loss, "Validation loss against the scale.", source="losses.csv"),
                plot(accuracy, "Validation accuracy against the scale.", source="losses.csv"),
                Table(("scale", "loss", "accuracy", "logits' std before training"), tuple(rows), caption),
            ),
        ),
        Section("What was measured", (Text(result.method),)),
    )
    return Page(title, verdict(result), sections)


def valley_prints(result: ValleyStudy) -> tuple[Print, ...]:
    """Return the charts for print."""
    return (Print(result.name, _charts(result), "Loss and accuracy of tickets against the query/key scale."),)


def _charts(result: ValleyStudy) -> tuple[Chart, Chart]:
    return _chart(result, "loss"), _chart(result, "accuracy")


def _chart(result: ValleyStudy, name: str) -> Chart:
    scales: Sequence[float] = result.scale.scales
    found = [result.at(each)[name] for each in scales]
    means, stds = column(found, "mean"), column(found, "std")
    band = (
        [m - s for m, s in zip(means, stds, strict=True)],
        [m + s for m, s in zip(means, stds, strict=True)],
    )
    curves = [Curve("tickets", scales, means, 1, band=band)]
    marks = ("n_K^(¼)", result.valley.rule("paper")), ("logit rule", result.valley.rule("logits"))
    for colour, (rule, x) in enumerate(marks, 2):
        curves.append(Curve(rule, (x, x), (min(means), max(means)), colour, "fit", marker=""))
    dense = result.at(None)[name]["mean"]
    curves.append(Curve("dense training", (scales[0], scales[-1]), (dense, dense), 6, "printed", marker=""))
    return Chart(
        f"{result.name}, {name}", "scale of query and key weights", f"validation {name}", tuple(curves),
        log_x=True, log_y=False, x_ticks=(1, 2, 4),
    )  # fmt: skip
