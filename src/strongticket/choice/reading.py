"""Bytes of a block -> its numbers, whatever the bytes: never out of bounds, at worst wrong, which checksums tell."""

import numpy as np

from strongticket.choice.blocks import HEADER, code_of
from strongticket.choice.tables import MOST_OFFSET_BITS, fill_frequencies
from strongticket.choice.tokens import COUNT, least_size
from strongticket.choice.trellis import STATES
from strongticket.errors import TicketError
from strongticket.rans import kernel


def decode(data: bytes, offsets: np.ndarray, out: np.ndarray) -> None:
    """Fill `out`, float32 (rows, columns), with the numbers of a block; any bytes give numbers or an error."""
    if not data:
        out[:] = 0
        return
    bytes_ = np.frombuffer(data, np.uint8)
    if bytes_.size < HEADER.size:
        raise TicketError("a block of choices is too short")
    packing, more, unit, least, first, tokens, words = HEADER.unpack_from(data)
    states, offset_bits, count = STATES[packing & 3], packing >> 2 & 3, 1 << (packing >> 4)
    digits, by_parity, width = (more & 3) + 1, more >> 2 & 1, more >> 3
    classes = 1 << (offset_bits + by_parity)
    tables = HEADER.size + -(-len(out) * width // 8)
    streams = tables + -(-classes * tokens * (digits + 4) // 8)
    raw = streams + 4 * count + 2 * words
    if (
        offset_bits > MOST_OFFSET_BITS or width > 16 or not tokens or first + tokens > COUNT
        or raw > bytes_.size or not unit > 0 or not unit < np.inf or count > out.shape[1]
    ):  # fmt: skip
        raise TicketError("a block of choices does not fit its sizes")
    spacings = np.empty(len(out), np.float32)
    _read_scales(bytes_[HEADER.size : tables], width, least, unit, spacings)
    lane_states = np.frombuffer(data, "<u4", count, streams).copy()
    stream = np.frombuffer(data, "<u2", words, streams + 4 * count)
    if not words:
        stream = np.zeros(1, "<u2")
    table = _reading_table(bytes_[tables:streams], classes, first, tokens, digits)
    raw_bytes = bytes_.size - raw
    raw_words = np.zeros(raw_bytes // 4 + 3, np.uint32)
    raw_words.view(np.uint8)[:raw_bytes] = bytes_[raw:]
    if not _decode(
        table, spacings, offsets, *code_of(states), offset_bits, by_parity, lane_states, stream, words, raw_words,
        raw_bytes, out,
    ):  # fmt: skip
        raise TicketError("a block of choices is damaged")


@kernel
def _bits(packed, at, width):
    """The whole number of `width` bits, at most 16, from bit `at` on."""
    found = np.int64(0)
    for byte in range(3):
        place = (at >> 3) + byte
        if place < packed.size:
            found |= np.int64(packed[place]) << (8 * byte)
    return (found >> (at & 7)) & ((1 << width) - 1)


@kernel
def _read_scales(packed, width, least, unit, spacings):
    """row_spacings of the stored scales; a scale that is too large reads as 0, and the checksum tells."""
    for r in range(spacings.size):
        found = _bits(packed, r * width, width) if width else 1
        exponent = least + found - 1
        quarter = exponent & 3
        root = 1.0
        if quarter == 1:
            root = 1.189207115002721
        elif quarter == 2:
            root = 1.4142135623730951
        elif quarter == 3:
            root = 1.681792830507429
        octave = min(max(exponent >> 2, -1000), 1000)
        power = 2.0**octave
        spacings[r] = np.float32(unit * root * power) if found else np.float32(0)


@kernel
def _reading_table(packed, classes, first, tokens, digits):
    """By class and slot, in one number: frequency 13 bits, place in it 12, raw bits 5, zero 1, negative 1, |k| 32."""
    table = np.empty(classes << 12, np.uint64)
    codes, frequencies = np.empty(tokens, np.int64), np.empty(tokens, np.int64)
    at = 0
    for kind in range(classes):
        for i in range(tokens):
            codes[i] = _bits(packed, at, digits + 4)
            at += digits + 4
        fill_frequencies(codes, digits, frequencies)
        slot = kind << 12
        for i in range(tokens):
            found = first + i
            size, bits = least_size(found)
            flags = np.int64(found == 0) | np.int64(found & 1 == 0 and found > 0) << 1
            entry = frequencies[i] | bits << 25 | flags << 30
            entry = np.uint64(entry) | np.uint64(size) << np.uint64(32)
            for place in range(frequencies[i]):
                table[slot] = entry | np.uint64(place << 13)
                slot += 1
    return table


@kernel
def _decode(
    table, spacings, offsets, shift, h0, h1, offset_bits, by_parity, lanes, words, count, raw, raw_bytes, out
):
    """Three passes a row: tables by column, the coder, then numbers; the first and the last become vector code."""
    columns = out.shape[1]
    states, kinds = np.zeros(columns, np.uint32), np.empty(columns, np.uint32)
    entries, chosen = np.empty(columns, np.uint64), np.empty(columns, np.int32)
    has_raw = False
    for entry in table:
        has_raw |= (entry >> np.uint64(25)) & np.uint64(31) != 0
    offset_shift, kind_shift = np.uint32(16 - offset_bits), np.uint32(12 + by_parity)
    parity, shift = np.uint32(by_parity), np.uint32(shift)
    h0, h1 = np.uint32(h0), np.uint32(h1)
    mask, last = lanes.size - 1, words.size - 1
    i, at, bit = 0, 0, 0
    for r in range(out.shape[0]):
        if spacings[r] == 0:
            for j in range(columns):
                out[r, j] = 0
            continue
        for j in range(columns):
            quarter = np.uint32(offsets[r, j]) >> offset_shift
            kinds[j] = (quarter << kind_shift) | ((states[j] & parity) << np.uint32(12))
        for j in range(columns):
            x = lanes[i & mask]
            entry = table[kinds[j] | (x & np.uint32(4095))]
            low = np.uint32(entry)
            x = (low & np.uint32(8191)) * (x >> np.uint32(12)) + ((low >> np.uint32(13)) & np.uint32(4095))
            more = x < np.uint32(65536)
            word = np.uint32(words[min(at, last)])
            lanes[i & mask] = (x << np.uint32(16)) | word if more else x
            at += np.int64(more)
            entries[j] = entry
            i += 1
        for j in range(columns):
            chosen[j] = np.int32(entries[j] >> np.uint64(32))
        if has_raw:
            for j in range(columns):
                bits, place = np.int64(entries[j] >> np.uint64(25)) & 31, min(bit >> 5, raw.size - 2)
                two = np.uint64(raw[place]) | np.uint64(raw[place + 1]) << np.uint64(32)
                two = (two >> np.uint64(bit & 31)) & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))
                chosen[j] += np.int32(two)
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
            number = (np.float32((k << np.int32(shift)) + np.int32(odd)) + u) * spacing
            out[r, j] = np.float32(0) if zero else number
            states[j] = state if zero else after
    for x in lanes:
        if x != np.uint32(65536):
            return False
    return at == count and (bit + 7) >> 3 == raw_bytes
