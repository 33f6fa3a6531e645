"""Whole numbers as tokens and raw bits, the way JPEG XL codes integers: no number is out of range.

Token 0 is an exact zero of the target, 1 is k = 0. A k of size m from 1 to 7 is token 2m, plus 1 if it is positive.
Above, every octave [2^p, 2^(p+1)) has four parts of each sign: token 16 + 2·(4·(p − 3) + part) + (k > 0), and the
p − 2 bits below the part follow as they are.
"""

import numpy as np

from strongticket.compiled import kernel

ZERO = 0
COUNT = 16 + 8 * 26
LARGEST = 1 << 28  # number in spacings that a writer takes; tokens go on to 2^29


@kernel
def token(k):
    """(token, number of raw bits, which are the lowest of |k|)."""
    size, positive, bits = abs(k), np.int64(k > 0), 0
    while size >> (bits + 3):
        bits += 1
    if bits == 0:
        return max(2 * size + positive, 1), 0
    return 16 + 2 * (4 * (bits - 1) + ((size >> bits) & 3)) + positive, bits


@kernel
def least_size(token):
    """(|k| with raw bits of zero, number of raw bits) of a token above 0."""
    if token < 16:
        return token >> 1, 0
    bits, part = 1 + ((token - 16) >> 3), ((token - 16) >> 1) & 3
    return (4 + part) << bits, bits
