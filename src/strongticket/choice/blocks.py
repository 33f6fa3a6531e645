"""A block of rows -> bytes; `reading` is the way back, docs/ticket-format.md lists the bytes.

Symbols run along the rows, the first row first, and rows of zeros have none. A block of zeros only is no bytes.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from strongticket import rans
from strongticket.choice.feeding import Feedback, fed_values
from strongticket.choice.scales import OFF, row_scales, row_spacings
from strongticket.choice.tables import BITS, MOST_OFFSET_BITS, Tables, best_tables
from strongticket.choice.tokens import COUNT, ZERO, token
from strongticket.choice.trellis import CODES, STATES, best_values, check_states
from strongticket.compiled import kernel
from strongticket.settings import Positive
from strongticket.settings import check as check_setting

# Trellis, offset bits and lanes; digits, parity and bits of a scale; unit; least exponent; first token; number of
# tokens; number of words.
HEADER = struct.Struct("<BBfhBBI")
_WEIGHTS_A_LANE = 4096
_MOST_LANES = 64


class Cost(NamedTuple):
    """Bits of a block but for the coder's fractions of a byte: of header and tables; of numbers and their scales."""

    overhead: float
    numbers: float


@dataclass(frozen=True)
class Block:
    """The choices of a block before they are coded.

    Attributes:
        symbols: of the numbers, uint16 (rows that are not zeros only, columns): COUNT · class + token, where the
            class is twice the quarter of the offset, plus the parity that the trellis asks for.
        raw: bits of the tokens that have some, in words of 32, the lowest first; raw_bits of them.
        exponents: of the rows' scales.
        unit: of their spacings.
        states: of the trellis.
        tables: of frequencies.
    """

    symbols: np.ndarray
    raw: np.ndarray
    raw_bits: int
    exponents: np.ndarray
    unit: float
    states: int
    tables: Tables


def lanes(shape: tuple[int, ...]) -> int:
    """Number of interleaved states: a power of two, at most the columns and a state for 4096 numbers."""
    return 1 << (max(1, min(shape[1], shape[0] * shape[1] // _WEIGHTS_A_LANE, _MOST_LANES)).bit_length() - 1)


def choose(
    matrix: np.ndarray,
    step: float,
    offsets: np.ndarray,
    states: int,
    shrink: bool,
    feedback: Feedback | None = None,
) -> Block | None:
    """Choose the numbers of a block, whose offsets are uint16; None if all are zeros. See `choice.encode_rows`."""
    check_states(states)
    check_setting(Positive, step=step)
    rows = np.ascontiguousarray(matrix)
    exponents, unit, has_zeros = row_scales(rows, step if states == 1 else step / 2)
    on = exponents > OFF
    if not on.any():
        return None
    if not on.all():
        rows, offsets = rows[on], offsets[on]
    zeros = rows == 0 if has_zeros else np.zeros(rows.shape, np.bool_)
    spacings = row_spacings(exponents[on], unit).astype(np.float64)
    if feedback is None:
        values = best_values(rows, spacings, offsets, states, zeros)
    else:
        values = fed_values(rows, spacings, offsets, states, zeros, feedback)
    if shrink:
        unit = float(np.float32(unit * _shrinking(rows, spacings, offsets, values, zeros)))
    counts = np.zeros((2 << MOST_OFFSET_BITS, COUNT), np.int64)
    symbols = np.empty(values.shape, np.uint16)
    raw = np.zeros(values.size + 1, np.uint32)  # a number has at most 27 bits
    bits = _symbols(values, offsets, zeros, *code_of(states), symbols, counts.reshape(-1), raw)
    return Block(
        symbols, raw[: bits // 32 + 1], bits, exponents, unit, states, best_tables(counts, states > 1)
    )


@kernel
def _shrinking(rows, spacings, offsets, values, zeros):
    """<W, Ŵ> / <Ŵ, Ŵ>, summed in order."""
    cross, square = 0.0, 0.0
    for r in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if not zeros[r, j]:
                made = spacings[r] * (values[r, j] + (2.0 * offsets[r, j] + 1) / 131072 - 0.5)
                cross += rows[r, j] * made
                square += made * made
    return cross / square if cross > 0 else 1.0


@kernel
def _symbols(values, offsets, zeros, shift, h0, h1, symbols, counts, raw):
    """Symbols, how often each comes, and raw bits; return how many these are."""
    states = np.zeros(values.shape[1], np.int64)
    at = 0
    for r in range(values.shape[0]):
        for j in range(values.shape[1]):
            state, found = states[j], ZERO
            if not zeros[r, j]:
                k = np.int64(values[r, j]) >> shift
                found, bits = token(k)
                if bits:
                    low = np.uint64((abs(k) & ((1 << bits) - 1)) << (at & 31))
                    raw[at >> 5] |= np.uint32(low & np.uint64(0xFFFFFFFF))
                    raw[(at >> 5) + 1] |= np.uint32(low >> np.uint64(32))
                    at += bits
                states[j] = (state >> 1) ^ ((state & 1) * h0) ^ ((k & 1) * h1)
            symbol = np.uint64(((np.int64(offsets[r, j]) >> 14) << 1 | (state & 1)) * COUNT + found)
            symbols[r, j] = symbol
            counts[symbol] += 1
    return at


def cost(block: Block | None) -> Cost:
    """What `encode` will take."""
    if block is None:
        return Cost(0.0, 0.0)
    tables = block.tables
    scales = len(block.exponents) * _scale_bits(block.exponents)
    states = 24 * lanes(block.symbols.shape)  # of 32 bits, a byte of which holds what is coded
    return Cost(8 * HEADER.size + states + tables.table_bits, tables.symbol_bits + block.raw_bits + scales)


def encode(block: Block | None) -> bytes:
    """The bytes of a block."""
    if block is None:
        return b""
    tables, count = block.tables, lanes(block.symbols.shape)
    states, words = rans.encode(block.symbols.reshape(-1), *tables.places(), BITS, count)
    width, least = _scale_bits(block.exponents), int(block.exponents[block.exponents > OFF].min())
    scales = np.where(block.exponents > OFF, block.exponents - least + 1, 0)
    packed = rans.pack(scales, width) + rans.pack(tables.codes.reshape(-1), tables.digits + 4)
    header = HEADER.pack(
        STATES.index(block.states) | tables.offset_bits << 2 | (count.bit_length() - 1) << 4,
        (tables.digits - 1) | tables.by_parity << 2 | width << 3,
        block.unit, least, tables.first, tables.codes.shape[1], words.size,
    )  # fmt: skip
    raw_bytes = block.raw.astype("<u4").tobytes()[: -(-block.raw_bits // 8)]
    return header + packed + states.astype("<u4").tobytes() + words.astype("<u2").tobytes() + raw_bytes


def code_of(states: int) -> tuple[int, int, int]:
    """(bits by which a value is shifted to its choice, H0, H1) of a trellis."""
    return (1, *CODES[states]) if states > 1 else (0, 0, 0)


def _scale_bits(exponents: np.ndarray) -> int:
    """Bits of a row's scale: none if all rows share one."""
    on = exponents[exponents > OFF]
    shared = on.size == exponents.size and not np.ptp(on)
    return 0 if shared else int(np.ptp(on) + 1).bit_length()
