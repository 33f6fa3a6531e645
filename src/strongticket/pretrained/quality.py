"""From what is asked for to what the solver is given: hidden units for each row, and how near is near enough."""

import math
from dataclasses import dataclass

import numpy as np

from strongticket.pretrained.options import TOLERANCE, ModelOptions
from strongticket.pretrained.pieces import Layout
from strongticket.pretrained.tensors import matrix_shape
from strongticket.subset_sum import MAX_EXACT

VECTOR = 2e-4  # vectors cost next to nothing, and a bias can be twenty times the root mean square of its vector
VECTOR_UNITS = 15  # a single row gets twice as many


@dataclass(frozen=True)
class Quality:
    """tolerance: relative root mean square error of a matrix; units: hidden units for each of its rows."""

    tolerance: float
    units: int
    problems: int

    @classmethod
    def of(cls, options: ModelOptions) -> "Quality":
        tolerance = TOLERANCE if options.tolerance is None else options.tolerance
        units = units_for(tolerance) if options.units is None else options.units
        return cls(tolerance, units, options.piece_problems)

    def layout(self, shape: tuple[int, ...]) -> Layout:
        is_vector = min(matrix_shape(shape)) == 1
        return Layout(VECTOR_UNITS if is_vector else self.units, self.problems)

    def near(self, target: np.ndarray) -> float:
        """How near an entry must come: errors spread evenly up to it have the tolerance as root mean square."""
        tolerance = min(self.tolerance, VECTOR) if min(target.shape) == 1 else self.tolerance
        return math.sqrt(3) * tolerance * float(np.sqrt(np.square(target).mean()))


def units_for(tolerance: float) -> int:
    """Hidden units for each row that reach the tolerance on nearly all matrices."""
    return min(MAX_EXACT, math.ceil(4 - 1.2 * math.log2(max(tolerance, 1e-9))))
