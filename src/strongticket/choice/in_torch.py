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
    if not data:
        out.zero_()
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
    values, are_zero = torch.empty_like(kinds), torch.empty_like(kinds, dtype=torch.bool)
    columns_in_turn = torch.arange(len(kinds), device=out.device) % columns
    states = torch.zeros(columns, dtype=torch.int64, device=out.device)
    at = bit = torch.zeros((), dtype=torch.int64, device=out.device)
    for begin in range(0, len(kinds), len(lanes)):
        some = slice(begin, begin + len(lanes))
        column = columns_in_turn[some]
        state, x = states[column], lanes[: len(column)]
        entry = table[kinds[some] | (state & read.by_parity) << 12 | x & 4095]
        x = (entry & 8191) * (x >> 12) + (entry >> 13 & 4095)
        more = (x < 1 << 16).long()
        place = (at + more.cumsum(0) - more).clamp(max=len(words) - 1)
        lanes[: len(column)] = torch.where(more > 0, x << 16 | words[place], x)
        at = at + more.sum()

        bits = entry >> 25 & 31
        start = bit + bits.cumsum(0) - bits
        place = (start >> 5).clamp(max=len(raw) - 2)
        low = (raw[place] | raw[place + 1] << 32) >> (start & 31) & (1 << bits) - 1
        bit = bit + bits.sum()

        size, zero, odd = (entry >> 32) + low, (entry >> 30 & 1) > 0, state & shift
        k = torch.where((entry >> 31 & 1) > 0, -size, size)
        values[some], are_zero[some] = (k << shift) + odd, zero
        states[column] = torch.where(zero, state, state >> 1 ^ odd * h0 ^ (k & 1) * h1)
    read.check_end(lanes.cpu().numpy(), int(at), int(bit))
    u = (2 * offsets - 65535).float() / 131072
    numbers = (values.reshape(-1, columns).float() + u) * spacings[on][:, None]
    out.zero_()
    out[on] = torch.where(are_zero.reshape(-1, columns), 0, numbers)
