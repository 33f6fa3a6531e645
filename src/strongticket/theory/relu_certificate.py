"""A bound on the error of a 2L-layer ReLU source against its L-layer target, from their weights alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from jaxtyping import Float

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory import lemmas
from strongticket.theory.certificate import Certificate
from strongticket.theory.region import Region, ball, point
from strongticket.theory.rounding import (
    INFLATE,
    Evaluation,
    frobenius,
    gamma,
    output_rounding,
    spectral_norm,
    unit_of,
)

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

    Args:
        target: L layers, each a weight (out, in) applied as W x and a bias (out,) or None.
        source: 2L such layers.
        radius: of the ball that inputs come from.
        evaluation: the arithmetic the bound holds for; "exact" is the network as mathematics.
    """
    target, source = check_layers("target", target), check_layers("source", source)
    checks.positive(radius=radius)
    check_pairs(target, source)
    inputs = ball(target[0][0].shape[1], float(radius))
    step = relu_step(target, source, inputs, Region(inputs.dim), evaluation=evaluation)
    bound = step.error.radius()
    rounding = output_rounding(step.output.radius() + bound, evaluation)
    return Certificate(
        kind="relu",
        bound=(bound + rounding) * INFLATE,
        paper_bound=paper_relu_bound(target, source, radius),
        radius=float(radius),
        terms={"layers": step.layers, "output": (rounding,)},
        arithmetic=evaluation,
    )


@dataclass(frozen=True)
class ReluStep:
    """Behind a feed-forward network: where source − target may lie, where the target's output may lie, and
    the largest error that each layer adds.
    """

    error: Region
    output: Region
    layers: tuple[float, ...]


def relu_step(
    target: Sequence[Layer],
    source: Sequence[Layer],
    inputs: Region,
    error: Region,
    *,
    residual: bool = False,
    evaluation: Evaluation = "exact",
) -> ReluStep:
    """Carry the target's inputs and the source's error through L target layers and their 2L source layers.

    relu(z) = z/2 + |z|/2 and relu(z + e) − relu(z) = De with a diagonal D from 0 to 1, so half of either is
    linear and the rest is bounded by its norm: error = linear·e + lost, output = linear·x + spread.

    Args:
        target, source: layers as in certify_relu.
        inputs: where the target's input may lie.
        error: where source's input − target's input may lie.
        residual: carry x + F(x) in place of F(x).
        evaluation: as in certify_relu.
    """
    width = inputs.dim
    linear, lost, spread, layers = np.eye(width), Region(width), Region(width), []
    for index, (weight, bias) in enumerate(target):
        if index:
            lost = lost.scaled(0.5) + ball(lost.dim, (error.through(linear.T) + lost).radius() / 2)
            spread = spread.scaled(0.5) + ball(spread.dim, (inputs.through(linear.T) + spread).radius() / 2)
            linear = linear / 2
        reads = (inputs + error).through(linear.T) + spread + lost
        own = _own_error(
            (weight, bias), source[2 * index], source[2 * index + 1], reads, index > 0, evaluation
        )
        hidden = gamma(len(linear) + 2) * frobenius(weight) * frobenius(linear)
        linear = weight @ linear
        lost = lost.through(weight.T) + own + ball(len(weight), hidden * error.size)
        spread = spread.through(weight.T) + point(_or_zero(bias, weight))
        spread += ball(len(weight), hidden * inputs.size)
        layers.append(own.radius())
    if residual:
        linear = np.eye(width) + linear
    return ReluStep(
        error.through(linear.T) + lost,
        inputs.through(linear.T) + spread,
        tuple(layers),
    )


def _own_error(
    layer: Layer, first: Layer, second: Layer, reads: Region, nonnegative: bool, evaluation: Evaluation
) -> Region:
    """Source pair − target layer on an input of the source: up·relu(x) + down·relu(−x) + constant − Wx − b.

    relu(±x) = (|x| ± x)/2. Behind a ReLU the input is not negative, so `down` multiplies zeros.
    """
    weight, bias = layer
    pair = _fold(first, second)
    above, below = pair.up - weight, pair.down + weight
    if nonnegative:
        own = reads.through(above.T)
    else:
        own = reads.through((above - below).T / 2)
        own += Region(len(weight), (reads.radius() * (above + below).T / 2,))
    own += point(pair.constant - _or_zero(bias, weight))
    rest = pair.rest[0] * reads.radius() + pair.rest[1] if pair.rest != (0.0, 0.0) else 0.0
    return own + ball(len(weight), rest + _pair_rounding(first, second, reads.size, evaluation))


def check_pairs(target: Sequence[Layer], source: Sequence[Layer]) -> None:
    """The source has two layers for each of the target's, of fitting shapes."""
    if len(source) != 2 * len(target):
        raise StrongTicketError(
            f"source has {len(source)} layers for a target of {len(target)}: expected {2 * len(target)}"
        )
    for index, (weight, _) in enumerate(target):
        first, second = source[2 * index], source[2 * index + 1]
        checks.shaped((None, weight.shape[1]), **{f"source[{2 * index}]": first[0]})
        checks.shaped(weight.shape[:1] + first[0].shape[:1], **{f"source[{2 * index + 1}]": second[0]})


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
    """Rounding of folding the pair in float64 and, if it runs, of the network's own folding and its sums."""
    hidden, width = first[0].shape
    biases = frobenius(_or_zero(first[1], first[0])), frobenius(_or_zero(second[1], second[0]))
    gain = frobenius(second[0]) * (frobenius(first[0]) * radius + biases[0]) + biases[1]
    share = gamma(hidden + 8)
    if unit_of(evaluation):
        share += gamma(hidden + 2 * width + 8)
    return share * gain


def _or_zero(bias: np.ndarray | None, weight: np.ndarray) -> np.ndarray:
    return np.zeros(len(weight)) if bias is None else bias
