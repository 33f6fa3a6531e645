"""Boolean masks: packing into bits, kept fraction, equality, entropy."""

import math

import numpy as np

from strongticket.errors import StrongTicketError


def pack(mask: np.ndarray) -> np.ndarray:
    """Mask of any shape -> uint8 of ceil(size / 8) bytes: weight i (C order) is bit i % 8 of byte i // 8.

    >>> pack(np.array([True, False, False, True])).tolist()
    [9]
    """
    return np.packbits(_checked("mask", mask).reshape(-1), bitorder="little")


def unpack(data: np.ndarray | bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The inverse of pack: bool of `shape`. Refuses a wrong length and bits set beyond the last weight."""
    packed = np.frombuffer(data, np.uint8) if isinstance(data, bytes | bytearray | memoryview) else data
    if not isinstance(packed, np.ndarray) or packed.dtype != np.uint8 or packed.ndim != 1:
        raise StrongTicketError("data must be bytes or a 1-d uint8 array, as pack returns it")
    if any(size < 0 for size in shape):
        raise StrongTicketError(f"shape must not be negative, got {shape}")
    size = math.prod(shape)
    if packed.size != (size + 7) // 8:
        raise StrongTicketError(
            f"shape {shape} needs {(size + 7) // 8} bytes of packed mask, data has {packed.size}"
        )
    if size % 8 and packed[-1] >> (size % 8):
        raise StrongTicketError(
            f"data has bits set after its last weight, {size - 1}: it is not a packed mask"
        )
    return np.unpackbits(packed, count=size, bitorder="little").view(np.bool_).reshape(shape)


def kept_fraction(mask: np.ndarray) -> float:
    """Share of weights kept; 0.0 for a mask without weights."""
    mask = _checked("mask", mask)
    return int(np.count_nonzero(mask)) / mask.size if mask.size else 0.0


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Same shape and same kept weights."""
    return np.array_equal(_checked("a", a), _checked("b", b))


def entropy_bits(mask: np.ndarray) -> float:
    """Bits to write the mask when only its kept fraction is known: size * h(kept fraction)."""
    mask = _checked("mask", mask)
    return entropy(mask.size, int(np.count_nonzero(mask)))


def entropy(size: int, kept: int) -> float:
    """Bits to say which `kept` of `size` weights are kept, when all choices are equally likely: size * h(kept / size).

    >>> entropy(8, 4)
    8.0
    """
    return sum(count * math.log2(size / count) for count in (kept, size - kept) if count)


def _checked(name: str, mask: np.ndarray) -> np.ndarray:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        found = f"{mask.dtype} array" if isinstance(mask, np.ndarray) else type(mask).__name__
        raise StrongTicketError(
            f"{name} must be a NumPy array of bool, got {found}", hint="Convert it with .astype(bool)."
        )
    return mask
