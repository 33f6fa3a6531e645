"""A bound on the error of a 2L-layer ReLU source against its L-layer target, from their weights alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strongticket import checks
from strongticket.checks import Real
from strongticket.theory.certificate import Certificate
from strongticket.theory.paper_bounds import paper_relu_bound
from strongticket.theory.region import Region, ball, point
from strongticket.theory.rounding import (
    INFLATE,
    Arithmetic,
    frobenius,
    gamma,
    output_rounding,
    underflow,
    unit_of,
)
from strongticket.theory.weights import Layer, bias_of, check_layers, merge_pair


@np.errstate(over="ignore", invalid="ignore")
def certify_relu(
    target: Sequence[Layer], source: Sequence[Layer], radius: Real, *, arithmetic: Arithmetic = "exact"
) -> Certificate:
    """Bound ‖F_S(x) − F_T(x)‖ over ‖x‖ ≤ radius, F_T of L layers and F_S of 2L (Lemma 2, Theorem 10).

    Holds for any source; sharp when each unit reads one input, as the construction has it.

    Args:
        target: L layers, each a weight (out, in) applied as W x and a bias (out,) or None.
        source: 2L such layers.
        radius: of the ball that inputs come from.
        arithmetic: the arithmetic the bound holds for; "exact" is the network as mathematics.
    """
    checks.positive(radius=radius)
    check_layers(target, source)
    inputs = ball(target[0][0].shape[1], float(radius))
    step = relu_step(target, source, inputs, Region(inputs.dim), arithmetic=arithmetic)
    bound = step.error.radius()
    rounding = output_rounding(step.output.radius() + bound, step.output.dim, arithmetic)
    return Certificate(
        kind="relu",
        bound=(bound + rounding) * INFLATE,
        paper_bound=paper_relu_bound(target, source, radius),
        radius=float(radius),
        terms={"layers": step.layers, "output": (rounding,)},
        arithmetic=arithmetic,
    )


@dataclass(frozen=True)
class ReluStep:
    """Where source − target and where the target's output may lie, and the largest error that each layer adds."""

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
    arithmetic: Arithmetic = "exact",
) -> ReluStep:
    """Carry the target's inputs and the source's error through L target layers and their 2L source layers.

    relu(z) = z/2 + |z|/2 and relu(z + e) − relu(z) = De with a diagonal D from 0 to 1, so half of either is
    linear and the rest is bounded by its norm: error = linear·e + lost, output = linear·x + spread. With `residual`
    it is x + F(x) that is carried.
    """
    width = inputs.dim
    linear, lost, spread, layers = np.eye(width), Region(width), Region(width), []
    for index, layer in enumerate(target):
        weight = layer[0]
        if index:
            lost = lost.scaled(0.5) + ball(lost.dim, (error.through(linear.T) + lost).radius() / 2)
            spread = spread.scaled(0.5) + ball(spread.dim, (inputs.through(linear.T) + spread).radius() / 2)
            linear = linear / 2
        reads = (inputs + error).through(linear.T) + spread + lost
        own = _own_error(layer, source[2 * index], source[2 * index + 1], reads, index > 0, arithmetic)
        hidden = gamma(len(linear) + 2) * frobenius(weight) * frobenius(linear)
        linear = weight @ linear
        lost = lost.through(weight.T) + own + ball(len(weight), hidden * error.size)
        spread = spread.through(weight.T) + point(bias_of(layer))
        spread += ball(len(weight), hidden * inputs.size)
        layers.append(own.radius())
    if residual:
        linear = np.eye(width) + linear
    return ReluStep(error.through(linear.T) + lost, inputs.through(linear.T) + spread, tuple(layers))


def _own_error(
    layer: Layer, first: Layer, second: Layer, reads: Region, nonnegative: bool, arithmetic: Arithmetic
) -> Region:
    """Source pair − target layer on an input of the source: up·relu(x) + down·relu(−x) + constant − Wx − b.

    relu(±x) = (|x| ± x)/2. Behind a ReLU the input is not negative, so `down` multiplies zeros.
    """
    weight = layer[0]
    pair = merge_pair(first, second)
    above, below = pair.up - weight, pair.down + weight
    if nonnegative:
        own = reads.through(above.T)
    else:
        own = reads.through((above - below).T / 2)
        own += Region(len(weight), (reads.radius() * (above + below).T / 2,))
    own += point(pair.constant - bias_of(layer))
    rest = pair.rest[0] * reads.radius() + pair.rest[1] if pair.rest != (0.0, 0.0) else 0.0
    return own + ball(len(weight), rest + _pair_rounding(first, second, reads.size, arithmetic))


def _pair_rounding(first: Layer, second: Layer, radius: float, arithmetic: Arithmetic) -> float:
    """Rounding of merging the pair in float64 and, if it runs, of the network's own merging and its sums."""
    hidden, width = first[0].shape
    hidden_gain = frobenius(first[0]) * radius + frobenius(bias_of(first))
    gain = frobenius(second[0]) * hidden_gain + frobenius(bias_of(second))
    share = gamma(hidden + 8)
    if unit_of(arithmetic):
        share += gamma(hidden + 2 * width + 8)
    return share * gain + underflow((hidden + 4) * width * len(second[0]), 1 + radius)
