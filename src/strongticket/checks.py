"""Checks of arguments: numbers and arrays. Each names the argument that is wrong."""

from typing import Annotated

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.settings import Count, NotNegative, Positive, Range, check
from strongticket.settings import Real as Real
from strongticket.settings import is_whole as is_whole


def positive(**values: Real) -> None:
    """Raise unless each named value is a finite number above zero."""
    check(Positive, **values)


def not_negative(**values: Real) -> None:
    """Raise unless each named value is a finite number, zero or more."""
    check(NotNegative, **values)


def fraction(**values: Real) -> None:
    """Raise unless each named value lies strictly between 0 and 1, as the theorems require of epsilon."""
    check(Annotated[float, Range(above=0, below=1)], **values)


def whole(**values: object) -> None:
    """Raise unless each named value is a whole number of at least 1.

    >>> whole(dim=8, heads=2)
    """
    check(Count, **values)


def finite(**arrays: np.ndarray) -> None:
    """Raise unless each named array is floating point, not empty, and without NaN or infinity."""
    for name, array in arrays.items():
        if not np.issubdtype(array.dtype, np.floating):
            raise StrongTicketError(f"{name} has dtype {array.dtype}: expected floating point weights")
        if array.size == 0:
            raise StrongTicketError(f"{name} has shape {array.shape}: expected at least one entry")
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise StrongTicketError(f"{name}[{where}] is {array[where]}: expected finite weights")


def shaped(shape: tuple[int | None, ...], **arrays: np.ndarray) -> None:
    """Raise unless each named array has this shape; None stands for any size."""
    for name, array in arrays.items():
        fits = array.ndim == len(shape) and all(
            want in (None, got) for want, got in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise StrongTicketError(f"{name} has shape {array.shape}: expected ({wanted})")
