"""How much of the differences between cases a few of their properties predict, on cases that were left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_DRAWS = 2000


def predicted_share(
    features: Sequence[Sequence[float]], values: Sequence[float], seed: int = 0
) -> tuple[float, float, float]:
    """Return the share of the variance that a linear fit predicts, and its 95 % interval over cases.

    Each case is predicted by the fit to all others: 1 − Σ(value − predicted)² / Σ(value − mean of the others)².
    1 is perfect, 0 is as good as the mean, below 0 worse. The interval is from drawing cases with replacement.

    features: (cases, properties); a constant is added
    values: one per case, at least three
    seed: of the draws

    >>> predicted_share([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0])[0]
    1.0
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(values, dtype=np.float64)
    x = np.column_stack([np.ones(len(y)), x])
    errors, deviations = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        fit, *_ = np.linalg.lstsq(x[others], y[others], rcond=None)
        errors[i] = (y[i] - x[i] @ fit) ** 2
        deviations[i] = (y[i] - y[others].mean()) ** 2
    draws = np.random.default_rng(seed).integers(len(y), size=(_DRAWS, len(y)))
    totals = np.maximum(deviations[draws].sum(axis=1), np.finfo(np.float64).tiny)
    low, high = np.quantile(1 - errors[draws].sum(axis=1) / totals, (0.025, 0.975))
    total = max(float(deviations.sum()), np.finfo(np.float64).tiny)
    return round(1 - float(errors.sum()) / total, 12), float(low), float(high)
