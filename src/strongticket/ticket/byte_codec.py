"""Byte strings in few bytes, by zstd or by an ANS coder whose probabilities are exact integers.

Floating-point models would make decoding depend on the machine's rounding. Bytes: docs/ticket-format.md.
"""

import functools

import constriction
import numpy as np

from strongticket.errors import TicketError
from strongticket.ticket.container import unzstd, zstd

SCALE = 1 << 16  # a share is a multiple of 1 / SCALE

_FREE = (1 << 24) - 256  # what the coder's 24-bit probabilities leave after one unit for each byte value
_CHUNK = 1 << 21  # bytes in one ANS stream: bounds the memory a coder needs
_ONES = np.array([value.bit_count() for value in range(256)])
_ZSTD, _HISTOGRAM, _UNIFORM = 0, 1, 2

Model = constriction.stream.model.Categorical


def encode(values: np.ndarray) -> bytes:
    """uint8 -> the shortest of zstd, ANS by histogram and ANS with equal probabilities."""
    frame = zstd(values.tobytes())
    options = [bytes([_ZSTD]) + len(frame).to_bytes(4, "little") + frame]
    counts = np.bincount(values, minlength=1)
    present = np.flatnonzero(counts)
    if present.size:
        # Rounded up, so that no value that occurs gets nothing.
        weights = -(-counts[present] * 255 // counts.max())
        table = np.stack([present, weights], axis=1).astype(np.uint8).tobytes()
        head = bytes([_HISTOGRAM, present.size - 1]) + table
        options.append(head + (ans_encode(values, _table_model(table)) if present.size > 1 else b""))
        options.append(bytes([_UNIFORM, counts.size - 1]) + ans_encode(values, _uniform_model(counts.size)))
    return min(options, key=len)


def estimated_size(values: np.ndarray) -> float:
    """Bytes that `encode` will need, nearly, without coding them all."""
    counts = np.bincount(values)
    counts = counts[counts > 0]
    by_histogram = 2 * counts.size + float((counts * np.log2(values.size / counts)).sum()) / 8
    return min(float(len(zstd(values.tobytes()))), by_histogram)


def decode(data: memoryview, count: int) -> tuple[np.ndarray, memoryview]:
    """(`count` bytes, what is left of data)."""
    mode, data = read_integer(data, 1)
    if mode == _ZSTD:
        length, data = read_integer(data, 4)
        frame, data = take(data, length)
        return np.frombuffer(unzstd(bytes(frame), "byte string", size=count), np.uint8), data
    if mode not in (_HISTOGRAM, _UNIFORM):
        raise TicketError(f"byte string has unknown mode {mode}")
    last, data = read_integer(data, 1)
    if mode == _UNIFORM:
        return ans_decode(data, count, _uniform_model(last + 1))
    table, data = take(data, 2 * (last + 1))
    if last == 0:
        return np.full(count, table[0], np.uint8), data
    if not any(table[1::2]):
        raise TicketError("byte string has a table without weights")
    return ans_decode(data, count, _table_model(bytes(table)))


def share_of(part: int, whole: int) -> int:
    """part / whole as a multiple of 1 / SCALE: 0 and SCALE only when it is exactly 0 or 1."""
    if part in (0, whole):
        return SCALE if part else 0
    return min(max((2 * part * SCALE + whole) // (2 * whole), 1), SCALE - 1)


@functools.lru_cache(maxsize=64)
def mask_model(share: int) -> Model:
    """Bytes of eight weights, each kept with probability share / SCALE."""
    by_ones = [_FREE * share**ones * (SCALE - share) ** (8 - ones) // SCALE**8 for ones in range(9)]
    return _model(np.array(by_ones)[_ONES])


def _table_model(table: bytes) -> Model:
    """Pairs (value, weight)."""
    total = sum(table[1::2])
    weights = np.zeros(256, np.int64)
    for value, weight in zip(table[::2], table[1::2], strict=True):
        weights[value] = _FREE * weight // total
    return _model(weights)


def _uniform_model(values: int) -> Model:
    """Values below `values`, all equally likely."""
    return _model(np.where(np.arange(256) < values, _FREE // values, 0))


def _model(weights: np.ndarray) -> Model:
    """Probabilities (weight + 1) / 2^24; what is missing to _FREE goes to the first of the largest.

    With that sum the coder scales by exactly 1: it rounds nothing, and adds the 1 itself.
    """
    weights[weights.argmax()] += _FREE - weights.sum()
    model: Model = Model(weights.astype(np.float64), perfect=False, lazy=False)
    return model


def ans_encode(values: np.ndarray, model: Model) -> bytes:
    """For each chunk: number of 32-bit words, then the words, little-endian."""
    parts = []
    for first in range(0, values.size, _CHUNK):
        coder = constriction.stream.stack.AnsCoder()
        coder.encode_reverse(values[first : first + _CHUNK].astype(np.int32), model)
        words = coder.get_compressed().astype("<u4")
        parts += [len(words).to_bytes(4, "little"), words.tobytes()]
    return b"".join(parts)


def ans_decode(data: memoryview, count: int, model: Model) -> tuple[np.ndarray, memoryview]:
    """(`count` bytes, what is left of data)."""
    values = np.empty(count, np.uint8)
    for first in range(0, count, _CHUNK):
        length, data = read_integer(data, 4)
        words, data = take(data, 4 * length)
        part = values[first : first + _CHUNK]
        try:
            coder = constriction.stream.stack.AnsCoder(np.frombuffer(words, "<u4").astype(np.uint32))
        except ValueError as error:
            raise TicketError(f"ANS stream at byte {first} is damaged: {error}") from None
        part[...] = coder.decode(model, part.size)
        if not coder.is_empty():
            raise TicketError(f"ANS stream at byte {first} holds more than its {part.size} bytes")
    return values, data


def read_integer(data: memoryview, size: int) -> tuple[int, memoryview]:
    """(little-endian integer of `size` bytes, what is left of data)."""
    field, rest = take(data, size)
    return int.from_bytes(field, "little"), rest


def take(data: memoryview, size: int) -> tuple[memoryview, memoryview]:
    if len(data) < size:
        raise TicketError(f"data ends early: {size} bytes are needed, {len(data)} are left")
    return data[:size], data[size:]
