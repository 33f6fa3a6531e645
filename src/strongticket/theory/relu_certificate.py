"""A bound on the error of a 2L-layer ReLU source against its L-layer target, from their weights alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, prod

import numpy as np
from jaxtyping import Float

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory import lemmas
from strongticket.theory.certificate import Certificate
from strongticket.theory.rounding import INFLATE, Evaluation, absolute_norm, gamma, spectral_norm, unit_of

# weight (out, in) applied as W x, bias (out,)
Layer = tuple[Float[np.ndarray, "_ _"], Float[np.ndarray, " _"] | None]


@dataclass(frozen=True)
class _Pair:
    """Two source layers as up·relu(x) + down·relu(−x) + constant, and what is left of units that mix inputs.

    rest: at most `rest[0]·‖x‖ + rest[1]` in norm
    """

    up: np.ndarray
    down: np.ndarray
    constant: np.ndarray
    rest: tuple[float, float]


@np.errstate(over="ignore", invalid="ignore")
def certify_relu(
    target: Sequence[Layer], source: Sequence[Layer], radius: Real, *, evaluation: Evaluation = "exact"
) -> Certificate:
    """Bound ‖F_S(x) − F_T(x)‖ over ‖x‖ ≤ radius, F_T of L layers and F_S of 2L (Lemma 2, Theorem 10).

    Holds for any source; sharp when each hidden unit reads one input, as the construction has it.
    evaluation: count also the rounding of running the source in this precision.
    """
    target, source = check_layers("target", target), check_layers("source", source)
    checks.positive(radius=radius)
    if len(source) != 2 * len(target):
        raise StrongTicketError(
            f"source has {len(source)} layers for a target of {len(target)}: expected {2 * len(target)}"
        )
    # `reach` bounds what the source's layer is given, `goal` what the target's is.
    reach, goal, error, errors = float(radius), float(radius), 0.0, []
    for index, (weight, bias) in enumerate(target):
        first, second = source[2 * index], source[2 * index + 1]
        checks.shaped((None, weight.shape[1]), **{f"source[{2 * index}]": first[0]})
        checks.shaped(weight.shape[:1] + first[0].shape[:1], **{f"source[{2 * index + 1}]": second[0]})
        pair = _fold(first, second)
        constant = pair.constant - _or_zero(bias, weight)
        # Behind a ReLU the input is not negative, so `down` multiplies zeros.
        sides = [pair.up - weight, pair.down + weight] if index == 0 else [pair.up - weight]
        here = reach * (spectral_norm(np.hstack(sides)) + pair.rest[0])
        here += spectral_norm(constant[None]) + pair.rest[1]
        here += _pair_rounding(first, second, reach, evaluation)
        norm = spectral_norm(weight)
        error = (norm * error + here) * INFLATE
        goal = (norm * goal + spectral_norm(_or_zero(bias, weight)[None])) * INFLATE
        reach = goal + error
        errors.append(here)
    return Certificate(
        kind="relu",
        bound=error * INFLATE,
        paper_bound=paper_relu_bound(target, source, radius),
        radius=float(radius),
        terms={"layers": tuple(errors)},
    )


def paper_relu_bound(target: Sequence[Layer], source: Sequence[Layer], radius: Real) -> float:
    """Theorem 10 at the ε for which every sum is within ε/(4L·d_l·d_{l+1}). A bias is one more input."""
    epsilon = 0.0
    for index, (weight, bias) in enumerate(target):
        pair = _fold(source[2 * index], source[2 * index + 1])
        sides = [pair.up - weight, pair.constant - _or_zero(bias, weight)]
        sides += [pair.down + weight] if index == 0 else []
        sums = weight.size + (0 if bias is None else len(bias))
        epsilon = max(epsilon, 4 * len(target) * sums * float(max(np.abs(s).max() for s in sides)))
    if not np.isfinite(epsilon):
        return np.inf
    biased = any(bias is not None for _, bias in target)
    return lemmas.relu_error(epsilon, max(1.0, hypot(radius, 1) if biased else radius))


def lipschitz(layers: Sequence[Layer], *, residual: bool = False) -> float:
    """At least the Lipschitz constant of the network, or of x + F(x)."""
    if residual and len(layers) == 1:
        return spectral_norm(np.eye(len(layers[0][0])) + layers[0][0])
    return (prod(spectral_norm(weight) for weight, _ in layers) + residual) * INFLATE


def output_radius(layers: Sequence[Layer], radius: Real, *, residual: bool = False) -> float:
    """At least sup ‖F(x)‖, or sup ‖x + F(x)‖, over ‖x‖ ≤ radius."""
    at_zero = 0.0
    for weight, bias in layers:
        at_zero = spectral_norm(weight) * at_zero + spectral_norm(_or_zero(bias, weight)[None])
    return (lipschitz(layers, residual=residual) * radius + at_zero) * INFLATE


def check_layers(name: str, layers: Sequence[Layer]) -> list[Layer]:
    """Finite weights whose shapes chain; as float64."""
    if not layers:
        raise StrongTicketError(f"{name} has no layers: expected at least one")
    checked: list[Layer] = []
    for index, (weight, bias) in enumerate(layers):
        checks.finite(**{f"{name}[{index}]": weight})
        checks.shaped((None, checked[-1][0].shape[0] if checked else None), **{f"{name}[{index}]": weight})
        if bias is not None:
            checks.finite(**{f"{name}[{index}] bias": bias})
            checks.shaped((len(weight),), **{f"{name}[{index}] bias": bias})
        checked.append((weight.astype(np.float64), None if bias is None else bias.astype(np.float64)))
    return checked


def _fold(first: Layer, second: Layer) -> _Pair:
    inner, outer = first[0], second[0]
    inner_bias = _or_zero(first[1], inner)
    mixing = np.count_nonzero(inner, 1) + (inner_bias != 0) > 1
    single, single_outer = inner[~mixing], outer[:, ~mixing]
    up = single_outer @ np.maximum(single, 0)
    down = single_outer @ np.maximum(-single, 0)
    constant = single_outer @ np.maximum(inner_bias[~mixing], 0) + _or_zero(second[1], outer)
    rest = (0.0, 0.0)
    if mixing.any():
        # relu(h) = h/2 + |h|/2: the first half is linear, the second is only bounded.
        linear = outer[:, mixing] @ inner[mixing] / 2
        up, down = up + linear, down - linear
        constant = constant + outer[:, mixing] @ inner_bias[mixing] / 2
        gain = spectral_norm(outer[:, mixing]) / 2
        rest = (gain * spectral_norm(inner[mixing]), gain * spectral_norm(inner_bias[None, mixing]))
    return _Pair(up, down, constant, rest)


def _pair_rounding(first: Layer, second: Layer, radius: float, evaluation: Evaluation) -> float:
    """Of folding the pair in float64 and, if asked, of running it."""
    hidden, width = first[0].shape
    biases = (
        spectral_norm(_or_zero(first[1], first[0])[None]),
        spectral_norm(_or_zero(second[1], second[0])[None]),
    )
    gain = absolute_norm(second[0]) * (absolute_norm(first[0]) * radius + biases[0]) + biases[1]
    share = gamma(hidden + 8) + gamma(hidden + width + 4, unit_of(evaluation))
    return share * gain


def _or_zero(bias: np.ndarray | None, weight: np.ndarray) -> np.ndarray:
    return np.zeros(len(weight)) if bias is None else bias
