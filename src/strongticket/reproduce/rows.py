"""Tidy rows, how numbers spread over the random sources or seeds behind them, and fits of ε = γ·e^(−δn)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Row = dict[str, Any]  # one line of a CSV file: column -> string, number or None


def select(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose columns have these values.

    >>> select([{"n": 4}, {"n": 8}], n=8)
    [{'n': 8}]
    """
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def groups(rows: Sequence[Row], by: Sequence[str]) -> list[tuple[Row, list[Row]]]:
    """Return the rows that agree in some columns together, each group with those columns, in the rows' order.

    >>> groups([{"n": 4, "e": 1}, {"n": 4, "e": 3}], ["n"])
    [({'n': 4}, [{'n': 4, 'e': 1}, {'n': 4, 'e': 3}])]
    """
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in by), []).append(row)
    return [(dict(zip(by, key, strict=True)), group) for key, group in found.items()]


def spread(values: Sequence[float]) -> Row:
    """Return the mean and standard deviation as in the paper, the median, and the middle 80 % of the values."""
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


def spread_by(rows: Sequence[Row], by: Sequence[str], column: str) -> list[Row]:
    """Return one row per group: its keys, and the spread of a column."""
    return [keys | spread([row[column] for row in group]) for keys, group in groups(rows, by)]


def spreads(rows: Sequence[Row], by: Sequence[str], columns: Sequence[str]) -> list[Row]:
    """Return one row per group and column: the group's keys, the column's name as "error", and its spread.

    A None is left out, and a column of nothing else has no spread.

    >>> spreads([{"n": 4, "e": 1.0}, {"n": 4, "e": 3.0}], ["n"], ["e"])[0]["mean"]
    2.0
    """
    found = []
    for keys, group in groups(rows, by):
        for column in columns:
            values = [row[column] for row in group if row[column] is not None]
            if values:
                found.append({**keys, "error": column, **spread(values)})
    return found


def failures(rows: Sequence[Row], by: Sequence[str], failed: Callable[[Row], bool]) -> list[Row]:
    """Return one row per group of sources: its keys, and how many failed, with Clopper and Pearson's 95 % interval."""
    from scipy.stats import beta

    found, tail = [], (1 - 0.95) / 2
    for keys, group in groups(rows, by):
        hits, trials = sum(map(failed, group)), len(group)
        low = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
        high = upper_limit(hits, trials, 1 - tail)
        shares = dict(share=hits / trials, share_low=low, share_high=high)
        found.append({**keys, "sources": trials, "failed": hits, **shares})
    return found


def upper_limit(failures: int, trials: int, confidence: float) -> float:
    """Return the largest failure probability that this many failures do not contradict (Clopper and Pearson).

    >>> round(upper_limit(0, 100, 0.95), 4)
    0.0295
    """
    from scipy.stats import beta

    return 1.0 if failures >= trials else float(beta.ppf(confidence, failures + 1, trials - failures))


@dataclass(frozen=True)
class Decay:
    """ε = gamma·e^(−delta·n), and R² on what was fitted."""

    gamma: float
    delta: float
    r2: float

    def __call__(self, n: Sequence[float]) -> list[float]:
        """Return ε at these widths."""
        return [self.gamma * math.exp(-self.delta * x) for x in n]

    def formula(self) -> str:
        """Return the curve as a legend shows it.

        >>> Decay(0.8, 0.06, 1).formula()
        '0.8·e^(−0.06 n)'
        """
        return f"{self.gamma:.2g}·e^(−{self.delta:.3g} n)"


def fit_errors(n: Sequence[float], errors: Sequence[float]) -> Decay:
    """Fit by least squares on ε itself, as the paper does with SciPy: only the largest errors matter.

    There must be at least three different widths n, and every error must be above 0.
    """
    from scipy.optimize import curve_fit

    x, y = np.asarray(n, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    start = fit_logs(n, errors)
    scale = float(y.max())  # curve_fit's tolerances are absolute: errors of order one, whatever they are
    (gamma, delta), _ = curve_fit(
        lambda x, gamma, delta: gamma * np.exp(-delta * x),
        x,
        y / scale,
        p0=(start.gamma / scale, start.delta),
    )
    found = Decay(float(gamma * scale), float(delta), math.nan)
    return replace(found, r2=_r2(y, np.array(found(n))))


def fit_logs(n: Sequence[float], errors: Sequence[float], delta: float | None = None) -> Decay:
    """Fit by least squares on log ε: every width counts alike.

    With `delta`, fit γ alone, as in the paper's Figure 6; R² is then that of the logs with this δ.
    """
    from scipy.stats import linregress

    x, logs = np.asarray(n, dtype=np.float64), np.log(np.asarray(errors, dtype=np.float64))
    if delta is not None:
        gamma = math.exp((logs + delta * x).mean())
        return Decay(gamma, delta, _r2(logs, math.log(gamma) - delta * x))
    line = linregress(x, logs)
    return Decay(math.exp(line.intercept), -float(line.slope), float(line.rvalue**2))


def _r2(y: np.ndarray, fitted: np.ndarray) -> float:
    return 1 - float(np.square(y - fitted).sum() / np.square(y - y.mean()).sum())
