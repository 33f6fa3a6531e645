"""Tidy rows, and how numbers spread over the random sources or seeds behind them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]  # one line of a CSV file: column -> string, number or None


def spread(values: Sequence[float]) -> Row:
    """Return the mean and standard deviation as in the paper, the median, and the middle 80 %.

    values: one number per source; at least one
    """
    x = np.asarray(values, dtype=np.float64)
    low, median, high = np.quantile(x, (0.1, 0.5, 0.9))
    return {
        "count": len(x),
        "mean": float(x.mean()),
        "std": float(x.std(ddof=1)) if len(x) > 1 else 0.0,
        "median": float(median),
        "low": float(low),
        "high": float(high),
    }


def share(hits: int, trials: int, confidence: float = 0.95) -> Row:
    """Return how often something happened, and an interval for its probability (Clopper and Pearson).

    hits, trials: of sources, say
    confidence: of the interval

    >>> round(share(0, 100)["share_high"], 4)
    0.0362
    """
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return {"share": hits / trials, "share_low": low, "share_high": high}


def shares(rows: Sequence[Row], by: Sequence[str], failed: Callable[[Row], bool]) -> list[Row]:
    """Return one row per group: the group's keys, its sources, how many of them failed, and `share` of that.

    rows: one per source
    by: the columns that identify a group
    failed: whether a row's source did
    """
    groups: dict[tuple[Any, ...], list[bool]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(failed(row))
    return [
        dict(zip(by, key, strict=True), sources=len(hits), failed=sum(hits), **share(sum(hits), len(hits)))
        for key, hits in groups.items()
    ]


def mean_interval(row: Row) -> tuple[float, float]:
    """Return where the mean of many sources would lie: ±1.96 standard errors, not below 0.

    row: a spread

    >>> mean_interval({"mean": 1.0, "std": 0.5, "count": 100})
    (0.902, 1.098)
    """
    half = 1.96 * row["std"] / row["count"] ** 0.5
    return max(0.0, row["mean"] - half), row["mean"] + half


def spreads(
    rows: Sequence[Row], by: Sequence[str], columns: Sequence[str], *, skip_gaps_in: Collection[str] = ()
) -> list[Row]:
    """Return one row per group and column: the group's keys, the column's name as "error", and its spread.

    rows: tidy rows
    by: the columns that identify a group
    columns: whose spread is taken, each in a row of its own
    skip_gaps_in: the columns in which None is left out; elsewhere a group with a None has no spread

    >>> spreads([{"n": 4, "e": 1.0}, {"n": 4, "e": 3.0}], ["n"], ["e"])[0]["mean"]
    2.0
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    found = []
    for key, group in groups.items():
        for column in columns:
            values = [row[column] for row in group if row[column] is not None]
            if values and (column in skip_gaps_in or len(values) == len(group)):
                found.append(dict(zip(by, key, strict=True), error=column, **spread(values)))
    return found


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose columns have these values.

    >>> select([{"n": 4}, {"n": 8}], n=8)
    [{'n': 8}]
    """
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def column(rows: Sequence[Row], name: str) -> list[Any]:
    """Return one column of the rows.

    >>> column([{"n": 4}, {"n": 8}], "n")
    [4, 8]
    """
    return [row[name] for row in rows]
