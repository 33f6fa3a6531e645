"""The reader of blocks in torch, as vector operations over the coder's lanes: on any device, to the same bits.

Lanes are at most as many as columns. So of as many symbols in a row as there are lanes, none depends on another.
"""

import numpy as np
import torch
from torch import Tensor

from strongticket import seeds
from strongticket.choice.reading import streams


def decode_rows(data: bytes, first: int, seed: int, name: str, out: Tensor) -> None:
    """Fill `out`, float32 (rows, columns), with the numbers of a block; see `strongticket.choice.decode_rows`."""
    out.zero_()
    if not data:
        return
    rows, columns = out.shape

    def here(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(out.device)

    read = streams(data, (rows, columns))
    table, words, raw, lanes = map(here, (read.table, read.words, read.raw, read.lanes))
    shift, h0, h1 = read.code
    spacings = torch.from_numpy(read.spacings).to(out.device)
    on = spacings != 0
    offsets = here(seeds.offsets(seed, name, first * columns, rows * columns)).reshape(rows, columns)[on]
    kinds = offsets.reshape(-1) >> (16 - read.offset_bits) << (12 + read.by_parity)
    entries, parities = torch.empty_like(kinds), torch.zeros_like(kinds)
    column = torch.arange(len(kinds), device=out.device) % columns
    states = torch.zeros(columns, dtype=torch.int64, device=out.device)
    word = bit = torch.zeros((), dtype=torch.int64, device=out.device)  # how many were read

    for begin in range(0, len(kinds), len(lanes)):
        some = slice(begin, begin + len(lanes))
        state = states[column[some]]
        x = lanes[: len(state)]
        entry = entries[some] = table[kinds[some] | (state & read.by_parity) << 12 | x & 4095]
        x = (entry & 8191) * (x >> 12) + (entry >> 13 & 4095)
        more = x < 1 << 16
        ends = word + more.cumsum(0)
        lanes[: len(state)] = torch.where(more, x << 16 | words[(ends - 1).clamp(0, len(words) - 1)], x)
        word = ends[-1]
        if shift:
            bits = entry >> 25 & 31
            ends = bit + bits.cumsum(0)
            start = (ends - bits).clamp(max=32 * len(raw) - 1)
            k = torch.where(bits > 0, raw[start >> 5] >> (start & 31), entry >> 32)  # but for its higher bits
            bit = ends[-1]
            parities[some] = state & 1
            after = state >> 1 ^ (state & 1) * h0 ^ (k & 1) * h1
            states[column[some]] = torch.where((entry >> 30 & 1) > 0, state, after)

    bits = entries >> 25 & 31
    ends = bits.cumsum(0)
    read.check_end(lanes.cpu().numpy(), int(word), int(bits.sum()))
    place = (ends - bits) >> 5
    low = (raw[place] | raw[place + 1] << 32) >> (ends - bits & 31) & (1 << bits) - 1
    size = (entries >> 32) + low
    values = (torch.where((entries >> 31 & 1) > 0, -size, size) << shift) + parities
    u = (2 * offsets - 65535).float() / 131072
    numbers = (values.reshape(-1, columns).float() + u) * spacings[on][:, None]
    out[on] = torch.where((entries >> 30 & 1).reshape(-1, columns) > 0, 0, numbers)
