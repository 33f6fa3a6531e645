"""Which rule finds the best scale of queries and keys?

The settings differ in head size, deviation of the weights, depth, kept fraction and data. Rules fitted on half of
them are judged by the loss that they cost on the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from strongticket.reproduce.plots import COLOURS, Axes, curve, label
from strongticket.reproduce.rows import Row, select
from strongticket.reproduce.searches import cpu_seconds, head_size, scaled, searches
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.reproduce.valley import (
    LOGITS,
    RULES,
    SCALE,
    Rule,
    Valley,
    constant_rule,
    lowest,
    typical_factor,
)
from strongticket.searching import TARGET_LOGIT_STD, SearchConfig, preset

FACTORS = ("n_K", "σ", "depth", "kept", "images")
_DRAWS = 2000  # of settings, for an interval


@dataclass(frozen=True)
class RuleSettings:
    """What is searched."""

    settings: dict[str, SearchConfig]  # name of each valley -> its search, as `design` orders them
    scales: tuple[float, ...]  # of queries and keys
    seeds: int


def design(text: SearchConfig, images: SearchConfig, heads: tuple[int, int]) -> dict[str, SearchConfig]:
    """Return eight settings: all levels of n_K, σ and depth, with kept = n_K × σ and data = n_K × depth as signs."""
    found = {}
    for few_heads, large, deep in product((False, True), repeat=3):
        config = (images if few_heads != deep else text).changed(
            heads=heads[few_heads],
            std=0.16 if large else 0.08,
            layers=3 if deep else 1,
            kept=0.7 if few_heads != large else 0.3,
        )
        blocks = f"{config.model.layers} blocks" if deep else "1 block"
        data = "images" if config.task.task == "images" else "text"
        name = f"n_K {head_size(config)}, σ {config.source.std:g}, {blocks}, {config.source.kept:.0%}"
        found[f"{data}: {name}"] = config
    return found


def logit_rule(valleys: Sequence[Valley]) -> Rule:
    """Scale until the logits' deviation before training is what is best for these valleys."""
    target = math.exp(np.mean([math.log(valley.best_logit_std) for valley in valleys]))
    return lambda valley: valley.scale_for(target)


def power_rule(valleys: Sequence[Valley]) -> Rule:
    """Take c · n_K^a · σ^b with a, b and c fitted."""
    x = [[1.0, math.log(valley.head_size), math.log(valley.std)] for valley in valleys]
    best, *_ = np.linalg.lstsq(np.array(x), np.log([valley.best_scale for valley in valleys]), rcond=None)
    return lambda valley: math.exp(best @ [1.0, math.log(valley.head_size), math.log(valley.std)])


# Name -> the rule, fitted on some valleys.
CANDIDATES: dict[str, Callable[[Sequence[Valley]], Rule]] = {
    "n_K^¼": lambda valleys: RULES["paper"],
    f"logits' std {TARGET_LOGIT_STD:g}": lambda valleys: RULES["logits"],
    "logits' std, fitted": logit_rule,
    "c · n_K^a · σ^b, fitted": power_rule,
    "one constant, fitted": constant_rule,
}


def measure(run: Run, settings: RuleSettings) -> Tables:
    """Search at every scale of every setting with every seed; fit and judge the rules."""
    cases = [
        ({"setting": name, "scale": scale, "seed": seed}, scaled(config, scale, seed))
        for seed in run.seeds(settings.seeds)
        for name, config in settings.settings.items()
        for scale in settings.scales
    ]
    rows = searches(run, cases)
    valleys = _valleys(rows, settings)
    return {"losses": rows, "exponents": exponents(valleys, settings), "rules": costs(valleys)}


def _valleys(rows: Sequence[Row], settings: RuleSettings) -> list[Valley]:
    return [Valley.of(name, select(rows, setting=name), config) for name, config in settings.settings.items()]


def halves(count: int) -> tuple[list[int], list[int]]:
    """Return the two halves of the settings in the order of `design`; each has every factor at both levels."""
    first = [i for i in range(count) if i.bit_count() % 2]
    return first, [i for i in range(count) if i not in first]


def costs(valleys: Sequence[Valley]) -> list[Row]:
    """Return for each rule its loss above the lowest and its factor from the best scale, on held-out settings.

    Fitted on one half and judged on the other, both ways. From low to high is the mean cost's 95 % interval, from
    drawing settings with replacement.
    """
    first, second = ([valleys[i] for i in half] for half in halves(len(valleys)))
    draws = np.random.default_rng(0).integers(len(valleys), size=(_DRAWS, len(valleys)))
    held_out = [*second, *first]
    found = []
    for name, fit in CANDIDATES.items():
        scales = [*map(fit(first), second), *map(fit(second), first)]
        cost = np.array([valley.cost(scale) for valley, scale in zip(held_out, scales, strict=True)])
        low, high = np.quantile(cost[draws].mean(axis=1), (0.025, 0.975))
        row = dict(rule=name, cost=float(cost.mean()), low=float(low), high=float(high))
        found.append(row | dict(worst=float(cost.max()), factor=typical_factor(held_out, scales)))
    return found


def exponents(valleys: Sequence[Valley], settings: RuleSettings) -> list[Row]:
    """Return d log(best scale) / d log(factor) with its 95 % interval; of images the factor itself as a log."""
    from scipy.stats import t

    x, y = [], []
    for valley, config in zip(valleys, settings.settings.values(), strict=True):
        for seed in range(settings.seeds):
            logs = map(
                math.log, (head_size(config), config.source.std, config.model.layers, config.source.kept)
            )
            x.append([1.0, *logs, float(config.task.task == "images")])
            y.append(math.log(lowest(valley.scales, [losses[seed] for losses in valley.losses])))
    factors, values = np.array(x), np.array(y)
    best, *_ = np.linalg.lstsq(factors, values, rcond=None)
    freedom = len(values) - factors.shape[1]
    variance = float(np.square(values - factors @ best).sum()) / freedom
    errors = np.sqrt(np.diag(np.linalg.inv(factors.T @ factors)) * variance) * t.ppf(0.975, freedom)
    found = zip(FACTORS, best[1:].tolist(), errors[1:].tolist(), strict=True)
    return [
        dict(factor=name, exponent=value, low=value - error, high=value + error)
        for name, value, error in found
    ]


def answer(tables: Tables, settings: RuleSettings) -> Answer:
    """Say which rule is cheapest on held-out settings, and whether n_K has the paper's exponent."""
    order = sorted(tables["rules"], key=lambda row: row["cost"])
    listed = ", ".join(f"{row['rule']} {row['cost']:.4f}" for row in order)
    n_k = tables["exponents"][0]
    agrees = "agrees with" if n_k["low"] <= 0.25 <= n_k["high"] else "differs from"
    sentence = (
        f"On held-out settings the cheapest rule is {order[0]['rule']}; loss above the lowest: {listed}. The exponent "
        f"of n_K as fitted is {n_k['exponent']:.2f} ({n_k['low']:.2f} to {n_k['high']:.2f}), which {agrees} the "
        "paper's ¼."
    )
    numbers = {
        "valleys": [valley.row() for valley in _valleys(tables["losses"], settings)],
        "exponents": tables["exponents"],
        "held_out": tables["rules"],
        "cpu_seconds": cpu_seconds(tables["losses"]),
    }
    return Answer(sentence, numbers, tables["rules"])


def plot(tables: Tables, settings: RuleSettings, axes: Sequence[Axes]) -> None:
    """Draw the loss above the lowest against the scale and against the logits."""
    for i, valley in enumerate(_valleys(tables["losses"], settings)):
        style: dict[str, Any] = dict(color=COLOURS[i % 6], marker="os^D"[i // 2 % 4])
        name = valley.name.replace("n_K", "$n_K$")
        for axis, x in zip(axes, ("scale", "logit_std"), strict=True):
            curve(axis, valley.points(), x, "above", label=name, **style)
    above = "loss above the valley's lowest"
    label(axes[0], "against the scale", SCALE, above, log="x", ticks=settings.scales, below=2)
    label(axes[1], "against the logits", LOGITS, above, log="x", below=2)


_SHARED: dict[str, Any] = dict(dim=32, steps=600, warmup=50, embedding_std=0.3, lr=6e-3, lr_end=6e-4)
_TEXT = preset("paper-laptop", context=32, **_SHARED)
IMAGES = preset(
    "images",
    method="edge-popup",
    batch=32,
    micro_batch=32,
    scope="tensor",
    law="normal",
    activation="relu",
    **_SHARED,
)
_QUICK: dict[str, Any] = dict(steps=150, warmup=15)
STUDY = Study(
    "Which rule finds the best scale of queries and keys?",
    {
        "quick": RuleSettings(
            design(_TEXT.changed(**_QUICK), IMAGES.changed(**_QUICK), (4, 1)), (1.0, 2.0, 4.0, 8.0), 1
        ),
        "laptop": RuleSettings(design(_TEXT, IMAGES, (4, 1)), (0.5, 1.0, 2.0, 4.0, 8.0), 3),
        "paper": RuleSettings(
            design(
                preset("gpt2-mini"),
                IMAGES.changed(dim=512, steps=20_000, batch=256, micro_batch=256, lr=1e-3, lr_end=1e-4),
                (32, 4),
            ),
            tuple(2 ** (k / 2) for k in range(-2, 7)),
            3,
        ),
    },
    measure,
    answer,
    plot,
    panels=2,
)
