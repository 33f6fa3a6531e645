"""Counts of tokens -> tables of whole frequencies out of 2^12, and which tables a block should have.

A table is a frequency for each token of a range. It is stored as a small floating-point number a token, of `digits`
bits after the first one and four of exponent; the reader gives every token 1 of the 4096 and shares out the others.
Tokens are told apart by classes: by the first bits of the offset, and by whether the trellis asks for odd values.
"""

from dataclasses import dataclass

import numpy as np

from strongticket.choice.tokens import COUNT
from strongticket.rans import kernel

BITS = 12
TOTAL = 1 << BITS
DIGITS = (1, 2, 3, 4)
MOST_OFFSET_BITS = 2
_COST = np.rint(65536 * (BITS - np.log2(np.arange(1, TOTAL + 1)))).astype(
    np.int64
)  # of frequency i + 1, in 2^-16 bits


@dataclass(frozen=True)
class Tables:
    """Which classes a block has, the codes of their tables, (classes, tokens), and the bits of all symbols."""

    offset_bits: int
    by_parity: bool
    digits: int
    first: int
    codes: np.ndarray
    symbol_bits: float

    @property
    def table_bits(self) -> int:
        return self.codes.size * (self.digits + 4)

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """(where it starts, frequency) of each symbol COUNT · (twice the quarter + parity) + token, uint32."""
        quarters, parities = np.divmod(np.arange(2 << MOST_OFFSET_BITS), 2)
        kinds = quarters >> (MOST_OFFSET_BITS - self.offset_bits)
        kinds = 2 * kinds + parities if self.by_parity else kinds
        found = np.zeros((2, kinds.size, COUNT), np.uint32)
        tokens = slice(self.first, self.first + self.codes.shape[1])
        found[1, :, tokens] = frequencies(self.codes, self.digits)[kinds]
        found[0] = np.cumsum(found[1], axis=1) - found[1]
        return found[0].reshape(-1), found[1].reshape(-1)


def best_tables(counts: np.ndarray, with_parity: bool) -> Tables:
    """The cheapest tables for these counts: int64 (twice the quarter of the offset, plus the parity; token)."""
    counts = counts.reshape(-1, 2, COUNT)
    used = np.flatnonzero(counts.any(axis=(0, 1)))
    first, last = (int(used[0]), int(used[-1])) if used.size else (0, 0)
    counts = counts[:, :, first : last + 1]
    best: Tables | None = None
    for offset_bits in range(MOST_OFFSET_BITS + 1):
        for by_parity in (False, True) if with_parity else (False,):
            merged = counts.reshape(1 << offset_bits, -1, *counts.shape[1:]).sum(axis=1)
            merged = (merged if by_parity else merged.sum(axis=1, keepdims=True)).reshape(-1, counts.shape[2])
            for digits in DIGITS:
                codes = _codes(merged, digits)
                symbols = int((merged * _COST[frequencies(codes, digits).astype(np.int64) - 1]).sum())
                found = Tables(offset_bits, by_parity, digits, first, codes, symbols / 65536)
                if best is None or found.symbol_bits + found.table_bits < best.symbol_bits + best.table_bits:
                    best = found
    assert best is not None
    return best


def _codes(counts: np.ndarray, digits: int) -> np.ndarray:
    """The code of each token, uint8: of the nearest number to its frequency less the 1 that every token has."""
    values = (((1 << digits) + np.arange(1 << digits)) << np.arange(16)[:, None]).reshape(-1)[:-1]
    values = np.concatenate([[0], values])
    wanted = np.maximum(counts * (TOTAL / np.maximum(counts.sum(axis=1, keepdims=True), 1)) - 1, 0)
    scaled = wanted * (values[-1] / np.maximum(wanted.max(axis=1, keepdims=True), 1))
    return np.searchsorted((values[1:] + values[:-1]) / 2, scaled).astype(np.uint8)


def frequencies(codes: np.ndarray, digits: int) -> np.ndarray:
    """Codes (classes, tokens) -> frequencies, uint32, each at least 1 and 2^12 together in every class."""
    found = np.empty(codes.shape, np.uint32)
    for row, out in zip(codes, found, strict=True):
        fill_frequencies(row, digits, out)
    return found


@kernel
def fill_frequencies(codes, digits, out):
    """Whole numbers only; what rounding leaves over goes to the first of the most frequent tokens."""
    weights = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        code = np.int64(codes[i]) - 1
        digit = code & ((1 << digits) - 1)
        weights[i] = ((1 << digits) + digit) << (code >> digits) if code >= 0 else 0
    total, rest, largest = max(weights.sum(), 1), 1 << 12, 0
    spare = rest - codes.size
    for i in range(codes.size):
        out[i] = 1 + weights[i] * spare // total
        rest -= out[i]
        if weights[i] > weights[largest]:
            largest = i
    out[largest] += rest
