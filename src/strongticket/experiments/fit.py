"""Fit ε = γ·e^(−δn) to measured errors: as the paper does, and in a way that small errors count in too."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from strongticket.errors import StrongTicketError

# As printed: section 4.2 of the AAAI paper, section 4 of the workshop version.
PRINTED = {"paper": (0.8, 0.06), "workshop version": (0.77, 0.055)}


@dataclass(frozen=True)
class Decay:
    """ε = gamma·e^(−delta·n), the standard errors of both, and R² on what was fitted."""

    gamma: float
    delta: float
    gamma_std: float
    delta_std: float
    r2: float

    def __call__(self, n: Sequence[float]) -> list[float]:
        """Return ε at these widths."""
        return [self.gamma * math.exp(-self.delta * x) for x in n]

    def formula(self) -> str:
        """Return the curve as a page shows it.

        >>> Decay(0.8, 0.06, 0, 0, 1).formula()
        '0.8·e^(−0.06 n)'
        """
        return f"{self.gamma:.2g}·e^(−{self.delta:.3g} n)"

    def to_dict(self) -> dict[str, float | None]:
        """Return its fields ready for JSON: what is not finite becomes None."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


def fit_errors(n: Sequence[float], errors: Sequence[float]) -> Decay:
    """Fit by least squares on ε itself, as the paper does with SciPy: only the largest errors matter.

    n: widths, at least three different ones
    errors: one per width, above 0
    """
    from scipy.optimize import curve_fit

    x, y = _checked(n, errors)
    start = fit_logs(n, errors)
    scale = float(y.max())  # curve_fit's tolerances are absolute: errors of order one, whatever they are
    (gamma, delta), covariance = curve_fit(
        lambda x, gamma, delta: gamma * np.exp(-delta * x),
        x,
        y / scale,
        p0=(start.gamma / scale, start.delta),
    )
    gamma_std, delta_std = np.sqrt(np.diag(covariance))
    found = Decay(float(gamma * scale), float(delta), float(gamma_std * scale), float(delta_std), math.nan)
    return Decay(found.gamma, found.delta, found.gamma_std, found.delta_std, _r2(y, np.array(found(n))))


def fit_logs(n: Sequence[float], errors: Sequence[float]) -> Decay:
    """Fit by least squares on log ε: every width counts alike.

    n: widths, at least three different ones
    errors: one per width, above 0
    """
    from scipy.stats import linregress

    x, y = _checked(n, errors)
    line = linregress(x, np.log(y))
    gamma = math.exp(line.intercept)
    # The intercept's error is that of log γ.
    return Decay(
        gamma,
        -float(line.slope),
        gamma * float(line.intercept_stderr),
        float(line.stderr),
        float(line.rvalue**2),
    )


def fit_gamma(n: Sequence[float], errors: Sequence[float], delta: float) -> Decay:
    """Fit γ alone by least squares on log ε, as in the paper's Figure 6; R² is that of the logs with this δ.

    n: widths, at least three different ones
    errors: one per width, above 0
    delta: the δ of the curve
    """
    x, y = _checked(n, errors)
    offsets = np.log(y) + delta * x
    gamma = math.exp(offsets.mean())
    spread = float(offsets.std(ddof=1) / math.sqrt(len(offsets)))
    return Decay(gamma, delta, gamma * spread, 0.0, _r2(np.log(y), math.log(gamma) - delta * x))


def _r2(y: np.ndarray, fitted: np.ndarray) -> float:
    return 1 - float(np.square(y - fitted).sum() / np.square(y - y.mean()).sum())


def _checked(n: Sequence[float], errors: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(n, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(np.unique(x)) < 3:
        raise StrongTicketError(
            f"n has shape {x.shape}, errors {y.shape}: expected one error per width and at least three widths"
        )
    bad = np.flatnonzero(~(np.isfinite(y) & (y > 0)))
    if len(bad):
        raise StrongTicketError(
            f"errors[{bad[0]}] is {y[bad[0]]}: errors must be finite and above 0",
            hint="Leave that width out.",
        )
    return x, y
