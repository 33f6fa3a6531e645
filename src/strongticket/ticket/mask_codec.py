"""Masks in few bytes: the shortest of three codings, or packed bits where the others gain nothing.

    zstd    the packed bits, for what repeats
    ans     every weight kept with the probability of its class, to within 0.1 % of the entropy: one class for
            the tensor, or classes of lines (rows or columns) by kept fraction, where dropped lines are free
    owner   for lines that keep one weight or none: which one

A line is a row (along the last axis) or a column (along the last but one). Bytes: docs/ticket-format.md.
"""

import math

import numpy as np

from strongticket.errors import TicketError
from strongticket.ticket import byte_codec
from strongticket.ticket.byte_codec import SCALE, Cursor, probability
from strongticket.ticket.container import unzstd, zstd

CODECS = ("zstd", "ans", "ans-rows", "ans-columns", "owner-rows", "owner-columns")

_QUICK, _WORTH_A_TRY = 3, 1.1  # zstd at this level shows whether a higher one could pay off
_GAIN = 1.001  # what a coding must gain over zstd, which reads incompressible bits ten times as fast
_FULL = 16  # class of lines that keep everything; class 0 keeps nothing, 1..15 lie between


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


def encode(mask: np.ndarray) -> tuple[str, bytes]:
    """Return (codec, data): the shortest of all that fit the mask, or nearly so and faster to read."""
    options = {}
    total = int(np.count_nonzero(mask))
    ans, ans_size, ans_classes = "ans", entropy(mask.size, total) / 8, np.empty(0, np.uint8)
    for direction in ("rows", "columns") if mask.ndim > 1 and mask.size else ():
        kept = np.count_nonzero(mask, axis=-1 if direction == "rows" else -2).reshape(-1)
        if kept.max() <= 1:
            options[f"owner-{direction}"] = _owner_encode(_lines(mask, direction), kept)
        size, classes = _best_classes(kept, mask.size // kept.size)
        if size < ans_size:
            ans, ans_size, ans_classes = f"ans-{direction}", size, classes
    packed = pack(mask).tobytes()
    if len(zstd(packed, level=_QUICK)) < _WORTH_A_TRY * ans_size:
        options["zstd"] = zstd(packed)
    if ans == "ans":
        options[ans] = _ans_encode(mask, probability(total, mask.size))
    else:
        options[ans] = _classes_encode(_lines(mask, ans.removeprefix("ans-")), ans_classes)
    codec, data = min(options.items(), key=lambda item: (len(item[1]), CODECS.index(item[0])))
    if "zstd" in options and len(options["zstd"]) <= _GAIN * len(data):
        codec = "zstd"
    return codec, options[codec]


def decode(codec: str, data: bytes, shape: tuple[int, ...], kept: int) -> np.ndarray:
    """Return the mask of this shape; TicketError if `data` is not exactly the coding of one that keeps so many."""
    if codec not in CODECS:
        raise TicketError(f"unknown mask codec {codec!r}: expected one of {', '.join(CODECS)}")
    if codec == "zstd":
        mask = unpack(unzstd(data, "mask", size=(math.prod(shape) + 7) // 8), shape)
    else:
        cursor = Cursor(data)
        mask = _read(cursor, codec, shape, kept)
        cursor.check_end()
    check_kept(mask, kept)
    return mask


def _read(data: Cursor, codec: str, shape: tuple[int, ...], kept: int) -> np.ndarray:
    size = math.prod(shape)
    if codec == "ans":
        return _ans_decode(data, shape, probability(kept, size))
    kind, direction = codec.split("-")
    if len(shape) < 2 or not size:
        raise TicketError(f"codec {codec!r} needs two axes and at least one weight, the shape is {shape}")
    if direction == "columns":
        shape = (*shape[:-2], shape[-1], shape[-2])
    read = _classes_decode if kind == "ans" else _owner_decode
    mask = read(data, size // shape[-1], shape[-1]).reshape(shape)
    return np.ascontiguousarray(mask.swapaxes(-1, -2) if direction == "columns" else mask)


def check_kept(mask: np.ndarray, kept: int) -> None:
    """Raise unless the mask keeps as many weights as the index declares."""
    if np.count_nonzero(mask) != kept:
        raise TicketError(f"the mask keeps {np.count_nonzero(mask)} weights where {kept} are declared")


def _ans_encode(mask: np.ndarray, probability: int) -> bytes:
    """The packed mask as one ANS byte string; nothing if all weights are alike."""
    if probability in (0, SCALE):
        return b""
    return byte_codec.ans_encode(pack(mask), byte_codec.mask_model(probability))


def _ans_decode(data: Cursor, shape: tuple[int, ...], probability: int) -> np.ndarray:
    if probability in (0, SCALE):
        return np.full(shape, probability == SCALE)
    packed = byte_codec.ans_decode(data, (math.prod(shape) + 7) // 8, byte_codec.mask_model(probability))
    return unpack(packed, shape)


def _lines(mask: np.ndarray, direction: str) -> np.ndarray:
    """(lines, weights in a line)."""
    if direction == "columns":
        mask = mask.swapaxes(-1, -2)
    return np.ascontiguousarray(mask).reshape(-1, mask.shape[-1])


def _classes(kept: np.ndarray, length: int, between: int) -> np.ndarray:
    """Class of each line of `length` weights: 0 empty, 16 full, else 1 .. `between` by its kept fraction."""
    middle = 1 + between * (kept - 1) // max(length - 1, 1)
    return np.where(kept == 0, 0, np.where(kept == length, _FULL, middle)).astype(np.uint8)


def _best_classes(kept: np.ndarray, length: int) -> tuple[float, np.ndarray]:
    """(bytes needed, nearly; class of each line): one class where lines differ by chance alone, else many."""
    options = []
    for between in (1, _FULL - 1):
        classes = _classes(kept, length, between)
        size = byte_codec.estimated_size(classes)
        for one in np.unique(classes[(kept > 0) & (kept < length)]):
            inside = kept[classes == one]
            size += entropy(inside.size * length, int(inside.sum())) / 8 + 10
        options.append((size, classes))
    return min(options, key=lambda option: option[0])


def _classes_encode(lines: np.ndarray, classes: np.ndarray) -> bytes:
    """The classes as a byte string; then for each class present its probability (uint16) and its lines' ANS."""
    parts = [byte_codec.encode(classes)]
    for one in range(1, _FULL):
        inside = lines[classes == one]
        if inside.size:
            chance = probability(int(np.count_nonzero(inside)), inside.size)
            parts += [chance.to_bytes(2, "little"), _ans_encode(inside, chance)]
    return b"".join(parts)


def _classes_decode(data: Cursor, count: int, length: int) -> np.ndarray:
    classes = byte_codec.decode(data, count)
    if classes.max() > _FULL:
        raise TicketError(f"line {int(classes.argmax())} has class {classes.max()}, the highest is {_FULL}")
    lines = np.empty((count, length), np.bool_)
    lines[classes == 0] = False
    lines[classes == _FULL] = True
    for one in range(1, _FULL):
        inside = np.flatnonzero(classes == one)
        if inside.size:
            lines[inside] = _ans_decode(data, (inside.size, length), data.integer(2))
    return lines


def _owner_type(length: int) -> np.dtype:
    return np.dtype("<u1" if length < 1 << 8 else "<u2" if length < 1 << 16 else "<u8")


def _owner_encode(lines: np.ndarray, kept: np.ndarray) -> bytes:
    """Each line's kept weight's index (`length` for none): byte strings of the lowest bytes, the next, ..."""
    owner = np.where(kept == 1, lines.argmax(axis=1), lines.shape[1]).astype(_owner_type(lines.shape[1]))
    return b"".join(byte_codec.encode(plane) for plane in owner.view(np.uint8).reshape(owner.size, -1).T)


def _owner_decode(data: Cursor, count: int, length: int) -> np.ndarray:
    dtype = _owner_type(length)
    planes = np.empty((count, dtype.itemsize), np.uint8)
    for byte in range(dtype.itemsize):
        planes[:, byte] = byte_codec.decode(data, count)
    owner = planes.view(dtype).reshape(-1)
    if owner.max() > length:
        line = int(owner.argmax())
        raise TicketError(f"line {line} keeps weight {owner[line]}, it has {length} weights")
    lines = np.zeros((count, length + 1), np.bool_)
    lines[np.arange(count), owner] = True
    return np.ascontiguousarray(lines[:, :length])
