"""Where a loss is lowest as a function of a scale, and how well a rule predicts it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.searching import TARGET_LOGIT_STD as TARGET

RULES = {"paper": "n_K^¼", "logits": f"logits' std {TARGET:g}"}


@dataclass(frozen=True)
class Valley:
    """The loss of a network at several scales of its queries and keys.

    head_size: n_K
    std: of the weights, σ
    paper_scale: n_K^(1/4)
    losses: by scale, one per seed
    logit_stds: by scale, of the attention logits before training
    """

    name: str
    head_size: int
    std: float
    paper_scale: float
    scales: Sequence[float]
    losses: Sequence[Sequence[float]]
    logit_stds: Sequence[float]

    def __post_init__(self) -> None:
        if not len(self.scales) == len(self.losses) == len(self.logit_stds) >= 3:
            raise StrongTicketError(
                f"valley {self.name!r} has {len(self.scales)} scales, {len(self.losses)} losses and "
                f"{len(self.logit_stds)} standard deviations: expected one of each per scale, and at least three"
            )

    @property
    def means(self) -> list[float]:
        return [float(np.mean(seeds)) for seeds in self.losses]

    @property
    def stds(self) -> list[float]:
        """Over seeds; 0 if there is only one."""
        return [float(np.std(seeds, ddof=1)) if len(seeds) > 1 else 0.0 for seeds in self.losses]

    @property
    def best(self) -> int:
        """The scale of the grid with the lowest mean loss."""
        return int(np.argmin(self.means))

    @property
    def is_inside(self) -> bool:
        """The lowest loss has a neighbour on both sides, so that the best scale is bracketed."""
        return 0 < self.best < len(self.scales) - 1

    @property
    def best_scale(self) -> float:
        return lowest(self.scales, self.means)

    @property
    def best_logit_std(self) -> float:
        slope, offset = self._logits()
        return math.exp(offset + slope * math.log(self.best_scale))

    def rule(self, name: str) -> float:
        """Return the scale that a rule gives.

        name: of RULES
        """
        if name == "paper":
            return self.paper_scale
        slope, offset = self._logits()
        return math.exp((math.log(TARGET) - offset) / slope)

    def loss_at(self, scale: float) -> float:
        """Return the loss at any scale: on straight lines in log scale between measured ones, outside that of the
        nearest.
        """
        return float(np.interp(math.log(scale), np.log(self.scales), self.means))

    def gain_in_stds(self) -> float | None:
        """Return how far the lowest mean is below that of scale 1, in the larger of their standard deviations."""
        one = int(np.argmin(np.abs(np.log(self.scales))))
        std = max(self.stds[one], self.stds[self.best])
        return (self.means[one] - self.means[self.best]) / std if std > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything about the valley, ready for JSON."""
        return {
            "name": self.name,
            "head_size": self.head_size,
            "std": self.std,
            "seeds": len(self.losses[0]),
            "best_scale": self.best_scale,
            "best_is_inside": self.is_inside,
            "best_of_grid": self.scales[self.best],
            "best_logit_std": self.best_logit_std,
            "lowest_loss": self.means[self.best],
            "gain_over_1_in_stds": self.gain_in_stds(),
            **{f"{name}_scale": self.rule(name) for name in RULES},
            **{f"{name}_loss": self.loss_at(self.rule(name)) for name in RULES},
            "scales": list(self.scales),
            "loss": self.means,
            "loss_std": self.stds,
            "logit_std": list(self.logit_stds),
        }

    def _logits(self) -> tuple[float, float]:
        """log std = slope · log scale + offset; the slope is near 2, as both factors of a logit are scaled."""
        slope, offset = np.polyfit(np.log(self.scales), np.log(self.logit_stds), 1)
        return float(slope), float(offset)


def lowest(scales: Sequence[float], losses: Sequence[float]) -> float:
    """Return the vertex of the parabola in log scale through the lowest point and its neighbours.

    scales: ascending
    losses: one per scale; if the lowest is at an end of the scales, that end is returned

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


def compare_rules(valleys: Sequence[Valley]) -> dict[str, Any]:
    """Return for each rule how far its scale is from the best, and what its loss costs.

    factor: root mean square of log(best / rule), as a factor. explained: the share of the variance of the best
    log scales that the rule accounts for, 1 − Σ(best − rule)² / Σ(best − mean)²; below 0 a constant does better.
    cost: mean loss at the rule's scale above the lowest. slopes: of the best log scale against log n_K and log σ.
    """
    best = np.log([valley.best_scale for valley in valleys])
    total = float(np.square(best - best.mean()).sum())
    found: dict[str, Any] = {}
    for name in RULES:
        off = best - np.log([valley.rule(name) for valley in valleys])
        found[name] = {
            "factor": math.exp(math.sqrt(float(np.square(off).mean()))),
            "explained": 1 - float(np.square(off).sum()) / total if total > 0 else None,
            "cost": float(np.mean([v.loss_at(v.rule(name)) - v.means[v.best] for v in valleys])),
        }
    found["constant"] = {"scale": math.exp(best.mean()), "factor": math.exp(math.sqrt(total / len(best)))}
    found["slopes"] = {"head_size": _slope(valleys, "head_size"), "std": _slope(valleys, "std")}
    stds = [valley.best_logit_std for valley in valleys]
    found["best_logit_std"] = {"lowest": min(stds), "highest": max(stds), "mean": _mean_factor(stds)}
    return found


def _slope(valleys: Sequence[Valley], what: str) -> float | None:
    """Return d log(best scale) / d log(what), over the valleys that share the commonest other setting."""
    other = "std" if what == "head_size" else "head_size"
    values = [getattr(valley, other) for valley in valleys]
    usual = max(set(values), key=values.count)
    same = [valley for valley in valleys if getattr(valley, other) == usual]
    x = np.log([getattr(valley, what) for valley in same])
    if len(set(x)) < 2:
        return None
    return float(np.polyfit(x, np.log([valley.best_scale for valley in same]), 1)[0])


def _mean_factor(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
