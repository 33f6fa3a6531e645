"""A mask in few bytes: how many weights of a line are kept gives the probability of each of them.

Where k of the m weights that are left of a line are kept, the next one is kept with probability k / m. So a line takes
the logarithm of the number of lines that keep as many: the only kept weight of a row of n takes log2(n) bits, a mask
that keeps weights at random its entropy. A line is the whole mask, a row (along the last axis) or a column (along the
last but one), whichever is shortest. Bytes: docs/ticket-format.md.
"""

import math
import struct

import numpy as np

from strongticket import rans
from strongticket.compiled import kernel
from strongticket.errors import TicketError

LINES = ("all", "rows", "columns")
_COUNTS = struct.Struct("<IB")  # the least count of a line; bits of a count above it
_LONGEST = 1 << 32


def entropy(size: int, kept: int) -> float:
    """Bits to say which `kept` of `size` weights are kept, when all choices are equally likely: size * h(kept / size).

    >>> entropy(8, 4)
    8.0
    """
    return sum(count * math.log2(size / count) for count in (kept, size - kept) if count)


def encode(mask: np.ndarray) -> tuple[str, bytes]:
    """Return (lines, data), the shortest of all.

    >>> encode(np.eye(200, dtype=bool))[0]
    'rows'
    """
    options = {"all": _encode_lines(mask.reshape(1, -1))}
    if mask.ndim > 1 and mask.size and max(mask.shape) < _LONGEST:
        for lines, turned in (("rows", mask), ("columns", mask.swapaxes(-1, -2))):
            matrix = np.ascontiguousarray(turned).reshape(-1, turned.shape[-1])
            counts = np.count_nonzero(matrix, axis=1)
            least, width = int(counts.min()), int(np.ptp(counts)).bit_length()
            packed = _COUNTS.pack(least, width) + rans.pack(counts - least, width)
            options[lines] = packed + _encode_lines(matrix)
    return min(options.items(), key=lambda item: (len(item[1]), LINES.index(item[0])))


def decode(lines: str, data: bytes, shape: tuple[int, ...], kept: int) -> np.ndarray:
    """Return the mask of this shape; TicketError if `data` is not exactly the coding of one that keeps so many."""
    size = math.prod(shape)
    if lines not in LINES or (lines != "all" and (len(shape) < 2 or not size)):
        raise TicketError(f"a mask of shape {shape} is not coded by {lines!r:.60}")
    if not 0 <= kept <= size:
        raise TicketError(f"a mask of {size} weights keeps {kept}")
    if lines == "all":
        return _decode_lines(data, np.array([kept]), size).reshape(shape)
    if lines == "columns":
        shape = (*shape[:-2], shape[-1], shape[-2])
    counts, rest = _unpack_counts(data, size // shape[-1])
    if counts.max() > shape[-1] or counts.sum() != kept:
        raise TicketError(f"the lines of the mask keep {counts.sum()} weights where {kept} are declared")
    mask = _decode_lines(rest, counts, shape[-1]).reshape(shape)
    return np.ascontiguousarray(mask.swapaxes(-1, -2)) if lines == "columns" else mask


def _unpack_counts(data: bytes, count: int) -> tuple[np.ndarray, bytes]:
    """The counts, and what follows them."""
    if len(data) < _COUNTS.size:
        raise TicketError("a mask ends within its counts")
    least, width = _COUNTS.unpack_from(data)
    end = _COUNTS.size + -(-count * width // 8)
    if width > 32 or len(data) < end:
        raise TicketError("a mask ends within its counts")
    return least + rans.unpack(data[_COUNTS.size : end], count, width), data[end:]


def _encode_lines(lines: np.ndarray) -> bytes:
    """A state and the words of one stream; nothing if every line is kept or dropped whole."""
    words = np.empty(lines.size, np.uint16)
    state, first = _encode(lines, words)
    if first == words.size and state == rans.LOWEST:
        return b""
    return int(state).to_bytes(4, "little") + words[first:].astype("<u2").tobytes()


def _decode_lines(data: bytes, counts: np.ndarray, length: int) -> np.ndarray:
    if len(data) % 2 or len(data) == 2:
        raise TicketError(f"the stream of a mask has {len(data)} bytes")
    state = int.from_bytes(data[:4], "little") if data else rans.LOWEST
    words = np.frombuffer(data, "<u2", offset=min(len(data), 4)).astype(np.uint16)
    lines = np.zeros((counts.size, length), np.bool_)
    if not _decode(lines, counts.astype(np.int64), np.uint32(state), words):
        raise TicketError("the stream of a mask is damaged")
    return lines


@kernel
def _encode(lines, words):
    """Backwards, as rANS writes, so that the weights behind the next one have been counted; fill the end of `words`."""
    x, first = np.uint64(65536), words.size
    for row in range(lines.shape[0] - 1, -1, -1):
        kept = 0
        for left in range(1, lines.shape[1] + 1):
            bit = lines[row, lines.shape[1] - left]
            kept += bit
            if kept == 0 or kept == left:
                continue
            share = np.uint64(min(max(kept * 65536 // left, 1), 65535))
            start, f = (np.uint64(0), share) if bit else (share, np.uint64(65536) - share)
            if x >= f << np.uint64(16):
                first -= 1
                words[first] = np.uint16(x & np.uint64(65535))
                x >>= np.uint64(16)
            x = (x // f << np.uint64(16)) + start + x % f
    return x, first


@kernel
def _decode(lines, counts, state, words):
    """Whatever the words: a line keeps its count; False if they are not what a writer writes for such a mask."""
    x, at = np.uint64(state), 0
    for row in range(lines.shape[0]):
        kept = counts[row]
        for left in range(lines.shape[1], 0, -1):
            if kept == 0:
                break
            bit = kept == left
            if not bit:
                share = np.uint64(min(max(kept * 65536 // left, 1), 65535))
                place = x & np.uint64(65535)
                bit = place < share
                start, f = (np.uint64(0), share) if bit else (share, np.uint64(65536) - share)
                x = f * (x >> np.uint64(16)) + place - start
                if x < np.uint64(65536):
                    if at == words.size:
                        return False
                    x = (x << np.uint64(16)) | np.uint64(words[at])
                    at += 1
            lines[row, lines.shape[1] - left] = bit
            kept -= bit
    return x == np.uint64(65536) and at == words.size
