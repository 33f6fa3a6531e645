"""Random offsets of choices: 16 bits each of Philox 4x32-10, the fastest of the generators that browsers run too."""

import numpy as np

from strongticket.compiled import kernel
from strongticket.seeds._draw import key

_PER_COUNTER = 8  # four words of 32 bits, two offsets each, the low half first


def offsets(seed: int, name: str, first: int, count: int) -> np.ndarray:
    """Offsets first, first + 1, … of a tensor, uint16: b stands for u = (2b + 1) / 2^17 − ½.

    >>> offsets(0, "w", 5, 3).tolist() == offsets(0, "w", 0, 8)[5:].tolist()
    True
    """
    counter, skip = divmod(first, _PER_COUNTER)
    out = np.empty((-(-(skip + count) // _PER_COUNTER), 4), "<u4")
    words = key(seed, name)[:1].view(np.uint32)
    _philox(words[0], words[1], counter, out)
    return out.view("<u2").reshape(-1)[skip : skip + count]


@kernel
def _philox(key0: np.uint32, key1: np.uint32, counter: int, out: np.ndarray) -> None:
    """Counter i is (i mod 2^32, i div 2^32, 0, 0); Salmon et al. 2011."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    keys0, keys1 = np.empty(10, np.uint64), np.empty(10, np.uint64)
    for r in range(10):
        keys0[r] = (np.uint64(key0) + np.uint64(r) * np.uint64(0x9E3779B9)) & low
        keys1[r] = (np.uint64(key1) + np.uint64(r) * np.uint64(0xBB67AE85)) & low
    many = 64  # counters side by side: the loops over them compile to vector instructions
    state = np.empty((4, many), np.uint64)
    a, b, c, d = state[0], state[1], state[2], state[3]
    for begin in range(0, out.shape[0], many):
        for i in range(many):
            at = np.uint64(counter + begin + i)
            a[i], b[i], c[i], d[i] = at & low, at >> half, np.uint64(0), np.uint64(0)
        for r in range(10):
            k0, k1 = keys0[r], keys1[r]
            for i in range(many):
                left, right = np.uint64(0xD2511F53) * a[i], np.uint64(0xCD9E8D57) * c[i]
                a[i] = (right >> half) ^ b[i] ^ k0
                b[i] = right & low
                c[i] = (left >> half) ^ d[i] ^ k1
                d[i] = left & low
        for i in range(min(many, out.shape[0] - begin)):
            for word in range(4):
                out[begin + i, word] = np.uint32(state[word, i])
