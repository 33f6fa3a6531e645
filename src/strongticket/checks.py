"""Checks of arguments: numbers, whole numbers, arrays. Each names the argument that is wrong."""

import math
from typing import Any, get_args

import numpy as np

from strongticket.errors import StrongTicketError

# NumPy's float64 scalars are floats; an integer is accepted where a real number is meant.
Real = float | int


def positive(**values: Real) -> None:
    """Raise unless each named value is a finite number above zero."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise StrongTicketError(f"{name}={value}: expected a finite number above zero")


def not_negative(**values: Real) -> None:
    """Raise unless each named value is a finite number, zero or more."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise StrongTicketError(f"{name}={value}: expected a finite number, zero or more")


def fraction(**values: Real) -> None:
    """Raise unless each named value lies strictly between 0 and 1, as the theorems require of epsilon."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise StrongTicketError(f"{name}={value}: expected a number strictly between 0 and 1")


def is_whole(value: object) -> bool:
    """Whether it is an integer, NumPy's included; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole(least: int = 1, **values: object) -> None:
    """Raise unless each named value is a whole number of at least `least`.

    >>> whole(dim=8, heads=2)
    """
    for name, value in values.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise StrongTicketError(f"{name}={value!r}: expected a whole number of at least {least}")


def known(literal: Any, **values: object) -> None:
    """Raise unless each named value is one of those that the Literal lists."""
    for name, value in values.items():
        if value not in get_args(literal):
            names = ", ".join(map(str, get_args(literal)))
            raise StrongTicketError(f"{name}={value!r} is unknown: expected one of {names}")


def finite(**arrays: np.ndarray) -> None:
    """Raise unless each named array holds real numbers, none of them NaN or infinite.

    >>> finite(weights=np.ones((2, 3)))
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise StrongTicketError(f"{name} has dtype {array.dtype}: expected real numbers")
        if not np.isfinite(array).all():
            index = np.argwhere(~np.isfinite(array))[0].tolist()
            raise StrongTicketError(
                f"{name}{index} is {array[tuple(index)]}: expected finite numbers", hint="Replace it."
            )


def shaped(shape: tuple[int | None, ...], **arrays: np.ndarray) -> None:
    """Raise unless each named array has this shape; None stands for any size above 0."""
    for name, array in arrays.items():
        fits = array.ndim == len(shape) and all(
            got == want or (want is None and got > 0) for want, got in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise StrongTicketError(f"{name} has shape {array.shape}: expected ({wanted})")
