"""Byte strings in few bytes, by zstd or by an ANS coder whose probabilities are exact integers.

Floating-point models would make decoding depend on the machine's rounding. Bytes: docs/ticket-format.md.
"""

import functools

import constriction
import numpy as np

from strongticket.errors import TicketError
from strongticket.ticket.container import unzstd, zstd

SCALE = 1 << 16  # probabilities are multiples of 1 / SCALE

_FREE = (1 << 24) - 256  # what the coder's 24-bit probabilities leave after one unit for each byte value
_CHUNK = 1 << 21  # bytes in one ANS stream: bounds the memory a coder needs
_ONES = np.array([value.bit_count() for value in range(256)])
_ZSTD, _HISTOGRAM, _UNIFORM = 0, 1, 2

Model = constriction.stream.model.Categorical


class Cursor:
    """Coded bytes, read from the first to the last."""

    def __init__(self, data: bytes) -> None:
        self._rest = memoryview(data)

    def take(self, size: int) -> memoryview:
        if len(self._rest) < size:
            raise TicketError(f"data ends early: {size} bytes are needed, {len(self._rest)} are left")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def check_end(self) -> None:
        if len(self._rest):
            raise TicketError(f"mask data has {len(self._rest)} bytes too many")


def encode(values: np.ndarray) -> bytes:
    """Code uint8 values by the shortest of zstd, ANS by histogram and ANS with equal probabilities."""
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
    """Return about how many bytes `encode` needs, without coding the values in every way."""
    counts = np.bincount(values)
    counts = counts[counts > 0]
    by_histogram = 2 * counts.size + float((counts * np.log2(values.size / counts)).sum()) / 8
    return min(float(len(zstd(values.tobytes()))), by_histogram)


def decode(data: Cursor, count: int) -> np.ndarray:
    """Read `count` values."""
    mode = data.integer(1)
    if mode == _ZSTD:
        frame = data.take(data.integer(4))
        return np.frombuffer(unzstd(bytes(frame), "byte string", size=count), np.uint8)
    if mode not in (_HISTOGRAM, _UNIFORM):
        raise TicketError(f"byte string has unknown mode {mode}")
    last = data.integer(1)
    if mode == _UNIFORM:
        return ans_decode(data, count, _uniform_model(last + 1))
    table = data.take(2 * (last + 1))
    if last == 0:
        return np.full(count, table[0], np.uint8)
    if not any(table[1::2]):
        raise TicketError("byte string has a table without weights")
    return ans_decode(data, count, _table_model(bytes(table)))


def probability(kept: int, size: int) -> int:
    """Return kept / size as a multiple of 1 / SCALE; 0 and SCALE only when it is exactly 0 or 1."""
    if kept in (0, size):
        return SCALE if kept else 0
    return min(max((2 * kept * SCALE + size) // (2 * size), 1), SCALE - 1)


@functools.lru_cache(maxsize=64)
def mask_model(probability: int) -> Model:
    """Return the model of bytes of eight weights, each kept with this probability (a multiple of 1 / SCALE)."""
    dropped = SCALE - probability
    by_ones = [_FREE * probability**ones * dropped ** (8 - ones) // SCALE**8 for ones in range(9)]
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
    """Write for each chunk the number of its 32-bit words, then the words, little-endian."""
    parts = []
    for first in range(0, values.size, _CHUNK):
        coder = constriction.stream.stack.AnsCoder()
        coder.encode_reverse(values[first : first + _CHUNK].astype(np.int32), model)
        words = coder.get_compressed().astype("<u4")
        parts += [len(words).to_bytes(4, "little"), words.tobytes()]
    return b"".join(parts)


def ans_decode(data: Cursor, count: int, model: Model) -> np.ndarray:
    """Read `count` values that ans_encode wrote with the same model."""
    values = np.empty(count, np.uint8)
    for first in range(0, count, _CHUNK):
        words = data.take(4 * data.integer(4))
        part = values[first : first + _CHUNK]
        try:
            coder = constriction.stream.stack.AnsCoder(np.frombuffer(words, "<u4").astype(np.uint32))
        except ValueError as error:
            raise TicketError(f"ANS stream at byte {first} is damaged: {error}") from None
        part[...] = coder.decode(model, part.size)
        if not coder.is_empty():
            raise TicketError(f"ANS stream at byte {first} holds more than its {part.size} bytes")
    return values
