"""Figure 7: loss against non-zero parameters, of tickets with and without query and key scaling and of training."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.language import (
    TINY,
    head_size,
    paper_scale,
    scale_text,
    searches,
)
from strongticket.experiments.reproduce import Options, Step
from strongticket.experiments.synthetic import spread
from strongticket.report import Summary, write_results
from strongticket.search import SearchConfig, preset

METHODS = ("without scaling", "with scaling", "dense training")


@dataclass(frozen=True)
class Scale:
    sizes: dict[str, SearchConfig]
    seeds: int = 3


# n_K is 64 in all sizes, as in the paper's; the middle one is figure 8's network.
SCALES = {
    "laptop": Scale({f"d = {d}": preset("laptop", dim=d, heads=d // 64) for d in (64, 128, 192)}),
    "paper": Scale({name: preset(name) for name in ("gpt2-mini", "gpt2", "gpt2-medium")}),
    "test": Scale({f"d = {d}": replace(TINY, dim=d, heads=d // 8) for d in (8, 16)}, 1),
}


@dataclass(frozen=True)
class Result:
    """rows: one a run; spreads: over the seeds, one a size and method."""

    options: Options
    scale: Scale
    rows: list[dict[str, Any]]
    spreads: list[dict[str, Any]]

    def of(self, method: str) -> list[dict[str, Any]]:
        """One curve's spreads, by size."""
        return [each for each in self.spreads if each["method"] == method]

    @property
    def gains(self) -> list[dict[str, Any]]:
        """By size: how much scaling lowers the loss, and what share of the way to dense training that is."""
        found = []
        for without, scaled, dense in zip(*(self.of(method) for method in METHODS), strict=True):
            gain = without["mean"] - scaled["mean"]
            found.append(
                {
                    "size": without["size"],
                    "gain": gain,
                    "in_stds": _in_stds(gain, without["std"], scaled["std"]),
                    "of_the_way_to_dense": gain / (without["mean"] - dense["mean"]),
                }
            )
        return found


def run(options: Options, step: Step) -> dict[str, Any]:
    from strongticket.experiments.figure7_page import charts, draw_page

    start = time.perf_counter()
    scale = SCALES[options.scale]
    runs = [
        (size, method, configure(config, method, options.seed + seed))
        for seed in range(scale.seeds)
        for size, config in scale.sizes.items()
        for method in METHODS
    ]
    found = searches(
        f"figure 7: {len(runs)} searches and trainings", [config for *_, config in runs], options, step
    )
    rows = [
        dict(
            size=size,
            method=method,
            dim=config.dim,
            layers=config.layers,
            head_size=head_size(config),
            seed=config.seed,
            **dict(sorted(result.items())),  # the order in which a stored point comes back
        )
        for (size, method, config), result in zip(runs, found, strict=True)
    ]
    result = Result(options, scale, rows, _spreads(scale, rows))
    folder = options.out / "figure7"
    folder.mkdir(parents=True, exist_ok=True)
    charts(result, folder)
    results = {
        "loss": {method: [each["mean"] for each in result.of(method)] for method in METHODS},
        "gains": result.gains,
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in rows), 1),
    }
    settings = {name: asdict(config) for name, config in scale.sizes.items()} | {"seeds": scale.seeds}
    summary = Summary(
        options.command("figure7"), options.seed, settings, results, time.perf_counter() - start
    )
    page = write_results(
        folder, draw_page(result), summary, {"losses.csv": rows, "spreads.csv": result.spreads}
    )
    least = min(result.gains, key=lambda each: each["gain"])
    return {
        "figure": "figure7",
        "page": str(page),
        "seconds": round(summary.seconds, 1),
        "headline": [
            ("scaling lowers the loss at every size, by at least", f"{least['gain']:.3f} nats"),
            ("processor time of all runs", f"{results['cpu_seconds'] / 60:.1f} min"),
        ]
        if least["gain"] > 0
        else [(f"scaling does not lower the loss at {least['size']}", f"{least['gain']:.3f} nats")],
        **results,
    }


def configure(config: SearchConfig, method: str, seed: int) -> SearchConfig:
    """The run of one size, method and seed."""
    if method == "dense training":
        return replace(config, method="dense", qk_scale="1", seed=seed)
    scale = paper_scale(config) if method == "with scaling" else 1.0
    return replace(config, qk_scale=scale_text(scale), seed=seed)


def _spreads(scale: Scale, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for size in scale.sizes:
        for method in METHODS:
            group = [row for row in rows if (row["size"], row["method"]) == (size, method)]
            losses = spread([row["loss"] for row in group])
            one = {name: group[0][name] for name in ("parameters", "nonzero")}
            found.append(dict(size=size, method=method, **one, mean=losses["mean"], std=losses["std"]))
    return found


def _in_stds(gain: float, *stds: float) -> float | None:
    """Against the larger standard deviation over seeds; None if there is none to measure by."""
    return gain / max(stds) if max(stds) > 0 else None
