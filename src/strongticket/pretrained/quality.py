"""Translates what the user asks for into the solver's settings, measured on patches of the model itself.

How many hidden units a row needs for an error, and how many bits they cost, depends on the numbers: real matrices
have longer tails than normal ones. So a few patches are solved with several numbers of units before the build.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from jaxtyping import Float64

from strongticket.errors import StrongTicketError
from strongticket.models.tensors import matrix_shape
from strongticket.pretrained.pieces import Finished, Job, rows_apart, solve_piece
from strongticket.pretrained.pieces.cut import FEW, Layout, cut

UNITS = (2.0, 30.0)  # that are tried, in steps of STEP
STEP = 0.25
PATCH = (96, 128)  # of a matrix that is tried
SAMPLED = 6  # matrices


@dataclass(frozen=True)
class Quality:
    """units: hidden units for each row of a matrix; tolerance: relative error that is good enough for an
    entry; paper: the source of the theorems.
    """

    units: float
    tolerance: float
    problems: int
    paper: bool = False

    @property
    def layout(self) -> Layout:
        units = math.ceil(self.units) if self.paper else self.units
        return Layout(units, self.problems, paper=self.paper)

    def near(self, target: Float64[np.ndarray, "rows columns"]) -> float:
        """How near an entry must come, in the target's own units."""
        return self.tolerance * float(np.sqrt(np.square(target).mean()))


@dataclass(frozen=True)
class Measured:
    """Cost and error of matrices: bits per number in the file, relative root mean square error, seconds per number."""

    bits: float
    error: float
    seconds: float


@dataclass(frozen=True)
class Patch:
    """A part of a matrix. columns: of the matrix's longer side; numbers: how many it stands for."""

    target: Float64[np.ndarray, "rows columns"]
    columns: int
    numbers: int


class Sample:
    """Patches of a model's matrices, which stand for all of them; without any, one of normal numbers."""

    def __init__(self, read: Callable[[], Sequence[Patch]]) -> None:
        """read: gives the patches when they are needed."""
        self._read = read
        self.measure = cache(self._measure)

    @cached_property
    def patches(self) -> list[Patch]:
        normal = Patch(np.random.default_rng(0).normal(size=PATCH), 4 * PATCH[1], 1)
        return list(self._read()) or [normal]

    def units_for(self, tolerance: float) -> float:
        """The fewest hidden units with which the error stays within the tolerance."""
        guess = 1.5 - math.log2(tolerance)  # a normal matrix needs about this
        found = _first(lambda units: self.measure(units, tolerance).error <= tolerance, guess)
        if found is None:
            best = self.measure(UNITS[-1], tolerance).error
            raise StrongTicketError(
                f"tolerance={tolerance:g} is out of reach: with {UNITS[-1]:g} units per row it is {best:.2g}",
                hint="Ask for a larger tolerance.",
            )
        return found

    def units_of(self, bits: float) -> float:
        """The most hidden units that cost no more than this."""
        above = _first(lambda units: self.measure(units, 0.0).bits > bits, bits)
        if above == UNITS[0]:
            least = self.measure(above, 0.0).bits
            raise StrongTicketError(
                f"bits is too small: {max(bits, 0):.2f} would remain per number of a matrix, at least "
                f"{least:.2f} are needed",
                hint="Give more bits, or a tolerance.",
            )
        return UNITS[-1] if above is None else above - STEP

    def _measure(self, units: float, tolerance: float) -> Measured:
        """tolerance: an entry this close is close enough; 0 asks for the closest there is."""
        found = [(patch.numbers, _solved(patch, units, tolerance)) for patch in self.patches]
        total = sum(numbers for numbers, _ in found)
        bits = sum(numbers * measured.bits for numbers, measured in found) / total
        squared = sum(numbers * measured.error**2 for numbers, measured in found) / total
        seconds = sum(numbers * measured.seconds for numbers, measured in found) / total
        return Measured(bits, math.sqrt(squared), seconds)


def _solved(patch: Patch, units: float, tolerance: float) -> Measured:
    layout, structured = Layout(units), int(patch.target.shape[0] > patch.target.shape[1])
    # In the build, too, such rows leave the others' scale alone.
    target = np.delete(patch.target, rows_apart(np.moveaxis(patch.target, structured, 0), layout), structured)
    rows, columns = target.shape
    piece = cut("sample", rows, columns, replace(layout, axis=structured))[0]
    near = tolerance * float(np.sqrt(np.square(target).mean()))
    job = Job(piece, target[piece.place], near, "balanced", 0, b"{}").to_bytes()
    start = time.process_time()
    finished = Finished.from_bytes(solve_piece(job))
    seconds = time.process_time() - start
    left, right = (8 * len(tensor.data) / piece.problems for tensor in finished.tensors)
    squared, whole = finished.errors["squared"], finished.errors["target_squared"]
    # All columns of the matrix share one left factor.
    bits = left * piece.columns / patch.columns + right
    return Measured(bits, math.sqrt(squared / whole) if whole else 0.0, seconds / piece.problems)


def spread(shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """Some tensors, small and large, and how many numbers of the model's matrices each stands for."""
    matrices = {name: math.prod(shape) for name, shape in shapes.items() if min(matrix_shape(shape)) > FEW}
    ordered = sorted(matrices, key=lambda name: (matrices[name], name))
    total, before, found = sum(matrices.values()), 0, {}
    for name in ordered:
        after = before + matrices[name]
        # How many of the evenly spaced marks fall here.
        marks = int(SAMPLED * after / total) - int(SAMPLED * before / total)
        if marks:
            found[name] = marks * total // SAMPLED
        before = after
    return found


def middle(shape: tuple[int, int]) -> tuple[slice, slice]:
    """A patch from the middle of a matrix, the shorter side of the patch along its shorter side."""
    sides = PATCH if shape[0] <= shape[1] else PATCH[::-1]
    sizes = [min(n, side) for n, side in zip(shape, sides, strict=True)]
    first, second = (slice((n - size) // 2, (n + size) // 2) for n, size in zip(shape, sizes, strict=True))
    return first, second


def _first(holds: Callable[[float], bool], guess: float) -> float | None:
    """The first number of units for which it holds, if it then holds for all that follow; steps double, then halve."""
    step, units = STEP, min(max(round(guess / STEP) * STEP, UNITS[0]), UNITS[1])
    direction = -1 if holds(units) else 1
    low, high = (UNITS[0] - STEP, units) if direction < 0 else (units, UNITS[1] + STEP)
    while high - low > STEP:
        inside = high - step if direction < 0 else low + step
        middle = inside if low < inside < high else low + (high - low) // (2 * STEP) * STEP
        if holds(middle):
            high, direction = middle, direction if direction < 0 else 0
        else:
            low, direction = middle, direction if direction > 0 else 0
        step = 2 * step if direction else high - low
    return high if high <= UNITS[1] else None
