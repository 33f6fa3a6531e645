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
