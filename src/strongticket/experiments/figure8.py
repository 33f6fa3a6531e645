"""Figure 8: loss against the scale of query and key weights, and which rule finds the best scale.

The paper's rule is n_K^(1/4). The other: the scale at which the attention logits, before training, have a
standard deviation of about 0.7. Heads of other sizes and weights of other standard deviations tell them apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.language import TINY, head_size, paper_scale, scale_text, searches
from strongticket.experiments.reproduce import Options, Step
from strongticket.experiments.synthetic import spread
from strongticket.experiments.valley import RULES, Valley, compare_rules
from strongticket.report import Summary, write_results
from strongticket.search import SearchConfig, preset

# Factors of √2, written as the power of 2 they are.
POWERS = (-1, 0, 0.5, 1, 1.5, 2, 2.5, 3)


@dataclass(frozen=True)
class Series:
    """One valley to measure: a network at several scales. families: the charts that show it."""

    name: str
    families: tuple[str, ...]
    config: SearchConfig
    scales: tuple[float, ...]
    seeds: int


@dataclass(frozen=True)
class Result:
    """rows: one a run; valleys: one a series, means over seeds; dense: losses of training, by main valley."""

    options: Options
    series: tuple[Series, ...]
    rows: list[dict[str, Any]]
    valleys: list[Valley]
    dense: dict[str, dict[str, Any]]

    def of(self, family: str) -> list[tuple[Series, Valley]]:
        """The valleys of one chart, those of "heads" by n_K and those of "std" by σ."""
        pairs = [p for p in zip(self.series, self.valleys, strict=True) if family in p[0].families]
        return pairs if family == "main" else sorted(pairs, key=lambda p: (p[1].head_size, p[1].std))

    @property
    def rules(self) -> dict[str, Any]:
        """How well each rule tells the best scale, on all but the main valleys."""
        return compare_rules(
            [v for s, v in zip(self.series, self.valleys, strict=True) if s.families != MAIN]
        )


MAIN = ("main",)


def _scales(first: float, last: float) -> tuple[float, ...]:
    """Powers of √2 from 2^first to 2^last."""
    return tuple(2 ** (first + k / 2) for k in range(round(2 * (last - first)) + 1))


def _plan(
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
    """stds: (standard deviation, power of 2 that its scales start at); width: of the other valleys, in powers."""
    base = replace(base, steps=steps)
    low, high = width
    found = [Series(name, MAIN, each, tuple(2.0**p for p in powers), seeds) for name, each in main.items()]
    for size in sizes:
        families = ("heads", "std") if size == head_size(base) else ("heads",)
        config = replace(base, heads=base.dim // size)
        found.append(Series(f"n_K = {size}", families, config, _scales(low, high), other_seeds))
    for std, first in stds:
        scales = _scales(first, first + high - low)
        found.append(Series(f"σ = {std:g}", ("std",), replace(base, std=std), scales, other_seeds))
    return tuple(found)


_LAPTOP, _MINI = preset("laptop"), preset("gpt2-mini")
SCALES = {
    "laptop": _plan(
        {"laptop": _LAPTOP},
        _LAPTOP,
        (16, 32, 64, 128),
        ((0.035, 0.5), (0.07, -0.5), (0.1, -0.5)),
        seeds=3,
        other_seeds=1,
        steps=300,
    ),
    "paper": _plan(
        {name: preset(name) for name in ("gpt2-mini", "gpt2", "gpt2-medium")},
        _MINI,
        (16, 32, 64, 128),
        ((0.01, 1), (0.03, 0), (0.04, -0.5)),
        seeds=3,
        other_seeds=1,
        steps=_MINI.steps,
    ),
    "test": _plan(
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


def run(options: Options, step: Step) -> dict[str, Any]:
    from strongticket.experiments.figure8_page import charts, draw_page

    start = time.perf_counter()
    series = SCALES[options.scale]
    result = _measure(options, series, step)
    folder = options.out / "figure8"
    folder.mkdir(parents=True, exist_ok=True)
    charts(result, folder)
    main = [valley for _, valley in result.of("main")]
    results = {
        "valleys": [valley.to_dict() for valley in result.valleys],
        "rules": result.rules,
        "dense": result.dense,
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in result.rows), 1),
    }
    settings = {each.name: asdict(each) for each in series}
    summary = Summary(
        options.command("figure8"), options.seed, settings, results, time.perf_counter() - start
    )
    page = write_results(
        folder,
        draw_page(result),
        summary,
        {"losses.csv": result.rows, "valleys.csv": [_flat(valley) for valley in result.valleys]},
    )
    rules = result.rules
    return {
        "figure": "figure8",
        "page": str(page),
        "seconds": round(summary.seconds, 1),
        "headline": [
            *((f"{v.name}: best scale, n_K^¼", f"{v.best_scale:.2f}, {v.rule('paper'):.2f}") for v in main),
            *((f"{name}: typical factor from the best", f"{rules[name]['factor']:.2f}") for name in RULES),
            ("processor time of all runs", f"{results['cpu_seconds'] / 60:.1f} min"),
        ],
        **results,
    }


def _measure(options: Options, series: tuple[Series, ...], step: Step) -> Result:
    runs = [
        (each, scale, replace(each.config, qk_scale=scale_text(scale), seed=options.seed + seed))
        for each in series
        for seed in range(each.seeds)
        for scale in each.scales
    ]
    trained = [
        (each, replace(each.config, method="dense", qk_scale="1", seed=options.seed + seed))
        for each in series
        if each.families == MAIN
        for seed in range(each.seeds)
    ]
    configs = [config for *_, config in runs] + [config for *_, config in trained]
    found = searches(f"figure 8: {len(configs)} searches and trainings", configs, options, step)
    rows = [
        _row(each, scale, config, result) for (each, scale, config), result in zip(runs, found, strict=False)
    ]
    dense: dict[str, list[float]] = {}
    for (each, config), result in zip(trained, found[len(runs) :], strict=True):
        rows.append(_row(each, None, config, result))
        dense.setdefault(each.name, []).append(result["loss"])
    losses = {name: {key: spread(some)[key] for key in ("mean", "std")} for name, some in dense.items()}
    return Result(options, series, rows, [_valley(each, rows) for each in series], losses)


def _row(series: Series, scale: float | None, config: SearchConfig, result: dict[str, Any]) -> dict[str, Any]:
    return dict(
        valley=series.name,
        method=config.method,
        head_size=head_size(config),
        std=config.std,
        steps=config.steps,
        scale=scale,
        seed=config.seed,
        **dict(sorted(result.items())),  # the order in which a stored point comes back
    )


def _valley(series: Series, rows: list[dict[str, Any]]) -> Valley:
    own = [row for row in rows if row["valley"] == series.name and row["scale"] is not None]
    at = [[row for row in own if row["scale"] == scale] for scale in series.scales]
    losses = [[row["loss"] for row in group] for group in at]
    logits = [spread([row["logit_std"] for row in group])["mean"] for group in at]
    size, std = head_size(series.config), series.config.std
    return Valley(series.name, size, std, paper_scale(series.config), series.scales, losses, logits)


def _flat(valley: Valley) -> dict[str, Any]:
    """One line of valleys.csv: what was found, not the points it was found from."""
    return {name: value for name, value in valley.to_dict().items() if not isinstance(value, list)}
