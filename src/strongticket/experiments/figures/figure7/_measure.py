"""Figure 7: loss against non-zero parameters, of tickets with and without query and key scaling and of training."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import TINY, head_size, paper_scale, scale_text, searches
from strongticket.searching import SearchConfig, preset

METHODS = ("without scaling", "with scaling", "dense training")


@dataclass(frozen=True)
class Scale:
    """sizes: name of the network -> its search."""

    sizes: dict[str, SearchConfig]
    seeds: int = 3


# n_K is 64 in all sizes, as in the paper's; the middle one is Figure 8's network.
SCALES = {
    "laptop": Scale({f"d = {d}": preset("paper-laptop", dim=d, heads=d // 64) for d in (64, 128, 192)}),
    "paper": Scale({name: preset(name) for name in ("gpt2-mini", "gpt2", "gpt2-medium")}),
    "test": Scale({f"d = {d}": replace(TINY, dim=d, heads=d // 8) for d in (8, 16)}, 1),
}


@dataclass(frozen=True)
class Figure7:
    """What was measured. rows: one per search; spreads: over the seeds, one per size and method."""

    scale: Scale
    rows: list[Row]
    spreads: list[Row]

    def of(self, method: str) -> list[Row]:
        """Return the spreads of one method, by size."""
        return select(self.spreads, method=method)

    @property
    def gains(self) -> list[Row]:
        """By size: how much scaling lowers the loss, and what share of the way to dense training that is."""
        gains = []
        for without, scaled, dense in zip(*(self.of(method) for method in METHODS), strict=True):
            gain = without["mean"] - scaled["mean"]
            std = max(without["std"], scaled["std"])
            gains.append(
                {
                    "size": without["size"],
                    "gain": gain,
                    "in_stds": gain / std if std > 0 else None,
                    "of_the_way_to_dense": gain / (without["mean"] - dense["mean"]),
                }
            )
        return gains

    def settings(self) -> dict[str, Any]:
        sizes = {name: asdict(config) for name, config in self.scale.sizes.items()}
        return sizes | {"seeds": self.scale.seeds}

    def numbers(self) -> dict[str, Any]:
        return {
            "loss": {method: column(self.of(method), "mean") for method in METHODS},
            "gains": self.gains,
            "cpu_seconds": round(sum(column(self.rows, "cpu_seconds")), 1),
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"losses.csv": self.rows, "spreads.csv": self.spreads}

    def headline(self) -> list[tuple[str, str]]:
        smallest = min(self.gains, key=lambda gain: gain["gain"])
        nats = f"{smallest['gain']:.3f} nats"
        if smallest["gain"] <= 0:
            return [(f"scaling does not lower the loss at {smallest['size']}", nats)]
        return [
            ("scaling lowers the loss at every size, by at least", nats),
            ("processor time of all runs", f"{self.numbers()['cpu_seconds'] / 60:.1f} min"),
        ]


def measure(run: Run) -> Figure7:
    """Search and train networks of every size."""
    scale = SCALES[run.options.scale]
    wanted = [
        (size, method, configure(config, method, run.options.seed + seed))
        for seed in range(scale.seeds)
        for size, config in scale.sizes.items()
        for method in METHODS
    ]
    results = searches(run, [config for *_, config in wanted])
    rows = [
        dict(
            size=size,
            method=method,
            dim=config.dim,
            layers=config.layers,
            head_size=head_size(config),
            seed=config.seed,
            **result,
        )
        for (size, method, config), result in zip(wanted, results, strict=True)
    ]
    return Figure7(scale, rows, _spreads(scale, rows))


def configure(config: SearchConfig, method: str, seed: int) -> SearchConfig:
    """Return the search of one size, method and seed.

    config: of the size
    method: one of METHODS
    seed: of the random weights
    """
    if method == "dense training":
        return replace(config, method="dense", qk_scale="1", seed=seed)
    scale = paper_scale(config) if method == "with scaling" else 1.0
    return replace(config, qk_scale=scale_text(scale), seed=seed)


def _spreads(scale: Scale, rows: list[Row]) -> list[Row]:
    result = []
    for size in scale.sizes:
        for method in METHODS:
            group = select(rows, size=size, method=method)
            losses = spread(column(group, "loss"))
            counts = {name: group[0][name] for name in ("parameters", "nonzero")}
            result.append(dict(size=size, method=method, **counts, mean=losses["mean"], std=losses["std"]))
    return result
