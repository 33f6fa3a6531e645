"""What every public door of this room asks of its numbers and arrays."""

import math

import numpy as np

from strongticket.errors import StrongTicketError

# numpy scalars of float64 are floats; whole numbers are welcome where a real one is meant.
Real = float | int


def positive(**values: Real) -> None:
    """Each named value is a finite number above zero."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise StrongTicketError(f"{name}={value}: expected a finite number above zero")


def not_negative(**values: Real) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise StrongTicketError(f"{name}={value}: expected a finite number, zero or more")


def fraction(**values: Real) -> None:
    """Each named value lies strictly between 0 and 1, as the theorems ask of epsilon."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise StrongTicketError(f"{name}={value}: expected a number strictly between 0 and 1")


def whole(**values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not math.isfinite(value) or value != int(value) or value < 1:
            raise StrongTicketError(f"{name}={value}: expected a whole number, 1 or more")


def finite(**arrays: np.ndarray) -> None:
    """Each named array is floating point, not empty, and without NaN or infinity."""
    for name, array in arrays.items():
        if not np.issubdtype(array.dtype, np.floating):
            raise StrongTicketError(f"{name} has dtype {array.dtype}: expected floating point weights")
        if array.size == 0:
            raise StrongTicketError(f"{name} has shape {array.shape}: expected at least one entry")
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise StrongTicketError(f"{name}[{where}] is {array[where]}: expected finite weights")


def shaped(shape: tuple[int | None, ...], **arrays: np.ndarray) -> None:
    """Each named array has this shape; None stands for any size."""
    for name, array in arrays.items():
        fits = array.ndim == len(shape) and all(
            want in (None, got) for want, got in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise StrongTicketError(f"{name} has shape {array.shape}: expected ({wanted})")
