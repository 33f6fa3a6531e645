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
_MANY_ZEROS = 0.02  # of the numbers: from here on, zeros are coded as such and stay exact
_ALIKE = 9 / 4  # variance, in quarters of an octave squared, of rows that are of one size


def row_scales(matrix: np.ndarray, step: float) -> tuple[np.ndarray, float, bool]:
    """(exponent of each row in quarters of an octave, int64; unit, float32; whether zeros stay exact).

    A row whose numbers are all below SMALLEST counts as one of zeros: its exponent is OFF. The squared
    spacings of all numbers but exact zeros are together step² times all squared numbers: the error relative to them
    does not depend on how many are zeros.
    """
    rows, columns = matrix.shape
    squares, largest, nonzero = np.empty(rows), np.empty(rows), np.empty(rows, np.int64)
    exponents = np.full(rows, OFF, np.int64)
    if not _measure_rows(matrix, squares, largest, nonzero, exponents):
        raise StrongTicketError(
            "a number is not finite or above 2^126, which no ticket holds", hint="Check the model's numbers."
        )
    on = exponents > OFF
    if not on.any():
        return exponents, 0.0, False
    if columns < _FEW_COLUMNS or _are_alike(exponents[on]):
        exponents[on] = 0
    chosen = nonzero[on] / columns
    has_zeros = bool(columns * chosen.size - nonzero[on].sum() >= _MANY_ZEROS * columns * chosen.size)
    squared = _grid(exponents[on]) ** 2 * (chosen if has_zeros else 1.0)
    unit = step * math.sqrt(math.fsum(squares[on])) / math.sqrt(math.fsum(squared))
    unit = max(unit, SMALLEST)
    least = 4 * math.frexp(SMALLEST / unit)[1]
    exponents[on] = np.maximum(exponents[on], least)  # rows of the tiniest numbers
    spacings = unit * _grid(exponents[on])
    for is_wrong, size, instead in (
        (np.any(largest[on] > LARGEST * spacings), "small", "Ask for fewer bits."),
        (spacings.max() > LARGEST_NUMBER, "large", "Ask for more bits."),
    ):
        if is_wrong:
            raise StrongTicketError(f"a step of {step:.2g} is too {size} for these numbers", hint=instead)
    return exponents, float(np.float32(unit)), has_zeros


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
def _measure_rows(matrix, squares, largest, nonzero, exponents):
    """Sums run in order and roots are compared as powers of two, for the same answer on every machine."""
    for r in range(matrix.shape[0]):
        total, most, count, are_fine = 0.0, np.float32(0), 0, True
        for j in range(matrix.shape[1]):
            size = abs(matrix[r, j])
            total += np.float64(size) * np.float64(size)
            most = max(most, size)
            count += size > 0
            are_fine &= size <= LARGEST_NUMBER
        if not are_fine:
            return False
        largest[r], nonzero[r] = most, count
        if most >= SMALLEST:
            squares[r] = total / matrix.shape[1]
            part, power = math.frexp(squares[r])
            below = 0 if part >= 0.8408964152537145 else 1 if part >= 0.5946035575013605 else 2
            exponents[r] = 2 * power - below
    return True
