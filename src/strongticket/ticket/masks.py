"""Boolean masks as packed bits, and their entropy."""

import math

import numpy as np

from strongticket.errors import TicketError


def pack(mask: np.ndarray) -> np.ndarray:
    """Pack a mask into ceil(size / 8) bytes: weight i (C order) is bit i % 8 of byte i // 8.

    >>> pack(np.array([True, False, False, True])).tolist()
    [9]
    """
    return np.packbits(mask.reshape(-1), bitorder="little")


def unpack(data: np.ndarray | bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Invert `pack`; TicketError for a wrong length, and for bits set beyond the last weight."""
    packed = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    size = math.prod(shape)
    if packed.size != (size + 7) // 8:
        raise TicketError(
            f"shape {shape} needs {(size + 7) // 8} bytes of packed mask, data has {packed.size}"
        )
    if size % 8 and packed[-1] >> (size % 8):
        raise TicketError(f"data has bits set after its last weight, {size - 1}: it is not a packed mask")
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_).reshape(shape)


def entropy(size: int, kept: int) -> float:
    """Bits to say which `kept` of `size` weights are kept, when all choices are equally likely: size * h(kept / size).

    >>> entropy(8, 4)
    8.0
    """
    return sum(count * math.log2(size / count) for count in (kept, size - kept) if count)
