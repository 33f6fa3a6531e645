"""The frontier: loss against the bytes of the file, of tickets and of quantised training of equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.studies.frontier._curves import at_equal_loss, loss_at
from strongticket.experiments.studies.frontier._scale import METHODS, QUANTISED, SCALES, TICKET, Scale
from strongticket.experiments.tasks.language import searches
from strongticket.searching import SearchConfig

Wanted = tuple[str, str, SearchConfig]  # setting, method, search


@dataclass(frozen=True)
class Frontier:
    """What was measured. tuning: one row per rate tried; rows: one per search; spreads: over the seeds."""

    scale: Scale
    tuning: list[Row]
    rows: list[Row]
    spreads: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spreads", _spreads(self.rows))

    def of(self, setting: str, method: str) -> list[Row]:
        """Return the spreads of one method, by size."""
        return select(self.spreads, setting=setting, method=method)

    @property
    def ratios(self) -> list[Row]:
        """For every ticket: its bytes over those at which the best quantised network has its loss."""
        return [
            dict(
                setting=setting,
                file_bytes=row["file_bytes"],
                loss=row["mean"],
                **at_equal_loss(row, {method: self.of(setting, method) for method in QUANTISED}),
            )
            for setting in self.scale
            for row in self.of(setting, TICKET)
        ]

    def winners(self, setting: str) -> list[tuple[float, str]]:
        """(bytes, method of the lowest loss there) at each size of a ticket's file, the others interpolated."""
        found = []
        for row in self.of(setting, TICKET):
            losses = {TICKET: row["mean"]}
            losses |= {
                method: loss_at(self.of(setting, method), row["file_bytes"])
                for method in METHODS
                if method != TICKET
            }
            known = {method: loss for method, loss in losses.items() if loss is not None}
            found.append((row["file_bytes"], min(known, key=lambda method: known[method])))
        return found

    def settings(self) -> dict[str, Any]:
        return {name: asdict(setting) for name, setting in self.scale.items()}

    def numbers(self) -> dict[str, Any]:
        return {
            "ratios": self.ratios,
            "losses": self.spreads,
            "cpu_seconds": round(sum(column([*self.tuning, *self.rows], "cpu_seconds")), 1),
        }

    def tables(self) -> dict[str, list[Row]]:
        return {
            "losses.csv": self.rows,
            "spreads.csv": self.spreads,
            "tuning.csv": self.tuning,
            "ratios.csv": self.ratios,
        }

    def headline(self) -> list[tuple[str, str]]:
        return [
            (
                f"{setting}, lowest loss",
                "; ".join(f"{size / 1000:.0f} kB {method}" for size, method in self.winners(setting)),
            )
            for setting in self.scale
        ]


def measure(run: Run) -> Frontier:
    """Tune each method's learning rate on the first seed, then search every size with every seed."""
    scale, seed = SCALES[run.options.scale], run.options.seed
    tuning = _search(run, _first_tries(scale, seed))
    while more := list(_further_tries(scale, seed, tuning)):
        tuning += _search(run, more)
    best = best_rates(tuning)
    wanted = [
        (name, method, setting.configure(method, width, best[name, method], seed + number))
        for name, setting in scale.items()
        for method, widths in setting.seeds.items()
        for width, seeds in widths.items()
        for number in range(seeds)
    ]
    return Frontier(scale, tuning, _search(run, wanted))


def best_rates(tuning: list[Row]) -> dict[tuple[str, str], float]:
    """Return the learning rate of the lowest loss, by setting and method."""
    best: dict[tuple[str, str], Row] = {}
    for row in tuning:
        key = row["setting"], row["method"]
        if key not in best or row["loss"] < best[key]["loss"]:
            best[key] = row
    return {key: row["rate"] for key, row in best.items()}


def _first_tries(scale: Scale, seed: int) -> list[Wanted]:
    return [
        (name, method, setting.configure(method, setting.tuned_width(method), rate, seed))
        for name, setting in scale.items()
        for method in setting.seeds
        for rate in setting.first_rates(method)
    ]


def _further_tries(scale: Scale, seed: int, tuning: list[Row]) -> Iterator[Wanted]:
    """The next higher rate of every method whose best rate is the highest so far."""
    best = best_rates(tuning)
    for name, setting in scale.items():
        for method in setting.seeds:
            tried = column(select(tuning, setting=name, method=method), "rate")
            rest = [rate for rate in setting.higher if rate > max(tried)]
            if rest and best[name, method] == max(tried):
                yield name, method, setting.configure(method, setting.tuned_width(method), rest[0], seed)


def _search(run: Run, wanted: list[Wanted]) -> list[Row]:
    results = searches(run, [config for *_, config in wanted])
    names = ("loss", "accuracy", "file_bytes", "parameters", "cpu_seconds")
    return [
        dict(setting=setting, method=method, dim=config.dim, seed=config.seed, rate=config.lr)
        | {name: result.get(name) for name in names}
        for (setting, method, config), result in zip(wanted, results, strict=True)
    ]


def _spreads(rows: list[Row]) -> list[Row]:
    found = []
    for key in dict.fromkeys((row["setting"], row["method"], row["dim"]) for row in rows):
        group = select(rows, **dict(zip(("setting", "method", "dim"), key, strict=True)))
        losses, accuracies = spread(column(group, "loss")), column(group, "accuracy")
        found.append(
            dict(
                setting=key[0],
                method=key[1],
                dim=key[2],
                rate=group[0]["rate"],
                file_bytes=float(np.mean(column(group, "file_bytes"))),
                seeds=len(group),
                mean=losses["mean"],
                std=losses["std"],
                accuracy=None if None in accuracies else float(np.mean(accuracies)),
            )
        )
    return found
