"""Figure 8: loss against the scale of query and key weights, and which rule finds the best scale.

The paper's rule is n_K^(1/4). The other: the scale at which the attention logits, before training, have a
standard deviation of about 0.7. Heads of other sizes and weights of other standard deviations separate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import TINY, head_size, paper_scale, scale_text, searches
from strongticket.experiments.tasks.valley import RULES, Valley, compare_rules
from strongticket.searching import SearchConfig, preset

# Factors of √2, written as the power of 2 they are.
POWERS = (-1, 0, 0.5, 1, 1.5, 2, 2.5, 3)


@dataclass(frozen=True)
class Series:
    """One valley to measure: a network at several scales of its queries and keys.

    families: the charts that show it
    scales: to search at
    seeds: how many
    """

    name: str
    families: tuple[str, ...]
    config: SearchConfig
    scales: tuple[float, ...]
    seeds: int


MAIN = ("main",)


@dataclass(frozen=True)
class Figure8:
    """What was measured.

    rows: one per search
    valleys: one per series, means over seeds
    dense: losses of training, by main valley
    """

    series: tuple[Series, ...]
    rows: list[Row]
    valleys: list[Valley]
    dense: dict[str, Row]

    def of(self, family: str) -> list[tuple[Series, Valley]]:
        """Return the valleys of one chart, those of "heads" by n_K and those of "std" by σ."""
        pairs = [p for p in zip(self.series, self.valleys, strict=True) if family in p[0].families]
        return pairs if family == "main" else sorted(pairs, key=lambda p: (p[1].head_size, p[1].std))

    @property
    def rules(self) -> dict[str, Any]:
        """How well each rule predicts the best scale, on all but the main valleys."""
        return compare_rules(
            [v for s, v in zip(self.series, self.valleys, strict=True) if s.families != MAIN]
        )

    def settings(self) -> dict[str, Any]:
        return {series.name: asdict(series) for series in self.series}

    def numbers(self) -> dict[str, Any]:
        return {
            "valleys": [valley.to_dict() for valley in self.valleys],
            "rules": self.rules,
            "dense": self.dense,
            "cpu_seconds": round(sum(column(self.rows, "cpu_seconds")), 1),
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"losses.csv": self.rows, "valleys.csv": [_flat(valley) for valley in self.valleys]}

    def headline(self) -> list[tuple[str, str]]:
        rules, minutes = self.rules, sum(column(self.rows, "cpu_seconds")) / 60
        best = [
            (f"{v.name}: best scale, n_K^¼", f"{v.best_scale:.2f}, {v.rule('paper'):.2f}")
            for _, v in self.of("main")
        ]
        factors = [
            (f"{name}: typical factor from the best", f"{rules[name]['factor']:.2f}") for name in RULES
        ]
        return [*best, *factors, ("processor time of all runs", f"{minutes:.1f} min")]


def _scales(first: float, last: float) -> tuple[float, ...]:
    """Powers of √2 from 2^first to 2^last."""
    return tuple(2 ** (first + k / 2) for k in range(round(2 * (last - first)) + 1))


def _series(
    main: dict[str, SearchConfig],
    base: SearchConfig,
    sizes: Sequence[int],
    stds: Sequence[tuple[float, float]],
    *,
    seeds: int,
    other_seeds: int,
    steps: int,
    powers: Sequence[float] = POWERS,
    width: tuple[float, float] = (0.5, 3),
) -> tuple[Series, ...]:
    """Return the series of a figure.

    main: the valleys as in the paper
    base: the network that the others vary
    sizes: of heads, at equal width
    stds: (standard deviation of the weights, power of 2 that its scales start at)
    seeds, other_seeds: of the main valleys and of the others
    steps: of the searches of the others
    powers: of 2, the scales of the main valleys
    width: of the other valleys, from one power of 2 to another
    """
    base = replace(base, steps=steps)
    low, high = width
    series = [
        Series(name, MAIN, config, tuple(2.0**p for p in powers), seeds) for name, config in main.items()
    ]
    for size in sizes:
        families = ("heads", "std") if size == head_size(base) else ("heads",)
        config = replace(base, heads=base.dim // size)
        series.append(Series(f"n_K = {size}", families, config, _scales(low, high), other_seeds))
    for std, first in stds:
        scales = _scales(first, first + high - low)
        series.append(Series(f"σ = {std:g}", ("std",), replace(base, std=std), scales, other_seeds))
    return tuple(series)


_LAPTOP, _MINI = preset("paper-laptop"), preset("gpt2-mini")
SCALES = {
    "laptop": _series(
        {"laptop": _LAPTOP},
        _LAPTOP,
        (16, 32, 64, 128),
        ((0.035, 0.5), (0.07, -0.5), (0.1, -0.5)),
        seeds=3,
        other_seeds=1,
        steps=300,
    ),
    "paper": _series(
        {name: preset(name) for name in ("gpt2-mini", "gpt2", "gpt2-medium")},
        _MINI,
        (16, 32, 64, 128),
        ((0.01, 1), (0.03, 0), (0.04, -0.5)),
        seeds=3,
        other_seeds=1,
        steps=_MINI.steps,
    ),
    "test": _series(
        {"tiny": TINY},
        TINY,
        (4, 8),
        ((0.1, -1),),
        seeds=2,
        other_seeds=1,
        steps=3,
        powers=(0, 1, 2),
        width=(0, 1),
    ),
}


def measure(run: Run) -> Figure8:
    """Search at every scale of every series, and train the main networks."""
    series, first_seed = SCALES[run.options.scale], run.options.seed
    searched = [
        (one, scale, replace(one.config, qk_scale=scale_text(scale), seed=first_seed + seed))
        for one in series
        for seed in range(one.seeds)
        for scale in one.scales
    ]
    trained = [
        (one, None, replace(one.config, method="dense", qk_scale="1", seed=first_seed + seed))
        for one in series
        if one.families == MAIN
        for seed in range(one.seeds)
    ]
    wanted = [*searched, *trained]
    results = searches(run, [config for *_, config in wanted])
    rows = [
        dict(
            valley=one.name,
            method=config.method,
            head_size=head_size(config),
            std=config.std,
            steps=config.steps,
            scale=scale,
            seed=config.seed,
            **result,
        )
        for (one, scale, config), result in zip(wanted, results, strict=True)
    ]
    dense = {}
    for one, *_ in trained:
        losses = spread(column(select(rows, valley=one.name, scale=None), "loss"))
        dense[one.name] = {name: losses[name] for name in ("mean", "std")}
    return Figure8(series, rows, [_valley(one, rows) for one in series], dense)


def _valley(series: Series, rows: list[Row]) -> Valley:
    by_scale = [select(rows, valley=series.name, scale=scale) for scale in series.scales]
    losses = [column(group, "loss") for group in by_scale]
    logits = [spread(column(group, "logit_std"))["mean"] for group in by_scale]
    size, std = head_size(series.config), series.config.std
    return Valley(series.name, size, std, paper_scale(series.config), series.scales, losses, logits)


def _flat(valley: Valley) -> Row:
    """Return one line of valleys.csv: what was found, not the points it was found from."""
    return {name: value for name, value in valley.to_dict().items() if not isinstance(value, list)}
