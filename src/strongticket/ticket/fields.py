"""The tensors a ticket is made of: valid names, arrays of the right type that nothing can change later."""

import numpy as np

from strongticket import seeds
from strongticket.errors import TicketError, in_ticket


def check_names(what: str, tensors: object) -> None:
    """Raise TicketError unless it is a dict whose keys can name tensors."""
    if not isinstance(tensors, dict):
        raise TicketError(f"{what} must be a dict, got {type(tensors).__name__}")
    for name in tensors:
        with in_ticket(what):
            seeds.key(0, name)


def read_only(what: str, array: np.ndarray, dtype: type) -> np.ndarray:
    """Return a read-only array in C order: this one if it is so already, else a copy."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TicketError(f"{what} must be a NumPy array of {np.dtype(dtype)}, got {found}")
    if dtype is np.float32 and not np.isfinite(array).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise TicketError(f"{what} must be finite, got {array[bad]} at {bad}")
    if array.flags.writeable or not array.flags.c_contiguous:
        array = array.copy(order="C")
        array.flags.writeable = False
    return array


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether shapes and bits are equal: 0.0 and -0.0 differ."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()
