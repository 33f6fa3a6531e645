"""Figure 8: loss against the scale of query and key weights, and which rule finds the best scale.

The paper's rule is n_K^¼. The other: the scale at which the attention logits, before training, have a standard
deviation of about 0.7. Heads of other sizes and weights of other standard deviations separate them: with more heads at
equal width n_K^¼ moves and the logits do not, with other weights it is the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strongticket.reproduce.plots import COLOURS, FIT, PRINTED, Axes, curve, label, within
from strongticket.reproduce.rows import Row, select, spread
from strongticket.reproduce.searches import cpu_seconds, head_size, rounded_scale, searches
from strongticket.reproduce.study import Answer, Run, Study, Tables, nth_seed
from strongticket.reproduce.valley import LOGITS, RULES, SCALE, TICKS, Valley, mark, typical_factor
from strongticket.searching import TARGET_LOGIT_STD, SearchConfig, preset

LOGIT_TICKS = (0.05, 0.1, 0.2, 0.4, TARGET_LOGIT_STD, 1.5, 3, 6)
MARKERS = "os^Dxv*"


@dataclass(frozen=True)
class Series:
    """One valley to measure: a network at several scales of its queries and keys."""

    name: str
    main: bool  # a valley of the paper; the networks of these are also trained
    config: SearchConfig
    scales: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class Figure8:
    """What is measured."""

    series: tuple[Series, ...]  # the valleys, those of the paper first


def figure_settings(
    main: dict[str, SearchConfig],
    base: SearchConfig,
    sizes: Sequence[int],
    stds: Sequence[tuple[float, float]],
    *,
    seeds: int,
    steps: int,
    powers: Sequence[float] = (-1, 0, 0.5, 1, 1.5, 2, 2.5, 3),
    width: tuple[float, float] = (0.5, 3),
    step: float = 0.5,
) -> Figure8:
    """Return the settings of the figure.

    Args:
        main: the valleys as in the paper.
        base: the network that the others vary, with one seed.
        sizes: of heads, at equal width.
        stds: (standard deviation of the weights, power of 2 that its scales start at).
        seeds: of the main valleys.
        steps: of the searches of the others.
        powers: of 2, the scales of the main valleys.
        width: of the other valleys, from one power of 2 to another.
        step: between the powers of the other valleys.
    """
    low, high = width

    def other(name: str, config: SearchConfig, first: float) -> Series:
        count = round((high - low) / step) + 1
        scales = tuple(2 ** (first + k * step) for k in range(count))
        return Series(name, False, config.changed(steps=steps), scales, 1)

    return Figure8(
        (
            *(
                Series(name, True, config, tuple(2.0**p for p in powers), seeds)
                for name, config in main.items()
            ),
            *(other(f"n_K = {size}", base.changed(heads=base.model.dim // size), low) for size in sizes),
            *(other(f"σ = {std:g}", base.changed(std=std), first) for std, first in stds),
        )
    )


def measure(run: Run, settings: Figure8) -> Tables:
    """Search at every scale of every series, and train the main networks."""
    searched = [
        (one, scale, one.config.changed(qk_scale=rounded_scale(scale), seed=nth_seed(run.seed, number)))
        for one in settings.series
        for number in range(one.seeds)
        for scale in one.scales
    ]
    trained = [
        (one, None, one.config.changed(method="dense", qk_scale=1.0, seed=nth_seed(run.seed, number)))
        for one in settings.series
        if one.main
        for number in range(one.seeds)
    ]
    cases = [
        (
            dict(
                valley=one.name,
                method=config.source.method,
                head_size=head_size(config),
                std=config.source.std,
                steps=config.training.steps,
                scale=scale,
                seed=config.seed,
            ),
            config,
        )
        for one, scale, config in [*searched, *trained]
    ]
    rows = searches(run, cases)
    return {"losses": rows, "valleys": [valley.row() for valley in _valleys(rows, settings)]}


def _valleys(rows: Sequence[Row], settings: Figure8) -> list[Valley]:
    return [Valley.of(one.name, select(rows, valley=one.name), one.config) for one in settings.series]


def answer(tables: Tables, settings: Figure8) -> Answer:
    """Compare the best scales with what the rules give."""
    rows = tables["losses"]
    valleys = _valleys(rows, settings)
    dense = {
        one.name: {name: _dense(rows, one)[name] for name in ("mean", "std")}
        for one in settings.series
        if one.main
    }
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
    return Answer(sentence, numbers, [_line(valley) for valley in valleys])


def _judged(valleys: Sequence[Valley]) -> dict[str, Row]:
    """How far each rule, and the best constant, is from the best scales, and its mean loss above the lowest."""
    constant = math.exp(np.mean([math.log(valley.best_scale) for valley in valleys]))
    wanted = {
        "n_K^¼": [RULES["paper"](valley) for valley in valleys],
        f"logits' std {TARGET_LOGIT_STD:g}": [RULES["logits"](valley) for valley in valleys],
        "one constant": [constant] * len(valleys),
    }
    return {
        name: {
            "factor": typical_factor(valleys, scales),
            "cost": float(np.mean([v.cost(scale) for v, scale in zip(valleys, scales, strict=True)])),
        }
        for name, scales in wanted.items()
    }


def _dense(rows: Sequence[Row], series: Series) -> Row:
    return spread([row["loss"] for row in select(rows, valley=series.name, scale=None)])


def _line(valley: Valley) -> Row:
    row = valley.row()
    return {
        "valley": valley.name,
        "best scale": f"{row['best_scale']:.2f}" + ("" if row["best_is_inside"] else " (end of the scales)"),
        "n_K^¼": f"{row['paper_scale']:.2f}",
        "scale for 0.7": f"{row['logits_scale']:.2f}",
        "logits' std at the best": f"{row['best_logit_std']:.2f}",
        "loss above the best with n_K^¼": f"{row['paper_loss'] - row['lowest_loss']:.3f}",
        "with 0.7": f"{row['logits_loss'] - row['lowest_loss']:.3f}",
    }


def plot(tables: Tables, settings: Figure8, axes: Sequence[Axes]) -> None:
    """Draw the paper's valleys, then all others against the scale and against the logits."""
    pairs = list(zip(settings.series, _valleys(tables["losses"], settings), strict=True))
    main, by_scale, by_logits = axes
    for colour, (one, valley) in zip(COLOURS, (pair for pair in pairs if pair[0].main), strict=False):
        name = f"tickets of {one.name}"
        curve(main, valley.points(), "scale", "mean", band="std", color=colour, label=name)
        dense = _dense(tables["losses"], one)["mean"]
        main.axhline(dense, color=colour, linestyle=FIT, linewidth=0.9, label=f"dense training, {one.name}")
    mark(main, pairs[0][1].paper_scale, color=COLOURS[5], linestyle=PRINTED, label="$n_K^{1/4}$")
    others = [valley for one, valley in pairs if not one.main]
    for number, valley in enumerate(others):
        style: dict[str, Any] = dict(color=COLOURS[number % 6], marker=MARKERS[number])
        name = valley.name.replace("n_K", "$n_K$")
        curve(by_scale, valley.points(), "scale", "above", label=name, **style)
        curve(by_logits, valley.points(), "logit_std", "above", label=name, **style)
        if name.startswith("$n_K$"):
            mark(by_scale, valley.paper_scale, color=style["color"], linestyle=PRINTED)
    mark(by_logits, TARGET_LOGIT_STD, color=COLOURS[5], linestyle=PRINTED, label=f"{TARGET_LOGIT_STD:g}")
    above = "loss above the valley's lowest"
    ticks = within(settings.series[0].scales, TICKS)
    label(main, "as in the paper", SCALE, "validation loss", log="x", ticks=ticks, below=2)
    ticks = within([scale for valley in others for scale in valley.scales], TICKS)
    title = "other heads (dotted: their $n_K^{1/4}$) and weights"
    label(by_scale, title, SCALE, above, log="x", ticks=ticks, below=3)
    ticks = within([logit_std for valley in others for logit_std in valley.logit_stds], LOGIT_TICKS)
    label(by_logits, "the same against the logits", LOGITS, above, log="x", ticks=ticks, below=3)


_LAPTOP, _MINI = preset("paper-laptop"), preset("gpt2-mini")
_QUICK = _LAPTOP.changed(context=32, steps=300, lr=6e-3, lr_end=6e-4)
STUDY = Study(
    "Which scale of queries and keys is best, and which rule finds it?",
    {
        "quick": figure_settings(
            {"d = 128": _QUICK},
            _QUICK,
            (16, 64),
            ((0.1, -1),),
            seeds=1,
            steps=_QUICK.training.steps,
            powers=(0, 1, 2, 3),
            width=(0, 3),
            step=1,
        ),
        "laptop": figure_settings(
            {"laptop": _LAPTOP},
            _LAPTOP,
            (16, 32, 64, 128),
            ((0.035, 0.5), (0.07, -0.5), (0.1, -0.5)),
            seeds=3,
            steps=300,
        ),
        "paper": figure_settings(
            {name: preset(name) for name in ("gpt2-mini", "gpt2", "gpt2-medium")},
            _MINI,
            (16, 32, 64, 128),
            ((0.01, 1), (0.03, 0), (0.04, -0.5)),
            seeds=3,
            steps=_MINI.training.steps,
        ),
    },
    measure,
    answer,
    plot,
    panels=3,
)
