"""Where a loss is lowest as a function of the scale of queries and keys, and studies of one such valley.

Two rules for the best scale are compared: the paper's n_K^¼, and the scale at which the attention logits, before
training, have a standard deviation of 0.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from strongticket.reproduce.plots import COLOURS, FIT, PRINTED, Axes, curve, label, within
from strongticket.reproduce.rows import Row, groups, select, spread, spreads
from strongticket.reproduce.searches import Make, cpu_seconds, head_size, paper_scale, scaled, searches
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.searching import TARGET_LOGIT_STD, SearchConfig

SCALE = "scale of query and key weights"  # of an axis
TICKS = (0.5, 1, 2, 4, 8, 16)  # of scales
LOGITS = "logits' standard deviation before training"


@dataclass(frozen=True)
class Valley:
    """The loss of a network at several scales of its queries and keys."""

    name: str
    head_size: int  # n_K
    std: float  # of the weights, σ
    paper_scale: float  # n_K^(1/4)
    scales: Sequence[float]  # ascending, at least three
    losses: Sequence[Sequence[float]]  # by scale, one per seed
    logit_stds: Sequence[float]  # by scale, of the attention logits before training

    @classmethod
    def of(cls, name: str, rows: Sequence[Row], config: SearchConfig) -> Valley:
        """Return the valley of some searches.

        Args:
            name: in tables and charts.
            rows: one per search, in the order of their scales; those of dense training have no scale and are left out.
            config: of any of the searches.
        """
        by_scale = groups([row for row in rows if row["scale"] is not None], ["scale"])
        return cls(
            name,
            head_size(config),
            config.source.std,
            paper_scale(config),
            [keys["scale"] for keys, _ in by_scale],
            [[row["loss"] for row in group] for _, group in by_scale],
            [spread([row["logit_std"] for row in group])["mean"] for _, group in by_scale],
        )

    @property
    def means(self) -> list[float]:
        return [float(np.mean(seeds)) for seeds in self.losses]

    @property
    def stds(self) -> list[float]:
        """Over seeds; 0 if there is only one."""
        return [spread(seeds)["std"] for seeds in self.losses]

    @property
    def best(self) -> int:
        """The scale of the grid with the lowest mean loss."""
        return int(np.argmin(self.means))

    @property
    def best_scale(self) -> float:
        return lowest(self.scales, self.means)

    @property
    def best_logit_std(self) -> float:
        slope, offset = self._logits()
        return math.exp(offset + slope * math.log(self.best_scale))

    def scale_for(self, logit_std: float) -> float:
        """Return the scale at which the logits have this standard deviation before training."""
        slope, offset = self._logits()
        return math.exp((math.log(logit_std) - offset) / slope)

    def loss_at(self, scale: float) -> float:
        """Return the loss at any scale: linear in log scale between measured ones, outside that of the nearest."""
        return float(np.interp(math.log(scale), np.log(self.scales), self.means))

    def cost(self, scale: float) -> float:
        """Return the loss at a scale above the lowest."""
        return self.loss_at(scale) - self.means[self.best]

    def row(self) -> Row:
        """Return what was found, for a table."""
        by_rule = {name: rule(self) for name, rule in RULES.items()}
        return {
            "name": self.name,
            "head_size": self.head_size,
            "std": self.std,
            "seeds": len(self.losses[0]),
            "best_scale": self.best_scale,
            "best_is_inside": 0 < self.best < len(self.scales) - 1,  # bracketed by scales on both sides
            "best_of_grid": self.scales[self.best],
            "best_logit_std": self.best_logit_std,
            "lowest_loss": self.means[self.best],
            **{f"{name}_scale": scale for name, scale in by_rule.items()},
            **{f"{name}_loss": self.loss_at(scale) for name, scale in by_rule.items()},
        }

    def points(self) -> list[Row]:
        """Return one row per scale: the loss over the seeds, how far it is above the lowest, and the logits."""
        lowest_mean = min(self.means)
        return [
            {"scale": scale, "mean": mean, "std": std, "above": mean - lowest_mean, "logit_std": logit_std}
            for scale, mean, std, logit_std in zip(
                self.scales, self.means, self.stds, self.logit_stds, strict=True
            )
        ]

    def _logits(self) -> tuple[float, float]:
        """Fit log std = slope · log scale + offset; the slope is near 2, as both factors of a logit are scaled."""
        slope, offset = np.polyfit(np.log(self.scales), np.log(self.logit_stds), 1)
        return float(slope), float(offset)


Rule = Callable[[Valley], float]  # the scale that it gives
RULES: dict[str, Rule] = {
    "paper": lambda valley: valley.paper_scale,
    "logits": lambda valley: valley.scale_for(TARGET_LOGIT_STD),
}


def constant_rule(valleys: Sequence[Valley]) -> Rule:
    """Return the rule of one scale for all, the best for these."""
    scale = math.exp(np.mean([math.log(valley.best_scale) for valley in valleys]))
    return lambda valley: scale


def lowest(scales: Sequence[float], losses: Sequence[float]) -> float:
    """Return the vertex of the parabola in log scale through the lowest point and its neighbours.

    The scales are ascending; if the lowest loss is at an end of them, that end is returned.

    >>> round(lowest([1, 2, 4], [1.0, 0.5, 1.0]), 6)
    2.0
    """
    x, y = np.log(np.asarray(scales, dtype=np.float64)), np.asarray(losses, dtype=np.float64)
    i = int(np.argmin(y))
    if not 0 < i < len(x) - 1:
        return float(scales[i])
    left, right = x[i] - x[i - 1], x[i + 1] - x[i]
    down, up = (y[i] - y[i - 1]) / left, (y[i + 1] - y[i]) / right  # slopes on both sides
    if up == down:
        return float(scales[i])
    # The parabola's slope is `down` in the middle of the left piece and `up` in that of the right one.
    return float(np.exp(x[i] - left / 2 - down * (left + right) / 2 / (up - down)))


def typical_factor(valleys: Sequence[Valley], scales: Sequence[float]) -> float:
    """Return how far scales are from the best ones: the root mean square of their log ratio, as a factor."""
    off = [math.log(scale / valley.best_scale) for valley, scale in zip(valleys, scales, strict=True)]
    return math.exp(math.sqrt(float(np.mean(np.square(off)))))


@dataclass(frozen=True)
class ValleySettings:
    """What is searched."""

    config: SearchConfig
    scales: tuple[float, ...]  # of queries and keys; the first counts as unscaled
    seeds: int


def valley_study(question: str, laptop: SearchConfig, paper: SearchConfig, make: Make | None = None) -> Study:
    """Return the study of one valley: loss and accuracy of tickets against the scale, beside dense training."""
    settings = {
        "quick": ValleySettings(laptop, (1.0, 2.0, 4.0, 8.0), 1),
        "laptop": ValleySettings(laptop, tuple(2 ** (k / 2) for k in range(6)), 3),
        "paper": ValleySettings(paper, tuple(2 ** (k / 2) for k in range(-2, 7)), 3),
    }
    return Study(question, settings, partial(measure, make=make), answer, plot, panels=2)


def measure(run: Run, settings: ValleySettings, make: Make | None = None) -> Tables:
    """Search at every scale with every seed, and train the same networks at a third of the learning rate."""
    dense = settings.config.changed(lr=settings.config.training.lr / 3, lr_end=0.0)
    cases = []
    for seed in run.seeds(settings.seeds):
        for scale in [*settings.scales, None]:
            config = scaled(dense if scale is None else settings.config, scale, seed)
            cases.append(({"method": config.source.method, "scale": scale, "seed": seed}, config))
    rows = searches(run, cases, make)
    return {"losses": rows, "spreads": spreads(rows, ("scale",), ("loss", "accuracy"))}


def answer(tables: Tables, settings: ValleySettings) -> Answer:
    """Say whether a scale helps, and what each rule for it costs."""
    rows = tables["losses"]
    valley = Valley.of("tickets", rows, settings.config)
    gain = valley.means[0] - valley.means[valley.best]
    helps = (
        f"Yes, scaling queries and keys lowers the loss by {gain:.3f}"
        if gain > valley.stds[0]
        else "No, scaling queries and keys changes the loss by less than its spread over seeds"
    )
    costs = {name: valley.cost(rule(valley)) for name, rule in RULES.items()}
    sentence = (
        f"{helps}; the best scale is {valley.best_scale:.2f}, where the logits' standard deviation is "
        f"{valley.best_logit_std:.2f}; n_K^¼ costs {costs['paper']:.3f} and the logit rule {costs['logits']:.3f} "
        "above the lowest loss."
    )
    *accuracies, _ = select(tables["spreads"], error="accuracy")  # the last is of dense training
    numbers = {
        "valley": valley.row() | {"points": valley.points()},
        "accuracy": [row["mean"] for row in accuracies],
        "dense": {row["error"]: row["mean"] for row in select(tables["spreads"], scale=None)},
        "cpu_seconds": cpu_seconds(rows),
    }
    return Answer(sentence, numbers, tables["spreads"])


def plot(tables: Tables, settings: ValleySettings, axes: Sequence[Axes]) -> None:
    """Draw loss and accuracy against the scale, with both rules and dense training."""
    valley = Valley.of("tickets", tables["losses"], settings.config)
    for axis, name in zip(axes, ("loss", "accuracy"), strict=True):
        *points, dense = select(tables["spreads"], error=name)
        curve(axis, points, "scale", "mean", band="std", color=COLOURS[0], label="tickets")
        mark(axis, valley.paper_scale, color=COLOURS[1], linestyle=FIT, label="$n_K^{1/4}$")
        mark(axis, RULES["logits"](valley), color=COLOURS[2], linestyle=FIT, label="logit rule")
        axis.axhline(
            dense["mean"], color=COLOURS[5], linestyle=PRINTED, linewidth=0.9, label="dense training"
        )
        label(axis, name, SCALE, f"validation {name}", log="x", ticks=within(settings.scales, TICKS))


def mark(axis: Axes, x: float, **style: Any) -> None:
    """Draw a vertical line."""
    axis.axvline(x, linewidth=0.9, **style)
