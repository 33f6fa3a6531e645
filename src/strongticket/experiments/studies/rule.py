"""Which rule finds the best scale of queries and keys? Settings that differ in head size, deviation of the weights,
depth, kept fraction and data; rules fitted on half of them are judged by the loss they cost on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import TINY, head_size, paper_scale, scale_text, searches
from strongticket.experiments.tasks.valley import Valley, lowest
from strongticket.report import Facts, Page, Section, Table, Text
from strongticket.searching import TARGET_LOGIT_STD, SearchConfig, preset

FACTORS = ("n_K", "σ", "depth", "kept", "images")
_DRAWS = 2000  # of settings, for an interval
# A rule: fitted on some valleys, it gives the scale of any.
Rule = Callable[[Sequence[Valley]], Callable[[Valley], float]]


@dataclass(frozen=True)
class Scale:
    """settings: name of each valley -> its search; scales: of queries and keys; seeds: how many"""

    settings: dict[str, SearchConfig]
    scales: tuple[float, ...]
    seeds: int


def _design(text: SearchConfig, images: SearchConfig, heads: tuple[int, int]) -> dict[str, SearchConfig]:
    """Eight settings: every pair of n_K, σ and depth, with kept = n_K × σ and data = n_K × depth as signs."""
    found = {}
    for few_heads in (False, True):
        for large in (False, True):
            for deep in (False, True):
                base = images if few_heads != deep else text
                config = replace(
                    base,
                    heads=heads[few_heads],
                    std=0.16 if large else 0.08,
                    layers=3 if deep else 1,
                    kept=0.7 if few_heads != large else 0.3,
                )
                blocks = f"{config.layers} blocks" if deep else "1 block"
                data = "images" if config.task == "images" else "text"
                name = f"n_K {head_size(config)}, σ {config.std:g}, {blocks}, {config.kept:.0%}"
                found[f"{data}: {name}"] = config
    return found


_SHARED: dict[str, Any] = dict(dim=32, steps=600, warmup=50, embedding_std=0.3, lr=6e-3, lr_end=6e-4)
_TEXT = preset("paper-laptop", context=32, **_SHARED)
_IMAGES = preset(
    "images",
    method="edge-popup",
    batch=32,
    micro_batch=32,
    scope="tensor",
    law="normal",
    activation="relu",
    **_SHARED,
)
_QUICK: dict[str, Any] = dict(dim=8, steps=2, warmup=1)
SCALES = {
    "laptop": Scale(_design(_TEXT, _IMAGES, (4, 1)), (0.5, 1.0, 2.0, 4.0, 8.0), 3),
    "paper": Scale(
        _design(
            preset("gpt2-mini"),
            replace(_IMAGES, dim=512, steps=20_000, batch=256, micro_batch=256, lr=1e-3, lr_end=1e-4),
            (32, 4),
        ),
        tuple(2 ** (k / 2) for k in range(-2, 7)),
        3,
    ),
    "test": Scale(
        _design(replace(TINY, **_QUICK), replace(_IMAGES, patch=4, batch=8, micro_batch=8, **_QUICK), (4, 1)),
        (1.0, 2.0, 4.0),
        1,
    ),
}


def logit_rule(target: float | None) -> Rule:
    """The scale at which the logits' deviation before training is `target`; None takes what is best where fitted."""

    def fit(valleys: Sequence[Valley]) -> Callable[[Valley], float]:
        wanted = target or math.exp(np.mean([math.log(valley.best_logit_std) for valley in valleys]))

        def scale(valley: Valley) -> float:
            slope, offset = np.polyfit(np.log(valley.scales), np.log(valley.logit_stds), 1)
            return math.exp((math.log(wanted) - offset) / slope)

        return scale

    return fit


def constant_rule(valleys: Sequence[Valley]) -> Callable[[Valley], float]:
    """One scale for all."""
    scale = math.exp(np.mean([math.log(valley.best_scale) for valley in valleys]))
    return lambda valley: scale


def power_rule(valleys: Sequence[Valley]) -> Callable[[Valley], float]:
    """c · n_K^a · σ^b with all three fitted."""
    x = [[1.0, math.log(valley.head_size), math.log(valley.std)] for valley in valleys]
    best, *_ = np.linalg.lstsq(np.array(x), np.log([valley.best_scale for valley in valleys]), rcond=None)
    return lambda valley: math.exp(best @ [1.0, math.log(valley.head_size), math.log(valley.std)])


RULES: dict[str, Rule] = {
    "n_K^¼": lambda valleys: lambda valley: valley.paper_scale,
    f"logits' std {TARGET_LOGIT_STD:g}": logit_rule(TARGET_LOGIT_STD),
    "logits' std, fitted": logit_rule(None),
    "c · n_K^a · σ^b, fitted": power_rule,
    "one constant, fitted": constant_rule,
}


@dataclass(frozen=True)
class RuleStudy:
    """What was measured. rows: one per search; valleys: one per setting."""

    scale: Scale
    rows: list[Row]
    valleys: list[Valley]

    def halves(self) -> tuple[list[int], list[int]]:
        """Return the two halves of the settings; each has every factor at both levels."""
        first = [i for i in range(len(self.valleys)) if i.bit_count() % 2]  # of the order in _design
        return first, [i for i in range(len(self.valleys)) if i not in first]

    def costs(self) -> dict[str, Row]:
        """Return for each rule its loss above the lowest and its factor from the best scale, on held-out settings.

        Fitted on one half and judged on the other, both ways. low, high: the mean cost's 95 % interval, from drawing
        settings with replacement.
        """
        draws = np.random.default_rng(0).integers(len(self.valleys), size=(_DRAWS, len(self.valleys)))
        found = {}
        for name, rule in RULES.items():
            costs, off = [], []
            for train, test in (self.halves(), self.halves()[::-1]):
                scale = rule([self.valleys[i] for i in train])
                for i in test:
                    valley = self.valleys[i]
                    costs.append(valley.loss_at(scale(valley)) - valley.means[valley.best])
                    off.append(math.log(scale(valley) / valley.best_scale))
            low, high = np.quantile(np.array(costs)[draws].mean(axis=1), (0.025, 0.975))
            found[name] = {
                "cost": float(np.mean(costs)),
                "low": float(low),
                "high": float(high),
                "worst": float(np.max(costs)),
                "factor": math.exp(math.sqrt(float(np.mean(np.square(off))))),
            }
        return found

    def exponents(self) -> dict[str, tuple[float, float, float]]:
        """Return d log(best scale) / d log(factor) with its 95 % interval; of images the factor itself as a log."""
        from scipy.stats import t

        x, y = [], []
        for i, config in enumerate(self.scale.settings.values()):
            for seed in range(self.scale.seeds):
                x.append([1.0, *_logs(config)])
                y.append(math.log(lowest(self.scale.scales, [each[seed] for each in self.valleys[i].losses])))
        design, values = np.array(x), np.array(y)
        best, *_ = np.linalg.lstsq(design, values, rcond=None)
        freedom = len(values) - design.shape[1]
        variance = float(np.square(values - design @ best).sum()) / freedom
        errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance) * t.ppf(0.975, freedom)
        return {
            name: (float(value), float(value - error), float(value + error))
            for name, value, error in zip(FACTORS, best[1:], errors[1:], strict=True)
        }

    def settings(self) -> dict[str, Any]:
        return asdict(self.scale)

    def numbers(self) -> dict[str, Any]:
        return {
            "valleys": [valley.to_dict() for valley in self.valleys],
            "exponents": self.exponents(),
            "held_out": self.costs(),
            "cpu_seconds": round(sum(column(self.rows, "cpu_seconds")), 1),
        }

    def tables(self) -> dict[str, list[Row]]:
        held_out = [{"rule": name, **cost} for name, cost in self.costs().items()]
        fitted = [
            {"factor": name, "exponent": value, "low": low, "high": high}
            for name, (value, low, high) in self.exponents().items()
        ]
        return {"losses.csv": self.rows, "exponents.csv": fitted, "rules.csv": held_out}

    def headline(self) -> list[tuple[str, str]]:
        fitted = [
            (f"exponent of {n}", f"{v:.2f} ({a:.2f} to {b:.2f})") for n, (v, a, b) in self.exponents().items()
        ]
        return [*fitted, *((f"held-out cost of {n}", f"{c['cost']:.4f}") for n, c in self.costs().items())]


def _logs(config: SearchConfig) -> list[float]:
    logs = [math.log(value) for value in (head_size(config), config.std, config.layers, config.kept)]
    return [*logs, float(config.task == "images")]


def measure(run: Run) -> RuleStudy:
    """Search at every scale of every setting with every seed."""
    scale = SCALES[run.options.scale]
    wanted = [
        (name, each, replace(config, qk_scale=scale_text(each), seed=run.options.seed + seed))
        for seed in range(scale.seeds)
        for name, config in scale.settings.items()
        for each in scale.scales
    ]
    results = searches(run, [config for *_, config in wanted])
    rows = [
        dict(setting=name, scale=each, seed=config.seed, **{key: row.get(key) for key in _COLUMNS})
        for (name, each, config), row in zip(wanted, results, strict=True)
    ]
    return RuleStudy(
        scale, rows, [_valley(name, config, scale, rows) for name, config in scale.settings.items()]
    )


_COLUMNS = ("loss", "accuracy", "logit_std", "cpu_seconds")


def _valley(name: str, config: SearchConfig, scale: Scale, rows: list[Row]) -> Valley:
    groups = [select(rows, setting=name, scale=each) for each in scale.scales]
    losses = [column(group, "loss") for group in groups]
    logits = [spread(column(group, "logit_std"))["mean"] for group in groups]
    return Valley(name, head_size(config), config.std, paper_scale(config), scale.scales, losses, logits)


def verdict(result: RuleStudy) -> str:
    """Say in a sentence which rule wins on held-out settings."""
    costs = result.costs()
    order = sorted(costs, key=lambda name: costs[name]["cost"])
    listed = ", ".join(f"{name} {costs[name]['cost']:.4f}" for name in order)
    value, low, high = result.exponents()["n_K"]
    holds = "agrees with" if low <= 0.25 <= high else "differs from"
    return (
        f"On held-out settings the cheapest rule is {order[0]}; loss above the lowest: {listed}. The exponent of "
        f"n_K as fitted is {value:.2f} ({low:.2f} to {high:.2f}), which {holds} the paper's ¼."
    )


def prints(result: RuleStudy) -> tuple[Print, ...]:
    """Return the charts for print."""
    return (
        Print("rule", _charts(result), "Loss above the lowest against the scale and the logits' deviation."),
    )


def page(result: RuleStudy) -> Page:
    """Return the page."""
    scales, logits = _charts(result)
    fitted = tuple((n, f"{v:.2f}", f"{a:.2f} to {b:.2f}") for n, (v, a, b) in result.exponents().items())
    costs = tuple(
        (
            n,
            f"{c['cost']:.4f} ({c['low']:.4f} to {c['high']:.4f})",
            f"{c['worst']:.4f}",
            f"{c['factor']:.2f}",
        )
        for n, c in result.costs().items()
    )
    found = tuple(
        (
            v.name,
            f"{v.best_scale:.2f}",
            f"{v.paper_scale:.2f}",
            f"{v.best_logit_std:.2f}",
            f"{v.means[v.best]:.3f}",
        )
        for v in result.valleys
    )
    config = next(iter(result.scale.settings.values()))
    sections = (
        Section("In short", (Facts(((f"{len(result.rows)}", "searches"), (f"{config.steps:,}", "steps each"))),)),
        Section(
            "Rules on held-out settings",
            (Table(("rule", "mean cost", "worst cost", "typical factor"), costs,
                   "Fitted on half of the settings, judged on the other half, both ways."),),
        ),
        Section("Fitted exponents", (Table(("factor", "exponent", "95 % interval"), fitted),)),
        Section(
            "Valleys",
            (
                plot(scales, "Loss above the lowest against the scale.", source="losses.csv"),
                plot(logits, "The same against the logits' deviation before training.", source="losses.csv"),
                Table(("setting", "best scale", "n_K^¼", "logits' std there", "lowest loss"), found),
            ),
        ),
        Section("What was measured", (Text(_method(result)),)),
    )  # fmt: skip
    return Page("The law of the best scale", verdict(result), sections)


def _method(result: RuleStudy) -> str:
    return (
        f"Eight settings, a quarter of all combinations of n_K, σ, depth, kept fraction and data in which every "
        f"factor is balanced; {result.scale.seeds} seeds; edge-popup with normal weights. A best scale is the vertex "
        "of a parabola in log scale. Exponents are fitted to the best scale of every seed; that of `images` is the "
        "log of the factor between images and text."
    )


def _charts(result: RuleStudy) -> tuple[Chart, Chart]:
    by_scale, by_logits = [], []
    for i, valley in enumerate(result.valleys):
        excess = [mean - min(valley.means) for mean in valley.means]
        look = dict(colour=1 + i % 6, marker=("o", "s", "^", "D")[i // 2 % 4])
        by_scale.append(Curve(valley.name, valley.scales, excess, **look))  # type: ignore[arg-type]
        by_logits.append(Curve(valley.name, valley.logit_stds, excess, **look))  # type: ignore[arg-type]
    return (
        _chart("against the scale", "scale of query and key weights", by_scale, result.scale.scales),
        _chart("against the logits", "logits' standard deviation before training", by_logits),
    )


def _chart(title: str, x: str, curves: list[Curve], ticks: tuple[float, ...] | None = None) -> Chart:
    return Chart(
        title,
        x,
        "loss above the valley's lowest",
        tuple(curves),
        log_x=True,
        log_y=False,
        x_ticks=ticks,
        legend_columns=1,
    )
