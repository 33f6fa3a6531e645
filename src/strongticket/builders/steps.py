"""How far apart the random weights of each tensor are: the step that meets what is asked for.

A step is Δ in root mean squares of a tensor. Errors follow from it without a measurement; what it costs in bits is
counted on some rows of each tensor, without coding anything.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from strongticket import choice
from strongticket.builders.calibration import linear_weights
from strongticket.builders.options import TOLERANCE, ModelOptions
from strongticket.builders.targets import Targets
from strongticket.choice import matrix_shape, row_blocks
from strongticket.errors import StrongTicketError, prefixed
from strongticket.ticket import choices_line, chunks, recipe_text

# Of the step: vectors are few, and every output depends on them; in a calibrated ticket errors of embeddings are not
# fed forward and show in full.
VECTOR_STEP, UNFED_STEP = 1 / 16, 1 / 2
SHRINK_ABOVE = 0.5  # a step from which the factor of least square error is worth its wider bound
_SAMPLED = 1 << 21  # numbers of all tensors together, about
_LEAST = 1 << 13  # numbers of a tensor that is not counted whole, about
_CLOSE = 0.002  # relative error of the bits that a step is found for
_RANGE = (2.0**-18, 16.0)  # of steps that are tried


@dataclass(frozen=True)
class Steps:
    """The step of each tensor, and what they will cost.

    Attributes:
        of: tensor name -> step.
        shrink: whether numbers are read times the factor of least square error.
        file_bits: of the ticket without its tokenizer.
        error: root mean square of the tensors' relative errors, each counted by its numbers.
    """

    of: dict[str, float]
    shrink: bool
    file_bits: float
    error: float


def is_vector(shape: tuple[int, ...]) -> bool:
    """Whether a tensor has one row or column."""
    return 1 in matrix_shape(shape)


class Sample:
    """Some rows of each tensor that is made, to count on."""

    def __init__(self, targets: Targets, options: ModelOptions) -> None:
        self.shapes, self._options = targets.shapes(), options
        share = min(1.0, _SAMPLED / targets.numbers)
        self._rows = {}
        for name, shape in self.shapes.items():
            rows, columns = matrix_shape(shape)
            first = row_blocks((rows, columns))[0]
            wanted = min(len(first), -(-max(round(share * rows * columns), _LEAST) // columns))
            # From the middle: the first rows of an embedding are special tokens.
            start = (rows - wanted) // 2
            self._rows[name] = targets.read(name, range(start, start + wanted))
        self._other_bits = 8 * _index_bytes(targets, options)

    def steps(self, step: float, weights: Mapping[str, float]) -> Steps:
        """All steps for one step of matrices, which `weights` multiply, 1 by default."""
        states = self._options.states
        shrink = self._options.tolerance is None and step > SHRINK_ABOVE and self._options.calibrate is None
        of, bits, squares, numbers = {}, float(self._other_bits), 0.0, 0
        for name, rows in self._rows.items():
            shape = self.shapes[name]
            of[name] = step * (VECTOR_STEP if is_vector(shape) else weights.get(name, 1.0))
            size: int = math.prod(shape)
            with prefixed(f"the model's {name}"):
                found = choice.cost(rows, self._options.seed, name, of[name], states)
            blocks = len(row_blocks(matrix_shape(shape)))
            bits += found.overhead * blocks + found.numbers * size / max(rows.size, 1)
            square = (choice.GAIN[states] * of[name]) ** 2 / 12
            squares += size * (square / (1 + square) if shrink else square)
            numbers += size
        return Steps(of, shrink, bits, math.sqrt(squares / numbers))

    def for_bits(self, bits: float, weights: Mapping[str, float]) -> Steps:
        """The steps with which the file takes so many bits for each number."""
        numbers = sum(map(math.prod, self.shapes.values()))

        @cache
        def at(log_step: float) -> Steps:
            return self.steps(2.0**log_step, weights)

        def excess(log_step: float) -> float:
            return at(log_step).file_bits / numbers - bits

        # Where numbers are many and spread out, a bit less for each doubles the step.
        low, high = map(math.log2, _RANGE)
        near = min(max(2.0 - bits, low + 1), high - 1)
        low = near - 1 if excess(near - 1) > 0 else low
        high = near + 1 if excess(near + 1) < 0 else high
        least, most = excess(high), excess(low)
        if not least < 0 < most:
            size, limit, end = ("small", least, "least") if least >= 0 else ("large", most, "most")
            raise StrongTicketError(
                f"bits={bits:g} is too {size}: these numbers take about {bits + limit:.2f} bits each at {end}",
                hint=f"Give {'more' if size == 'small' else 'fewer'} bits, or a tolerance.",
            )
        return at(brentq(excess, low, high, xtol=_CLOSE * bits))


def choose_steps(targets: Targets, options: ModelOptions) -> Steps:
    """The steps for the bits or the tolerance that are asked for."""
    sample = Sample(targets, options)
    if options.bits is None:
        # The step whose root mean square error is the tolerance.
        return sample.steps(
            math.sqrt(12) * (options.tolerance or TOLERANCE) / choice.GAIN[options.states], {}
        )
    unfed = sample.shapes.keys() - linear_weights(targets.model).keys() if options.calibrate else ()
    return sample.for_bits(options.bits, dict.fromkeys(unfed, UNFED_STEP))


def _index_bytes(targets: Targets, options: ModelOptions) -> int:
    """Bytes of a ticket without its data: a file with made-up checksums, sizes and errors."""
    noise = np.random.default_rng(0)
    lines, errors = [], {}
    for name, shape in sorted(targets.shapes().items()):
        sizes = noise.integers(1000, 9999, len(row_blocks(matrix_shape(shape)))).tolist()
        checksum = hashlib.sha256(name.encode()).hexdigest()[:32]
        lines.append(choices_line(name, checksum, shape, sizes, False))
        errors[name] = [float(f"{number:.3g}") for number in noise.random(2)]
    recipe = recipe_text(options.seed, "model", targets.settings(options))
    return sum(map(len, chunks(recipe, None, {"errors": errors}, lines, [])))
