"""Does scaling queries and keys help tickets for images? The valley of Figure 8 and the comparison of Figure 7
for a vision transformer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import head_size, paper_scale, scale_text, searches
from strongticket.experiments.tasks.valley import RULES, Valley
from strongticket.report import Facts, Page, Section, Table, Text
from strongticket.search import SearchConfig, preset

# The paper's recipe (edge-popup, normal weights, 30 % of every tensor) on scikit-learn's digits.
_LAPTOP = preset(
    "images", dim=32, heads=2, layers=2, batch=32, micro_batch=32, steps=300, warmup=30, kept=0.3, scope="tensor",
    law="normal", activation="relu", std=0.1, embedding_std=0.3, lr=6e-3, lr_end=6e-4,
)  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """config: of the searches; scales: of queries and keys; seeds: how many"""

    config: SearchConfig
    scales: tuple[float, ...]
    seeds: int


SCALES = {
    "laptop": Scale(_LAPTOP, (1.0, 2**0.5, 2.0, 2**1.5, 4.0, 2**2.5), 3),
    "paper": Scale(
        replace(
            _LAPTOP,
            dim=192,
            heads=3,
            layers=12,
            batch=256,
            micro_batch=256,
            steps=20_000,
            lr=1e-3,
            lr_end=1e-4,
        ),
        tuple(2 ** (k / 2) for k in range(-2, 7)),
        3,
    ),
    "test": Scale(replace(_LAPTOP, dim=8, layers=1, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 2),
}


@dataclass(frozen=True)
class ImagesStudy:
    """What was measured. rows: one per search or training; valley: means over seeds."""

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


def measure(run: Run) -> ImagesStudy:
    """Search at every scale with every seed, and train the same networks."""
    scale = SCALES[run.options.scale]
    wanted: list[tuple[float | None, SearchConfig]] = []
    for seed in range(run.options.seed, run.options.seed + scale.seeds):
        config = replace(scale.config, seed=seed)
        wanted += [(each, replace(config, qk_scale=scale_text(each))) for each in scale.scales]
        wanted.append((None, replace(config, method="dense", qk_scale="1", lr=config.rate / 3, lr_end=0.0)))
    results = searches(run, [config for _, config in wanted])
    rows = [
        dict(method=config.method, scale=each, seed=config.seed, **result)
        for (each, config), result in zip(wanted, results, strict=True)
    ]
    groups = [select(rows, scale=each) for each in scale.scales]
    valley = Valley(
        "images",
        head_size(scale.config),
        scale.config.std,
        paper_scale(scale.config),
        scale.scales,
        [column(group, "loss") for group in groups],
        [spread(column(group, "logit_std"))["mean"] for group in groups],
    )
    return ImagesStudy(scale, rows, valley)


def verdict(result: ImagesStudy) -> str:
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
        f"Scaling queries and keys {helps} for images; the best scale is {valley.best_scale:.2f}, where the logits' "
        f"standard deviation is {valley.best_logit_std:.2f}; n_K^¼ costs {costs['paper']:.3f} and the logit rule "
        f"{costs['logits']:.3f} above the lowest loss."
    )


def prints(result: ImagesStudy) -> tuple[Print, ...]:
    """Return the charts for print."""
    return (
        Print("images", _charts(result), "Loss and accuracy of image tickets against the query/key scale."),
    )


def page(result: ImagesStudy) -> Page:
    """Return the page."""
    loss, accuracy = _charts(result)
    rows = []
    for each in (*result.scale.scales, None):
        found = result.at(each)
        rows.append((
            "dense" if each is None else f"{each:.3g}",
            f"{found['loss']['mean']:.3f} ± {found['loss']['std']:.3f}",
            f"{found['accuracy']['mean']:.1%} ± {found['accuracy']['std']:.1%}",
        ))  # fmt: skip
    valley = result.valley
    facts = Facts(((result.three_scales(), "best scale; n_K^¼; logit rule"), (f"{len(result.rows)}", "runs")))
    sections = (
        Section("In short", (facts,)),
        Section(
            "Against the scale",
            (
                plot(loss, "Validation loss against the scale.", source="losses.csv"),
                plot(accuracy, "Validation accuracy against the scale.", source="losses.csv"),
                Table(
                    ("scale", "loss", "accuracy"),
                    tuple(rows),
                    f"{result.scale.seeds} seeds, mean ± deviation.",
                ),
            ),
        ),
        Section("What was measured", (_method(result.scale.config, valley),)),
    )
    return Page("Images: does the scale of queries and keys matter?", verdict(result), sections)


def _method(config: SearchConfig, valley: Valley) -> Text:
    return Text(
        f"A vision transformer ({config.layers} blocks, width {config.dim}, n_K = {valley.head_size}) on "
        f"`{config.data}` images cut into patches of {config.patch} × {config.patch}; {config.steps:,} steps of "
        f"{config.batch} images. Tickets keep {config.kept:.0%} of every tensor by edge-popup, the class token and "
        "the positions included. Dense training has a third of the learning rate, falling to zero."
    )


def _charts(result: ImagesStudy) -> tuple[Chart, Chart]:
    charts = []
    marks = ("n_K^(¼)", result.valley.rule("paper")), ("logit rule", result.valley.rule("logits"))
    for name in ("loss", "accuracy"):
        found = [result.at(each)[name] for each in result.scale.scales]
        means, stds = column(found, "mean"), column(found, "std")
        low, high = min(means), max(means)
        band = (
            [m - s for m, s in zip(means, stds, strict=True)],
            [m + s for m, s in zip(means, stds, strict=True)],
        )
        curves = [Curve("tickets", result.scale.scales, means, 1, band=band)]
        for colour, (rule, x) in enumerate(marks, 2):
            curves.append(Curve(rule, (x, x), (low, high), colour, "fit", marker=""))
        dense = result.at(None)[name]["mean"]
        ends = (result.scale.scales[0], result.scale.scales[-1])
        curves.append(Curve("dense training", ends, (dense, dense), 6, "printed", marker=""))
        charts.append(
            Chart(f"images, {name}", "scale of query and key weights", f"validation {name}", tuple(curves),
                  log_x=True, log_y=False, x_ticks=(1, 2, 4))
        )  # fmt: skip
    return charts[0], charts[1]
