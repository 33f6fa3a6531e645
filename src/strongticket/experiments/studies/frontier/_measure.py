"""The frontier: loss against the bytes of the file, of tickets and of quantised training of equal bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import TINY, searches
from strongticket.search import SearchConfig, preset

TICKET, PAPER = "ticket", "edge-popup as in the paper"
QUANTISED = ("int4", "ternary", "binary")
METHODS = (TICKET, PAPER, *QUANTISED)


@dataclass(frozen=True)
class Scale:
    """What is searched.

    widths: steps -> method -> width of the model at each size of the file
    tuned_at: the size, counted from 0, at which each method's learning rate is chosen, on one seed
    rates: steps -> the learning rates that are tried
    """

    ticket: SearchConfig
    paper: SearchConfig
    widths: dict[int, dict[str, tuple[int, ...]]]
    rates: dict[int, tuple[float, ...]]
    tuned_at: int = 1
    seeds: int = 3


# Widths whose files have about 13, 46, 100 and 200 kB; fewer where a run is long or the method loses.
_SHORT: dict[str, tuple[int, ...]] = {
    TICKET: (64, 128, 192, 272),
    PAPER: (64, 128),
    "int4": (40, 72, 104, 152),
    "ternary": (48, 96, 144, 200),
    "binary": (64, 120),
}
_LONG: dict[str, tuple[int, ...]] = {TICKET: (64, 128), "int4": (40, 72), "ternary": (48, 96)}
_RATES: dict[int, tuple[float, ...]] = {600: (3e-3, 6e-3), 2400: (1.5e-3, 3e-3), 9600: (7.5e-4, 1.5e-3)}
_LAPTOP, _PAPER_LAPTOP = preset("laptop"), preset("paper-laptop")
_TINY_TICKET = replace(
    TINY, law="signed", kept=0.7, scope="global", architecture="llama", activation="silu", lr_end=0.0
)
_TINY_WIDTHS: dict[int, dict[str, tuple[int, ...]]] = {
    4: dict.fromkeys(METHODS, (8, 16)),
    6: {TICKET: (8, 16), "int4": (8, 16)},
}
SCALES = {
    "laptop": Scale(_LAPTOP, _PAPER_LAPTOP, {600: _SHORT, 2400: _LONG}, _RATES),
    "paper": Scale(_LAPTOP, _PAPER_LAPTOP, dict.fromkeys(_RATES, _SHORT), _RATES, seeds=5),
    "test": Scale(_TINY_TICKET, TINY, _TINY_WIDTHS, dict.fromkeys(_TINY_WIDTHS, (1e-3, 1e-2)), 0, 1),
}


@dataclass(frozen=True)
class Frontier:
    """What was measured. tuning: one row per rate tried; rows: one per search; spreads: over the seeds."""

    scale: Scale
    tuning: list[Row]
    rows: list[Row]
    spreads: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spreads", _spreads(self.rows))

    def of(self, steps: int, method: str) -> list[Row]:
        """Return the spreads of one method, by size."""
        return select(self.spreads, steps=steps, method=method)

    @property
    def ratios(self) -> list[Row]:
        """For every ticket: its bytes over those at which the best quantised network has its loss."""
        return [
            dict(
                steps=steps,
                file_bytes=row["file_bytes"],
                loss=row["mean"],
                **_at_equal_loss(row, [self.of(steps, method) for method in QUANTISED]),
            )
            for steps in self.scale.widths
            for row in self.of(steps, TICKET)
        ]

    def winners(self, steps: int) -> list[tuple[float, str]]:
        """(bytes, method of the lowest loss there) at each size of a ticket's file, quantised ones interpolated."""
        found = []
        for row in self.of(steps, TICKET):
            losses = {TICKET: row["mean"], PAPER: _loss_at(self.of(steps, PAPER), row["file_bytes"])}
            losses |= {method: _loss_at(self.of(steps, method), row["file_bytes"]) for method in QUANTISED}
            known = {method: loss for method, loss in losses.items() if loss is not None}
            found.append((row["file_bytes"], min(known, key=lambda method: known[method])))
        return found

    def settings(self) -> dict[str, Any]:
        scale = asdict(self.scale)
        return scale | {
            name: {str(steps): each for steps, each in scale[name].items()} for name in ("widths", "rates")
        }

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
                f"{steps:,} steps, lowest loss",
                "; ".join(f"{size / 1000:.0f} kB {method}" for size, method in self.winners(steps)),
            )
            for steps in self.scale.widths
        ]


def measure(run: Run) -> Frontier:
    """Tune each method's learning rate on the first seed, then search every size with every seed."""
    scale, seed = SCALES[run.options.scale], run.options.seed
    tries = [
        (steps, method, rate, configure(scale, steps, method, widths[scale.tuned_at], rate, seed))
        for steps, methods in scale.widths.items()
        for method, widths in methods.items()
        for rate in scale.rates[steps]
    ]
    tuning = [
        dict(steps=steps, method=method, rate=rate, dim=config.dim, **_kept(result))
        for (steps, method, rate, config), result in zip(
            tries, searches(run, [config for *_, config in tries]), strict=True
        )
    ]
    best = best_rates(tuning)
    wanted = [
        (steps, method, configure(scale, steps, method, width, best[steps, method], seed + number))
        for steps, methods in scale.widths.items()
        for method, widths in methods.items()
        for width in widths
        for number in range(scale.seeds)
    ]
    rows = [
        dict(steps=steps, method=method, dim=config.dim, seed=config.seed, rate=config.lr, **_kept(result))
        for (steps, method, config), result in zip(
            wanted, searches(run, [config for *_, config in wanted]), strict=True
        )
    ]
    return Frontier(scale, tuning, rows)


def best_rates(tuning: list[Row]) -> dict[tuple[int, str], float]:
    """Return the learning rate of the lowest loss, by steps and method."""
    best: dict[tuple[int, str], Row] = {}
    for row in tuning:
        key = row["steps"], row["method"]
        if key not in best or row["loss"] < best[key]["loss"]:
            best[key] = row
    return {key: row["rate"] for key, row in best.items()}


def configure(scale: Scale, steps: int, method: str, width: int, rate: float, seed: int) -> SearchConfig:
    """Return the search of one point. All but the paper's recipe have the same architecture, data and schedule."""
    config = scale.paper if method == PAPER else scale.ticket
    if method in QUANTISED:
        config = replace(config, method=method)
    heads = max(1, width // 64) if method == PAPER else config.heads
    lr_end = float(f"{rate / 10:.6g}") if method == PAPER else 0.0
    return replace(config, steps=steps, dim=width, heads=heads, lr=rate, lr_end=lr_end, seed=seed)


def _kept(result: Row) -> Row:
    return {name: result[name] for name in ("loss", "file_bytes", "parameters", "cpu_seconds")}


def _spreads(rows: list[Row]) -> list[Row]:
    found = []
    for key in dict.fromkeys((row["steps"], row["method"], row["dim"]) for row in rows):
        group = select(rows, **dict(zip(("steps", "method", "dim"), key, strict=True)))
        losses = spread(column(group, "loss"))
        found.append(
            dict(
                steps=key[0],
                method=key[1],
                dim=key[2],
                rate=group[0]["rate"],
                file_bytes=float(np.mean(column(group, "file_bytes"))),
                seeds=len(group),
                mean=losses["mean"],
                std=losses["std"],
            )
        )
    return found


def _loss_at(curve: list[Row], size: float) -> float | None:
    """The loss of a method at a size of the file, between its measured sizes; linear in the logarithm of the size."""
    if not curve or not curve[0]["file_bytes"] <= size <= curve[-1]["file_bytes"]:
        return None
    return float(np.interp(np.log(size), np.log(column(curve, "file_bytes")), column(curve, "mean")))


def _at_equal_loss(ticket: Row, curves: list[list[Row]]) -> Row:
    """The fewest bytes at which a quantised network reaches the ticket's loss, and the ratio; None outside."""
    sizes = []
    for curve in curves:
        losses, logs = column(curve, "mean"), np.log(column(curve, "file_bytes"))
        for i in range(len(curve) - 1):
            if losses[i + 1] <= ticket["mean"] <= losses[i]:
                share = (losses[i] - ticket["mean"]) / max(losses[i] - losses[i + 1], 1e-12)
                sizes.append(float(np.exp(logs[i] + share * (logs[i + 1] - logs[i]))))
                break
    smallest = min(sizes, default=None)
    return {
        "quantised_bytes": smallest,
        "ratio": None if smallest is None else ticket["file_bytes"] / smallest,
    }
