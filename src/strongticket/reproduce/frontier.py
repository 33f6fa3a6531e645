"""The frontier: loss against the bytes of the file, of tickets and of quantised training of equal bytes.

A ticket stores a seed and a mask, a quantised network its levels. All sizes are those of real, entropy-coded files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from strongticket.reproduce.plots import COLOURS, Axes, curve, label, within
from strongticket.reproduce.rows import Row, groups, select, spread
from strongticket.reproduce.searches import Case, cpu_seconds, searches, tune
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.searching import SearchConfig, preset

TICKET, PAPER = "ticket", "edge-popup as in the paper"
NEAR = 1.1  # sizes that differ by less are called equal
BEYOND = 1.5  # how far, as a factor in bytes, a curve is continued beyond its measured sizes
MARKERS, TICKS = "os^Dv*", (2, 5, 10, 20, 50, 100, 200)


@dataclass(frozen=True)
class Method:
    """One curve: a way to make small files, at several widths."""

    name: str  # in tables and charts
    config: SearchConfig  # of its searches, but for width, learning rate and seed
    seeds: dict[int, int]  # width -> how many seeds, from narrow to wide
    tuned_at: int  # the width at which learning rates are tried, on the first seed
    rates: tuple[float, ...]  # learning rates to try; each falls to the same fraction of itself
    higher: tuple[float, ...] = (5e-3, 8e-3, 1.2e-2)  # tried one by one while the highest so far is the best
    head_size: int = 0  # by which the number of heads follows the width; 0 leaves it alone

    def search(self, width: int, rate: float, seed: int) -> SearchConfig:
        """Return the search of one point."""
        heads = max(1, width // self.head_size) if self.head_size else self.config.model.heads
        end = float(f"{rate * self.config.training.lr_end / self.config.training.lr:.6g}")
        return self.config.changed(dim=width, heads=heads, lr=rate, lr_end=end, seed=seed)


@dataclass(frozen=True)
class Frontier:
    """What is searched, by the title of its chart; one method of each chart is called "ticket"."""

    charts: dict[str, tuple[Method, ...]]


def measure(run: Run, settings: Frontier) -> Tables:
    """Tune each method's learning rate on the first seed, then search every size with every seed."""
    methods = [(title, method) for title, chart in settings.charts.items() for method in chart]
    cases = [
        Case(
            dict(setting=title, method=method.name, dim=method.tuned_at, seed=run.seed),
            partial(method.search, method.tuned_at, seed=run.seed),
            method.rates,
            method.higher,
        )
        for title, method in methods
    ]
    tuning, best = tune(run, cases)
    wanted = [
        (
            dict(setting=title, method=method.name, dim=width, seed=seed, rate=rate),
            method.search(width, rate, seed),
        )
        for (title, method), rate in zip(methods, best, strict=True)
        for width, seeds in method.seeds.items()
        for seed in run.seeds(seeds)
    ]
    losses = searches(run, wanted)
    sizes = mean_sizes(losses)
    return {"losses": losses, "spreads": sizes, "tuning": tuning, "ratios": ratios(sizes)}


def mean_sizes(rows: Sequence[Row]) -> list[Row]:
    """Return the mean loss and bytes of each width over its seeds."""
    found = []
    for keys, group in groups(rows, ("setting", "method", "dim", "rate")):
        losses, sizes = (spread([row[name] for row in group]) for name in ("loss", "file_bytes"))
        accuracies = [row["accuracy"] for row in group if "accuracy" in row]
        found.append(
            dict(
                **keys,
                file_bytes=sizes["mean"],
                seeds=len(group),
                mean=losses["mean"],
                std=losses["std"],
                accuracy=float(np.mean(accuracies)) if accuracies else None,
            )
        )
    return found


def ratios(sizes: Sequence[Row]) -> list[Row]:
    """Return for every ticket its bytes over those at which the best quantised network has its loss."""
    found = []
    for keys, chart in groups(sizes, ["setting"]):
        methods = {method["method"]: rows for method, rows in groups(chart, ["method"])}
        rivals = {name: rows for name, rows in methods.items() if name not in (TICKET, PAPER)}
        for ticket in methods[TICKET]:
            row = keys | dict(file_bytes=ticket["file_bytes"], loss=ticket["mean"])
            found.append(row | at_equal_loss(ticket, rivals))
    return found


def at_equal_loss(ticket: Row, rivals: Mapping[str, Sequence[Row]]) -> Row:
    """Return the fewest bytes at which a quantised network reaches the ticket's loss, and which method that is.

    With them come the ratio of the ticket's bytes to them, and whether the size is beyond the measured ones; None
    where it is far beyond. If the ticket's loss is below all of theirs, the ratio is to the largest of them: an upper
    bound. The sizes of each rival go from small to large.
    """
    found = {name: size for name, rows in rivals.items() if (size := _bytes_at(rows, ticket["mean"]))}
    if not found:
        every = [row for rows in rivals.values() for row in rows]
        unreached = ticket["mean"] < min(row["mean"] for row in every)
        bound = ticket["file_bytes"] / max(row["file_bytes"] for row in every) if unreached else None
        return {"best": None, "quantised_bytes": None, "ratio": bound, "beyond": None}
    best, size = min(found.items(), key=lambda pair: pair[1])
    is_measured = rivals[best][0]["file_bytes"] <= size <= rivals[best][-1]["file_bytes"]
    ratio = ticket["file_bytes"] / size
    return {"best": best, "quantised_bytes": size, "ratio": ratio, "beyond": not is_measured}


def _bytes_at(rows: Sequence[Row], loss: float) -> float | None:
    """The size of a method's file at a loss, which is linear in the logarithm of the size between two widths."""
    losses, logs = [row["mean"] for row in rows], np.log([row["file_bytes"] for row in rows])
    falling = [i for i in range(len(rows) - 1) if losses[i] > losses[i + 1]]
    pieces = [i for i in falling if losses[i] >= loss >= losses[i + 1]]
    piece = pieces[0] if pieces else 0 if loss > losses[0] else len(rows) - 2
    if piece not in falling:
        return None
    way = (losses[piece] - loss) / (losses[piece] - losses[piece + 1])
    log = logs[piece] + way * (logs[piece + 1] - logs[piece])
    if not logs[0] - np.log(BEYOND) <= log <= logs[-1] + np.log(BEYOND):
        return None
    return float(np.exp(log))


def _loss_at(rows: Sequence[Row], size: float) -> float | None:
    """The loss of a method at a size: between its measured sizes, or that of a nearly equal one; None elsewhere."""
    sizes, losses = [row["file_bytes"] for row in rows], [row["mean"] for row in rows]
    if not sizes[0] / NEAR <= size <= sizes[-1] * NEAR:
        return None
    return float(np.interp(np.log(size), np.log(sizes), losses))


def winners(sizes: Sequence[Row], title: str) -> list[tuple[float, str]]:
    """Return (bytes, method of the lowest loss there) at each size of a ticket's file, the others interpolated."""
    methods = {keys["method"]: rows for keys, rows in groups(select(sizes, setting=title), ["method"])}
    found = []
    for ticket in methods[TICKET]:
        size = ticket["file_bytes"]
        losses = {name: loss for name, rows in methods.items() if (loss := _loss_at(rows, size)) is not None}
        found.append((size, min(losses, key=lambda name: losses[name])))
    return found


def answer(tables: Tables, settings: Frontier) -> Answer:
    """Say who has the lowest loss at which size."""
    sentences = []
    for title in settings.charts:
        wins = [f"{method} at {size / 1000:.0f} kB" for size, method in winners(tables["spreads"], title)]
        sentences.append(f"{title.capitalize()}, lowest loss: {', '.join(wins)}.")
    numbers = {
        "ratios": tables["ratios"],
        "losses": tables["spreads"],
        "cpu_seconds": cpu_seconds([*tables["tuning"], *tables["losses"]]),
    }
    return Answer(" ".join(sentences), numbers, tables["spreads"])


def plot(tables: Tables, settings: Frontier, axes: Sequence[Axes]) -> None:
    """Draw the loss against the size, a panel per chart."""
    names = list(dict.fromkeys(method.name for chart in settings.charts.values() for method in chart))
    for axis, (title, chart) in zip(axes, settings.charts.items(), strict=False):
        for method in chart:
            rows = select(tables["spreads"], setting=title, method=method.name)
            rows = [row | {"kB": row["file_bytes"] / 1000} for row in rows]
            look = names.index(method.name) % len(COLOURS)
            style = dict(color=COLOURS[look], marker=MARKERS[look], label=method.name)
            curve(axis, rows, "kB", "mean", band="std", **style)
        sizes = [row["file_bytes"] / 1000 for row in select(tables["spreads"], setting=title)]
        ticks = within(sizes, TICKS, NEAR)
        label(axis, title.capitalize(), "kB of the file", "validation loss", log="x", ticks=ticks)


def quantised(method: str, config: SearchConfig, *curve: Any) -> Method:
    """Return quantised training with a ticket's model, data and schedule; `curve` has more fields of Method."""
    return Method(method, config.changed(method=method), *curve)


_LAPTOP, _RECIPE, _IMAGES = preset("laptop"), preset("paper-laptop"), preset("images")
_LONG, _RATES, _LOW_RATES = _LAPTOP.changed(steps=2400), (3e-3, 5e-3), (1.5e-3, 3e-3)
_QUICK = {
    "100 steps": _LAPTOP.changed(steps=100, warmup=10),
    "200 steps": _LAPTOP.changed(steps=200, warmup=20),
    "images": _IMAGES.changed(steps=100, warmup=10),
}
# Text: widths whose files have about 13, 46, 100 and 200 kB.
STUDY = Study(
    "Tickets or quantised training at equal bytes?",
    {
        "quick": Frontier(
            {
                title: (
                    Method(TICKET, config, {64: 1, 128: 1}, 64, (5e-3,), ()),
                    quantised("blended-int4", config, {32: 1, 72: 1}, 32, (5e-3,), ()),
                    quantised("blended-ternary", config, {48: 1, 96: 1}, 48, (5e-3,), ()),
                )
                for title, config in _QUICK.items()
            }
        ),
        "laptop": Frontier(
            {
                "600 steps": (
                    Method(TICKET, _LAPTOP, {64: 3, 128: 3, 192: 3, 272: 1}, 128, _RATES),
                    Method(PAPER, _RECIPE, {128: 1}, 128, (3e-3, 6e-3), head_size=64),
                    quantised("blended-int4", _LAPTOP, {32: 3, 72: 3, 104: 3, 152: 1}, 72, _RATES),
                    quantised("blended-ternary", _LAPTOP, {48: 3, 96: 3, 144: 3, 208: 1}, 96, _RATES),
                ),
                "2,400 steps": (
                    Method(TICKET, _LONG, {64: 1, 128: 3, 192: 1}, 128, _RATES),
                    quantised("blended-int4", _LONG, {32: 1, 72: 3, 104: 1}, 72, _RATES),
                    quantised("blended-ternary", _LONG, {48: 1, 96: 3, 144: 1}, 96, _RATES),
                ),
                "images": (
                    Method(TICKET, _IMAGES, {64: 3, 128: 3}, 64, _LOW_RATES),
                    quantised("blended-int4", _IMAGES, {40: 3, 72: 3}, 40, _LOW_RATES),
                    quantised("blended-ternary", _IMAGES, {48: 3, 96: 3}, 48, _LOW_RATES),
                ),
            }
        ),
        "paper": Frontier(
            {
                f"{steps:,} steps": (
                    Method(TICKET, config, dict.fromkeys((64, 128, 192, 272), 5), 128, rates),
                    Method(PAPER, _RECIPE.changed(steps=steps), {128: 5}, 128, rates, head_size=64),
                    quantised("blended-int4", config, dict.fromkeys((32, 72, 104, 152), 5), 72, rates),
                    quantised("blended-ternary", config, dict.fromkeys((48, 96, 144, 208), 5), 96, rates),
                )
                for steps in (600, 2400, 9600)
                for config, rates in [(_LAPTOP.changed(steps=steps), (7.5e-4, 1.5e-3, 3e-3))]
            }
        ),
    },
    measure,
    answer,
    plot,
    panels=3,
)
