"""Counts of tokens -> tables of whole frequencies out of 2^12, and which tables a block should have.

A table is a frequency for each token of a range. It is stored as a small floating-point number a token, of `digits`
bits after the first one and four of exponent; the reader gives every token 1 of the 4096 and shares out the others.
Tokens are told apart by classes: by the first bits of the offset, and by whether the trellis asks for odd values.
"""

from dataclasses import dataclass

import numpy as np

from strongticket.choice.tokens import COUNT
from strongticket.compiled import kernel

BITS = 12
TOTAL = 1 << BITS
MOST_OFFSET_BITS = 2
_MOST_DIGITS = 4


@dataclass(frozen=True)
class Tables:
    """Which classes a block has, the codes of their tables, (classes, tokens), and the bits of all symbols."""

    offset_bits: int
    by_parity: int
    digits: int
    first: int
    codes: np.ndarray
    symbol_bits: float

    @property
    def table_bits(self) -> int:
        return self.codes.size * (self.digits + 4)

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """(where it starts, frequency) of each symbol COUNT · (twice the quarter + parity) + token, uint32."""
        starts, found = np.zeros((2, 2 << MOST_OFFSET_BITS, COUNT), np.uint32)
        _fill_places(self.codes, self.digits, self.offset_bits, self.by_parity, self.first, starts, found)
        return starts.reshape(-1), found.reshape(-1)


def best_tables(counts: np.ndarray, with_parity: bool) -> Tables:
    """The cheapest tables for these counts: int64 (twice the quarter of the offset, plus the parity; token)."""
    used = np.flatnonzero(counts.any(axis=0))
    first = int(used[0])
    counts = np.ascontiguousarray(counts[:, first : used[-1] + 1])
    offset_bits, by_parity, digits, codes, symbols = _best_tables(counts, int(with_parity), _COSTS)
    return Tables(offset_bits, by_parity, digits, first, codes, symbols / 65536)


# Bits of a token by its frequency, 12 − log2, in units of 2^-16. No logarithm but a whole one is within 10^-4 of a
# unit's border, so every machine rounds alike.
_LOGS = np.floor(np.log2(np.arange(1, TOTAL + 1)) * 65536)
_COSTS = np.concatenate([[0], (BITS << 16) - _LOGS]).astype(np.int64)


@kernel
def _kind(quarter, parity, offset_bits, by_parity):
    """The class of a symbol."""
    return ((quarter >> (MOST_OFFSET_BITS - offset_bits)) << by_parity) | (parity & by_parity)


@kernel
def _best_tables(counts, with_parity, costs):
    """(offset bits, by parity, digits, codes, cost of all symbols) of the least sum of tables and symbols."""
    tokens = counts.shape[1]
    found = np.empty(tokens, np.uint32)
    least, best = -1, (0, 0, 0, np.empty((0, 0), np.uint8), 0)
    for offset_bits in range(MOST_OFFSET_BITS + 1):
        for by_parity in range(with_parity + 1):
            merged = np.zeros((1 << (offset_bits + by_parity), tokens), np.int64)
            for i in range(counts.shape[0]):
                merged[_kind(i >> 1, i & 1, offset_bits, by_parity)] += counts[i]
            for digits in range(1, _MOST_DIGITS + 1):
                codes, symbols = np.empty(merged.shape, np.uint8), 0
                for kind in range(merged.shape[0]):
                    _fill_codes(merged[kind], digits, codes[kind])
                    fill_frequencies(codes[kind], digits, found)
                    for i in range(tokens):
                        symbols += merged[kind, i] * costs[found[i]]
                total = symbols + (codes.size * (digits + 4) << 16)
                if least < 0 or total < least:
                    least, best = total, (offset_bits, by_parity, digits, codes, symbols)
    return best


@kernel
def _fill_codes(counts, digits, codes):
    """The code of each token: of the nearest number to its frequency less the 1 that every token has."""
    last = (16 << digits) - 1
    share = TOTAL / max(counts.sum(), 1)
    by = _weight(last, digits) / max(counts.max() * share - 1, 1.0)
    for i in range(counts.size):
        wanted = max(counts[i] * share - 1, 0.0) * by
        low, high = 0, last
        while low < high:
            middle = (low + high) >> 1
            if _weight(middle, digits) + _weight(middle + 1, digits) < 2 * wanted:
                low = middle + 1
            else:
                high = middle
        codes[i] = low


@kernel
def _weight(code, digits):
    """The small floating-point number that a code stands for."""
    digit = (code - 1) & ((1 << digits) - 1)
    return ((1 << digits) + digit) << ((code - 1) >> digits) if code > 0 else 0


@kernel
def _fill_places(codes, digits, offset_bits, by_parity, first, starts, frequencies):
    found = np.empty(codes.shape[1], np.uint32)
    for i in range(starts.shape[0]):
        fill_frequencies(codes[_kind(i >> 1, i & 1, offset_bits, by_parity)], digits, found)
        start = 0
        for token in range(found.size):
            starts[i, first + token], frequencies[i, first + token] = start, found[token]
            start += found[token]


@kernel
def fill_frequencies(codes, digits, out):
    """Whole numbers only; what rounding leaves over goes to the first of the most frequent tokens."""
    total, rest, largest = 0, TOTAL, 0
    for i in range(codes.size):
        total += _weight(np.int64(codes[i]), digits)
        if codes[i] > codes[largest]:
            largest = i
    spare = TOTAL - codes.size
    for i in range(codes.size):
        out[i] = 1 + _weight(np.int64(codes[i]), digits) * spare // max(total, 1)
        rest -= out[i]
    out[largest] += rest
