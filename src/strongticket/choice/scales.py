"""A scale a row: its root mean square to the nearest quarter of an octave, so that a few bits hold it."""

import math

import numpy as np

from strongticket.choice.tokens import LARGEST
from strongticket.compiled import kernel
from strongticket.errors import StrongTicketError

QUARTERS = np.array([1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429])
OFF = -(1 << 15)  # exponent of a row of zeros
SMALLEST = 2.0**-126  # of a spacing: below it float32 loses digits
LARGEST_NUMBER = 2.0**126
_FEW_COLUMNS = 32  # a scale for so few numbers would cost more than it saves
_ALIKE = 9 / 4  # variance, in quarters of an octave squared, of rows that are of one size


def row_scales(rows: np.ndarray, step: float, chosen: np.ndarray) -> tuple[np.ndarray, float]:
    """(exponent of each row in quarters of an octave, int64; unit, float32), see row_spacings.

    The squared spacings of all chosen numbers are together step² times all squared numbers: the error relative to them
    does not depend on how many are zeros.

    Args:
        rows: of which none is all zeros.
        step: Δ, in root mean squares.
        chosen: how many numbers of each row are chosen; the others are exact zeros.
    """
    squares, largest = np.empty(len(rows)), np.empty(len(rows))
    exponents = np.empty(len(rows), np.int64)
    if not _measure_rows(rows, squares, largest, exponents):
        raise StrongTicketError(
            "a number is not finite or above 2^126, which no ticket holds", hint="Check the model's numbers."
        )
    if rows.shape[1] < _FEW_COLUMNS or _are_alike(exponents):
        exponents[:] = 0
    grid = _grid(exponents)
    unit = step * math.sqrt(math.fsum(squares)) / math.sqrt(math.fsum(grid**2 * (chosen / rows.shape[1])))
    unit = max(unit, SMALLEST)
    least = 4 * math.frexp(SMALLEST / unit)[1]
    exponents = np.maximum(exponents, least)  # rows of the tiniest numbers
    spacings = unit * _grid(exponents)
    for is_wrong, size, instead in (
        (np.any(largest > LARGEST * spacings), "small", "Ask for fewer bits."),
        (spacings.max() > LARGEST_NUMBER, "large", "Ask for more bits."),
    ):
        if is_wrong:
            raise StrongTicketError(f"a step of {step:.2g} is too {size} for these numbers", hint=instead)
    return exponents, float(np.float32(unit))


def row_spacings(exponents: np.ndarray, unit: float) -> np.ndarray:
    """Spacing of each row, float32: unit · 2^(exponent / 4); 0 for a row of zeros."""
    spacings = np.empty(len(exponents), np.float32)
    _fill_spacings(exponents, unit, QUARTERS, spacings)
    return spacings


@kernel
def _fill_spacings(exponents, unit, quarters, spacings):
    """Those of damaged bytes may be infinite."""
    for r in range(exponents.size):
        spacing = math.ldexp(unit * quarters[exponents[r] & 3], np.int32(exponents[r] >> 2))
        spacings[r] = np.float32(spacing if exponents[r] > OFF else 0.0)


def _grid(exponents: np.ndarray) -> np.ndarray:
    return np.ldexp(QUARTERS[exponents & 3], exponents >> 2)


def _are_alike(exponents: np.ndarray) -> bool:
    total, squares = int(exponents.sum()), int((exponents**2).sum())
    variance = (squares * exponents.size - total**2) / exponents.size**2
    return np.ptp(exponents) <= 8 and variance <= _ALIKE


@kernel
def _measure_rows(matrix, squares, largest, exponents):
    """Sums run in order and roots are compared as powers of two, for the same answer on every machine."""
    for r in range(matrix.shape[0]):
        total, most, are_fine = 0.0, np.float32(0), True
        for j in range(matrix.shape[1]):
            size = abs(matrix[r, j])
            total += np.float64(size) * np.float64(size)
            most = max(most, size)
            are_fine &= size <= LARGEST_NUMBER
        if not are_fine:
            return False
        largest[r] = most
        squares[r] = total / matrix.shape[1]
        part, power = math.frexp(squares[r])
        below = 0 if part >= 0.8408964152537145 else 1 if part >= 0.5946035575013605 else 2
        exponents[r] = 2 * power - below
    return True
