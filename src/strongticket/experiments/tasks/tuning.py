"""A learning rate for every case, chosen on one seed; then every seed at the chosen rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from strongticket.experiments.spread import Row
from strongticket.searching import SearchConfig

Searches = Callable[[Sequence[SearchConfig]], list[Row]]  # runs them and returns their rows in order


def tune_and_search(
    searches: Searches, cases: Sequence[tuple[Row, SearchConfig]], rates: Sequence[float], seeds: int
) -> tuple[list[Row], list[Row]]:
    """Return one row per case and rate tried, and one row per case and seed at the case's best rate.

    searches: runs configs; a config that it has seen before should cost nothing
    cases: what tells a case apart, as columns, and its config; the config's seed is the first one
    rates: learning rates to try, each falling to zero along a cosine
    seeds: how many, counted from the config's
    """
    tries = [(case, rate, replace(config, lr=rate, lr_end=0.0)) for case, config in cases for rate in rates]
    tuning = [
        case | {"rate": rate} | row
        for (case, rate, _), row in zip(tries, searches([config for *_, config in tries]), strict=True)
    ]
    best = []
    for number, (case, config) in enumerate(cases):
        tried = tuning[number * len(rates) : (number + 1) * len(rates)]
        rate = min(tried, key=lambda row: row["loss"])["rate"]
        best.append((case, replace(config, lr=rate, lr_end=0.0)))
    wanted = [
        (case, replace(config, seed=config.seed + seed)) for seed in range(seeds) for case, config in best
    ]
    rows = [
        case | {"rate": config.lr, "seed": config.seed} | row
        for (case, config), row in zip(wanted, searches([config for _, config in wanted]), strict=True)
    ]
    return tuning, rows


def at_an_end(rows: Sequence[Row], rates: Sequence[float]) -> int:
    """Return in how many cases the best rate is the lowest or the highest tried: it may lie beyond.

    rows: one per case and seed, in order; the cases of the first seed are counted
    rates: those tried
    """
    first = rows[0]["seed"] if rows else 0
    return sum(row["seed"] == first and row["rate"] in (min(rates), max(rates)) for row in rows)


def cpu_seconds(tuning: Sequence[Row], rows: Sequence[Row]) -> float:
    """Return the processor time of all searches; those of the first seed are in both lists.

    tuning, rows: of tune_and_search
    """
    first = rows[0]["seed"]
    later = [row["cpu_seconds"] for row in rows if row["seed"] != first]
    return round(sum(row["cpu_seconds"] for row in tuning) + sum(later), 1)
