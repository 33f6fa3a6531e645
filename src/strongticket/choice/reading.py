"""Bytes of a block -> its numbers, whatever the bytes: never out of bounds, at worst wrong, which checksums tell."""

from dataclasses import dataclass

import numpy as np

from strongticket import rans
from strongticket.choice.blocks import HEADER, code_of
from strongticket.choice.scales import OFF, row_spacings
from strongticket.choice.tables import MOST_OFFSET_BITS, fill_frequencies
from strongticket.choice.tokens import COUNT, least_size
from strongticket.choice.trellis import STATES
from strongticket.compiled import kernel
from strongticket.errors import TicketError


@dataclass(frozen=True)
class Streams:
    """What a block holds.

    Attributes:
        code: of the trellis, see `code_of`.
        offset_bits: that tell classes apart.
        by_parity: 1 if the parity that the trellis asks for tells classes apart too.
        spacings: of the rows, float32; 0 for a row of zeros.
        table: by class and slot, uint64, see `_fill_table`.
        lanes: states of the coder, uint32.
        words: of the coder, uint16, and a 0 behind them.
        raw: raw bits in words of 32, and at least two zeros behind them.
        raw_bytes: how many bytes of raw bits there are.
    """

    code: tuple[int, int, int]
    offset_bits: int
    by_parity: int
    spacings: np.ndarray
    table: np.ndarray
    lanes: np.ndarray
    words: np.ndarray
    raw: np.ndarray
    raw_bytes: int

    def check_end(self, lanes: np.ndarray, words: int, raw_bits: int) -> None:
        """Raise unless the coder's states are what a writer begins with, and everything has been read."""
        read = (words, -(-raw_bits // 8))
        if read != (self.words.size - 1, self.raw_bytes) or (lanes != rans.LOWEST).any():
            raise TicketError("a block of choices is damaged")


def streams(data: bytes, shape: tuple[int, int]) -> Streams:
    """Take the bytes of a block of this shape apart; not for a block of zeros, which has none."""
    if len(data) < HEADER.size:
        raise TicketError("a block of choices is too short")
    packing, more, unit, least, first, tokens, count = HEADER.unpack_from(data)
    states, offset_bits, lanes = STATES[packing & 3], packing >> 2 & 3, 1 << (packing >> 4)
    digits, by_parity, width = (more & 3) + 1, more >> 2 & 1, more >> 3
    codes = (1 << (offset_bits + by_parity)) * tokens
    tables = HEADER.size + -(-shape[0] * width // 8)
    coder = tables + -(-codes * (digits + 4) // 8)
    stream = coder + 4 * lanes
    rest = stream + 2 * count
    if (
        offset_bits > MOST_OFFSET_BITS or width > 16 or not tokens or first + tokens > COUNT
        or rest > len(data) or not 0 < unit < np.inf or lanes > shape[1]
    ):  # fmt: skip
        raise TicketError("a block of choices does not fit its sizes")
    exponents = np.full(shape[0], least)
    if width:
        scales = rans.unpack(data[HEADER.size : tables], shape[0], width)
        exponents = np.where(scales > 0, least + scales - 1, OFF)
    table = np.empty(codes // tokens << 12, np.uint64)
    _fill_table(rans.unpack(data[tables:coder], codes, digits + 4), tokens, first, digits, table)
    return Streams(
        code_of(states), offset_bits, by_parity, row_spacings(exponents, unit), table,
        np.frombuffer(data[coder:stream], "<u4"), np.frombuffer(data[stream:rest] + bytes(2), "<u2"),
        np.frombuffer(data[rest:] + bytes(8 + (rest - len(data)) % 4), "<u4"), len(data) - rest,
    )  # fmt: skip


def decode(data: bytes, offsets: np.ndarray, out: np.ndarray, values: np.ndarray | None = None) -> None:
    """Fill `out`, float32 (rows, columns), with the numbers of a block; any bytes give numbers or an error.

    Args:
        data: the bytes.
        offsets: uint16, of the same shape.
        out: to fill.
        values: int32, of the same shape, to fill with v, where rows are not zeros; None for not at all.
    """
    if not data:
        out[:] = 0
        return
    read = streams(data, out.shape)
    lanes, values = read.lanes.copy(), np.empty((0, 0), np.int32) if values is None else values
    ends = _decode(
        read.table, read.spacings, offsets, *read.code, read.offset_bits, read.by_parity, lanes, read.words, read.raw,
        out, values,
    )  # fmt: skip
    read.check_end(lanes, *ends)


@kernel
def _fill_table(codes, tokens, first, digits, table):
    """By class and slot, in one number: frequency 13 bits, place in it 12, raw bits 5, zero 1, negative 1, |k| 32."""
    frequencies = np.empty(tokens, np.int64)
    slot = 0
    for begin in range(0, codes.size, tokens):
        fill_frequencies(codes[begin : begin + tokens], digits, frequencies)
        for i in range(tokens):
            found = first + i
            size, bits = least_size(found)
            flags = np.int64(found == 0) | np.int64(found & 1 == 0 and found > 0) << 1
            entry = frequencies[i] | bits << 25 | flags << 30 | size << 32
            for place in range(frequencies[i]):
                table[slot] = entry | place << 13
                slot += 1


@kernel
def _decode(table, spacings, offsets, shift, h0, h1, offset_bits, by_parity, lanes, words, raw, out, values):
    """Three passes a row: tables by column, the coder, then numbers; the first and the last become vector code.

    Places in arrays are unsigned, which spares the test for places below 0.
    """
    columns = out.shape[1]
    states, kinds = np.zeros(columns, np.uint32), np.empty(columns, np.uint32)
    entries, chosen, with_raw = (
        np.empty(columns, np.uint64),
        np.empty(columns, np.int32),
        np.empty(columns, np.uint32),
    )
    offset_shift, kind_shift = np.uint32(16 - offset_bits), np.uint32(12 + by_parity)
    parity, shift, h0, h1 = np.uint32(by_parity), np.uint32(shift), np.uint32(h0), np.uint32(h1)
    mask, last, last_raw = np.uint64(lanes.size - 1), np.uint64(words.size - 1), np.uint64(raw.size - 2)
    one, half = np.uint64(1), np.uint64(32)
    i, at, bit = np.uint64(0), np.uint64(0), np.uint64(0)
    for r in range(out.shape[0]):
        if spacings[r] == 0:
            for j in range(columns):
                out[r, j] = 0
            continue
        for j in range(columns):
            quarter = np.uint32(offsets[r, j]) >> offset_shift
            kinds[j] = (quarter << kind_shift) | ((states[j] & parity) << np.uint32(12))
        count = np.uint64(0)
        for j in range(columns):
            x = lanes[i & mask]
            entry = table[kinds[j] | (x & np.uint32(4095))]
            low = np.uint32(entry)
            x = (low & np.uint32(8191)) * (x >> np.uint32(12)) + ((low >> np.uint32(13)) & np.uint32(4095))
            more = x < np.uint32(65536)
            word = np.uint32(words[min(at, last)])
            lanes[i & mask] = (x << np.uint32(16)) | word if more else x
            at += np.uint64(more)
            i += one
            entries[j] = entry
            with_raw[count] = np.uint32(j)
            count += np.uint64(low & np.uint32(31 << 25) != np.uint32(0))
        for j in range(columns):
            chosen[j] = np.int32(entries[j] >> half)
        for n in range(count):
            j = with_raw[n]
            bits, place = (entries[j] >> np.uint64(25)) & np.uint64(31), min(bit >> np.uint64(5), last_raw)
            two = np.uint64(raw[place]) | np.uint64(raw[place + one]) << half
            chosen[j] += np.int32((two >> (bit & np.uint64(31))) & ((one << bits) - one))
            bit += bits
        spacing = spacings[r]
        for j in range(columns):
            low = np.uint32(entries[j])
            negative, zero = np.int32(low >> np.uint32(31)), (low >> np.uint32(30)) & np.uint32(1)
            k = (chosen[j] ^ -negative) + negative
            state = states[j]
            odd = state & np.uint32(1) & shift
            after = (state >> np.uint32(1)) ^ (odd * h0) ^ (np.uint32(k & 1) * h1)
            u = np.float32(np.int32(2) * np.int32(offsets[r, j]) - np.int32(65535)) * np.float32(1 / 131072)
            chosen[j] = (k << np.int32(shift)) + np.int32(odd)
            number = (np.float32(chosen[j]) + u) * spacing
            out[r, j] = np.float32(0) if zero else number
            states[j] = state if zero else after
        if values.size:
            values[r] = chosen
    return np.int64(at), np.int64(bit)
