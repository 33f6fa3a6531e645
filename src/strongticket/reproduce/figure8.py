"""Figure 8: loss against the scale of query and key weights, and which rule finds the best scale.

The paper's rule is n_K^¼. The other: the scale at which the attention logits, before training, have a standard
deviation of about 0.7. Heads of other sizes and weights of other standard deviations separate them: with more heads at
equal width n_K^¼ moves and the logits do not, with other weights it is the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strongticket.reproduce.plots import COLOURS, FIT, PRINTED, Axes, curve, label, within
from strongticket.reproduce.rows import Row, select, spread_by
from strongticket.reproduce.searches import cpu_seconds, head_size, scaled, searches
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.reproduce.valley import (
    LOGITS,
    RULES,
    SCALE,
    TICKS,
    Valley,
    constant_rule,
    mark,
    typical_factor,
)
from strongticket.searching import TARGET_LOGIT_STD, SearchConfig, preset

LOGIT_TICKS = (0.05, 0.1, 0.2, 0.4, TARGET_LOGIT_STD, 1.5, 3, 6)
MARKERS = "os^Dxv*"


@dataclass(frozen=True)
class Series:
    """One valley to measure: a network at several scales of its queries and keys."""

    config: SearchConfig
    powers: tuple[float, ...]  # of 2: the scales
    seeds: int = 1
    main: bool = False  # a valley of the paper; the networks of these are also trained

    @property
    def scales(self) -> list[float]:
        return [2.0**power for power in self.powers]


@dataclass(frozen=True)
class Figure8:
    """What is measured."""

    series: dict[str, Series]  # name of a valley -> its searches, those of the paper first


def varied(
    base: SearchConfig, sizes: Sequence[int], stds: dict[float, float], powers: Sequence[float]
) -> dict[str, Series]:
    """Return the valleys of heads of other sizes at equal width, and of weights of other standard deviations.

    Args:
        base: the network that they vary.
        sizes: of heads.
        stds: standard deviation of the weights -> how far its powers are moved.
        powers: of 2, the scales.
    """
    heads = {f"n_K = {size}": (base.changed(heads=base.model.dim // size), 0.0) for size in sizes}
    weights = {f"σ = {std:g}": (base.changed(std=std), shift) for std, shift in stds.items()}
    return {
        name: Series(config, tuple(power + shift for power in powers))
        for name, (config, shift) in (heads | weights).items()
    }


def measure(run: Run, settings: Figure8) -> Tables:
    """Search at every scale of every series, and train the main networks."""
    cases = []
    for name, one in settings.series.items():
        for seed in run.seeds(one.seeds):
            for scale in [*one.scales, *([None] if one.main else [])]:
                config = scaled(one.config, scale, seed)
                columns = dict(
                    valley=name,
                    method=config.source.method,
                    head_size=head_size(config),
                    std=config.source.std,
                    steps=config.training.steps,
                    scale=scale,
                    seed=seed,
                )
                cases.append((columns, config))
    rows = searches(run, cases)
    return {"losses": rows, "valleys": [valley.row() for valley in _valleys(rows, settings)]}


def _valleys(rows: Sequence[Row], settings: Figure8) -> list[Valley]:
    return [Valley.of(name, select(rows, valley=name), one.config) for name, one in settings.series.items()]


def answer(tables: Tables, settings: Figure8) -> Answer:
    """Compare the best scales with what the rules give."""
    rows = tables["losses"]
    valleys = _valleys(rows, settings)
    dense = _dense(rows)
    others = [valley for valley in valleys if valley.name not in dense]
    rules = _judged(others)
    stds = [valley.best_logit_std for valley in others]
    nearest = min(rules, key=lambda name: rules[name]["factor"])
    listed = ", ".join(f"{name} {found['factor']:.2f}" for name, found in rules.items())
    best = "; ".join(
        f"for {valley.name} it is {valley.best_scale:.2f}, where n_K^¼ is {valley.paper_scale:.2f}"
        for valley in valleys
        if valley.name in dense
    )
    sentence = (
        f"The best scale: {best}. Over heads of other sizes and weights of other standard deviations the rule that "
        f"comes nearest is {nearest}; typical factors from the best scale: {listed}. At the best scales the logits' "
        f"standard deviation is {min(stds):.2f} to {max(stds):.2f}."
    )
    numbers = {
        "valleys": [valley.row() | {"points": valley.points()} for valley in valleys],
        "rules": rules,
        "dense": dense,
        "cpu_seconds": cpu_seconds(rows),
    }
    return Answer(sentence, numbers, [valley.row() for valley in valleys])


def _judged(valleys: Sequence[Valley]) -> dict[str, Row]:
    """How far each rule, and the best constant, is from the best scales, and its mean loss above the lowest."""
    rules = {
        "n_K^¼": RULES["paper"],
        f"logits' std {TARGET_LOGIT_STD:g}": RULES["logits"],
        "one constant": constant_rule(valleys),
    }
    return {
        name: {
            "factor": typical_factor(valleys, [rule(valley) for valley in valleys]),
            "cost": float(np.mean([valley.cost(rule(valley)) for valley in valleys])),
        }
        for name, rule in rules.items()
    }


def _dense(rows: Sequence[Row]) -> dict[str, Row]:
    """The loss of training the networks of the paper's valleys."""
    return {
        row["valley"]: {name: row[name] for name in ("mean", "std")}
        for row in spread_by(select(rows, scale=None), ["valley"], "loss")
    }


def plot(tables: Tables, settings: Figure8, axes: Sequence[Axes]) -> None:
    """Draw the paper's valleys, then all others against the scale and against the logits."""
    valleys = _valleys(tables["losses"], settings)
    dense = _dense(tables["losses"])
    main, by_scale, by_logits = axes
    for colour, valley in zip(COLOURS, (v for v in valleys if v.name in dense), strict=False):
        name = f"tickets of {valley.name}"
        curve(main, valley.points(), "scale", "mean", band="std", color=colour, label=name)
        loss, name = dense[valley.name]["mean"], f"dense training, {valley.name}"
        main.axhline(loss, color=colour, linestyle=FIT, linewidth=0.9, label=name)
    mark(main, valleys[0].paper_scale, color=COLOURS[5], linestyle=PRINTED, label="$n_K^{1/4}$")
    others = [valley for valley in valleys if valley.name not in dense]
    for number, valley in enumerate(others):
        style: dict[str, Any] = dict(color=COLOURS[number % 6], marker=MARKERS[number])
        name = valley.name.replace("n_K", "$n_K$")
        curve(by_scale, valley.points(), "scale", "above", label=name, **style)
        curve(by_logits, valley.points(), "logit_std", "above", label=name, **style)
        if name.startswith("$n_K$"):
            mark(by_scale, valley.paper_scale, color=style["color"], linestyle=PRINTED)
    mark(by_logits, TARGET_LOGIT_STD, color=COLOURS[5], linestyle=PRINTED, label=f"{TARGET_LOGIT_STD:g}")
    above = "loss above the valley's lowest"
    ticks = within(valleys[0].scales, TICKS)
    label(main, "as in the paper", SCALE, "validation loss", log="x", ticks=ticks, below=2)
    ticks = within([scale for valley in others for scale in valley.scales], TICKS)
    title = "other heads (dotted: their $n_K^{1/4}$) and weights"
    label(by_scale, title, SCALE, above, log="x", ticks=ticks, below=3)
    ticks = within([logit_std for valley in others for logit_std in valley.logit_stds], LOGIT_TICKS)
    label(by_logits, "the same against the logits", LOGITS, above, log="x", ticks=ticks, below=3)


_LAPTOP, _MINI = preset("paper-laptop"), preset("gpt2-mini")
_QUICK = _LAPTOP.changed(context=32, steps=300, lr=6e-3, lr_end=6e-4)
_POWERS, _SIZES = (0.5, 1, 1.5, 2, 2.5, 3), (16, 32, 64, 128)
_MAIN = (-1, 0, *_POWERS)
STUDY = Study(
    "Which scale of queries and keys is best, and which rule finds it?",
    {
        "quick": Figure8(
            {
                "d = 128": Series(_QUICK, (0, 1, 2, 3), main=True),
                **varied(_QUICK, (16, 64), {0.1: -1}, (0, 1, 2, 3)),
            }
        ),
        "laptop": Figure8(
            {
                "laptop": Series(_LAPTOP, _MAIN, seeds=3, main=True),
                **varied(_LAPTOP.changed(steps=300), _SIZES, {0.035: 0, 0.07: -1, 0.1: -1}, _POWERS),
            }
        ),
        "paper": Figure8(
            {
                name: Series(preset(name), _MAIN, seeds=3, main=True)
                for name in ("gpt2-mini", "gpt2", "gpt2-medium")
            }
            | varied(_MINI, _SIZES, {0.01: 0.5, 0.03: -0.5, 0.04: -1}, _POWERS)
        ),
    },
    measure,
    answer,
    plot,
    panels=3,
)
