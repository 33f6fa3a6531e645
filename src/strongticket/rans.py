"""rANS, the entropy coder of masks and choices: symbols with whole-number probabilities -> words of 16 bits.

Symbol i belongs to state i mod L; L states of 32 bits, each from 2^16 to 2^32, share one stream of words. A symbol of
frequency f that starts at s, out of 2^bits, turns a state x into (x div f) · 2^bits + s + x mod f. Before that, the
lowest 16 bits of a state that would outgrow 32 bits go to the stream. The reader does the same backwards, so the
writer begins with the last symbol. Everything is whole numbers: any language reads the same bits.
"""

import numpy as np

from strongticket.compiled import kernel

LOWEST = 1 << 16  # of a state; every state begins, and after reading ends, here


def encode(
    symbols: np.ndarray, starts: np.ndarray, frequencies: np.ndarray, bits: int, lanes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Code symbols; return the states (uint32) and the words (uint16) to read.

    Args:
        symbols: uint16.
        starts: by symbol, where its frequency begins out of 2^bits, uint32.
        frequencies: by symbol, uint32, at least 1 for those that come.
        bits: 1 to 16.
        lanes: number of states, a power of two.
    """
    states = np.full(lanes, LOWEST, np.uint32)
    words = np.empty(symbols.size, np.uint16)
    first = _encode(symbols, starts, frequencies, np.uint64(bits), states, words)
    return states, words[first:]


@kernel
def _encode(symbols, starts, frequencies, bits, states, words):
    """Fill the end of `words`, of which a symbol makes at most one; return the first."""
    first = words.size
    for i in range(symbols.size - 1, -1, -1):
        lane, symbol = np.uint64(i & (states.size - 1)), symbols[i]  # unsigned: no test for places below 0
        x, f = np.uint64(states[lane]), np.uint64(frequencies[symbol])
        if x >= f << (np.uint64(32) - bits):
            first -= 1
            words[first] = np.uint16(x & np.uint64(0xFFFF))
            x >>= np.uint64(16)
        small, by = np.uint32(x), np.uint32(f)  # a division of 32 bits takes a third of the time
        states[lane] = np.uint32(
            (np.uint64(small // by) << bits) + np.uint64(starts[symbol]) + np.uint64(small % by)
        )
    return first


def pack(numbers: np.ndarray, width: int) -> bytes:
    """Whole numbers of `width` bits each, the lowest bit first."""
    bits = (numbers.astype(np.int64)[:, None] >> np.arange(width)) & 1
    return np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little").tobytes()


def unpack(data: bytes, count: int, width: int) -> np.ndarray:
    """`count` numbers of `pack`, int64; the width is at most 32, and bits behind the end are 0."""
    found = np.empty(count, np.int64)
    _unpack(np.frombuffer(data, np.uint8), width, found)
    return found


@kernel
def _unpack(packed, width, found):
    for i in range(found.size):
        first = i * width >> 3
        five = np.int64(0)
        for byte in range(min(5, packed.size - first)):
            five |= np.int64(packed[first + byte]) << (8 * byte)
        found[i] = (five >> (i * width & 7)) & ((1 << width) - 1)
