"""A scale a row: its root mean square to the nearest quarter of an octave, so that a few bits hold it."""

import math

import numpy as np

from strongticket.rans import kernel

QUARTERS = np.array([1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429])
OFF = -(1 << 15)  # exponent of a row of zeros
SMALLEST = 2.0**-126  # of a spacing: below it float32 loses digits
_FEW_COLUMNS = 32  # a scale for so few numbers would cost more than it saves
_ALIKE = 1.5  # quarters of an octave by which rows vary that are of one size


def row_exponents(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean square of each row, its root in quarters of an octave as int64, OFF for a row of zeros)."""
    squares, exponents = np.empty(len(matrix)), np.empty(len(matrix), np.int64)
    _row_exponents(matrix, squares, exponents)
    on = exponents[exponents > OFF]
    if on.size and (matrix.shape[1] < _FEW_COLUMNS or (np.ptp(on) <= 8 and on.std() <= _ALIKE)):
        exponents[exponents > OFF] = 0
    return squares, exponents


@kernel
def _row_exponents(matrix, squares, exponents):
    """Sums run in order and roots are compared as powers of two, for the same answer on every machine."""
    for r in range(matrix.shape[0]):
        total = 0.0
        for j in range(matrix.shape[1]):
            total += np.float64(matrix[r, j]) * np.float64(matrix[r, j])
        squares[r] = total / matrix.shape[1]
        if total == 0:
            exponents[r] = OFF
            continue
        part, power = math.frexp(squares[r])
        below = 0 if part >= 0.8408964152537145 else 1 if part >= 0.5946035575013605 else 2
        exponents[r] = 2 * power - below


def row_spacings(exponents: np.ndarray, unit: np.float32) -> np.ndarray:
    """Spacing of each row as the reader makes it, float32: unit · 2^(exponent / 4); 0 for a row of zeros."""
    made = np.ldexp(float(unit) * QUARTERS[exponents & 3], exponents >> 2).astype(np.float32)
    return np.where(exponents > OFF, made, np.float32(0))


def unit_of(squares: np.ndarray, exponents: np.ndarray, step: float) -> np.float32:
    """The unit of row_spacings whose mean square spacing is step² times the mean square of the numbers."""
    on = exponents > OFF
    grid = np.ldexp(QUARTERS[exponents[on] & 3], exponents[on] >> 2)
    unit = step * math.sqrt(math.fsum(squares[on])) / math.sqrt(math.fsum(grid**2))
    return np.float32(max(unit, SMALLEST / grid.min()))
