"""Random bits -> weights of each law but the normal one, which has its own file.

Kernels here use only + - * / and sqrt, which IEEE 754 rounds in one way, and no fastmath, without which LLVM never
fuses a multiply and an add. libm's log and erfinv differ in their last bits between machines.
"""

import numpy as np

from strongticket.compiled import kernel


@kernel
def uniform(bits: np.ndarray, step: np.float32, out: np.ndarray) -> None:
    """Top 24 bits k -> (2k + 1 - 2^24) * step: the integer is exact in float32, the product rounds once."""
    for i in range(bits.size):
        out[i] = np.float32(np.int32((bits[i] >> 7) | 1) - np.int32(1 << 24)) * step


@kernel
def signed(bits: np.ndarray, magnitude: np.float32, out: np.ndarray) -> None:
    """The top bit: 1 is plus, as in the other laws."""
    for i in range(bits.size):
        out[i] = magnitude if bits[i] >> 31 else -magnitude


@kernel
def hadamard(
    out: np.ndarray,
    first: int,
    magnitude: np.uint32,
    columns: int,
    is_tall: bool,
    n: int,
    longer: np.ndarray,
    shorter: np.ndarray,
) -> None:
    """Plus if an even number of these is 1: a Hadamard matrix's entry, the longer side's sign, the block's.

    `out` and `magnitude` are the bits of float32 numbers, of which the sign is the highest. Runs of a row within one
    block need no division, so that several numbers are made at a time.
    """
    i = 0
    while i < out.size:
        row, column = divmod(first + i, columns)
        run = min(columns - column, out.size - i)
        if is_tall:
            common, inside = np.uint32(row % n), column
            sign, signs = longer[row], shorter[row // n, column:]
        else:
            block, inside = divmod(column, n)
            run = min(run, n - inside)
            common, sign, signs = np.uint32(row), shorter[block, row], longer[column:]
        for k in range(run):
            parity = _parity(common & np.uint32(inside + k)) ^ sign ^ signs[k]
            out[i + k] = magnitude | (parity << np.uint32(31))
        i += run


@kernel
def _parity(x: np.uint32) -> np.uint32:
    """1 if an odd number of bits is 1."""
    x ^= x >> np.uint32(16)
    x ^= x >> np.uint32(8)
    x ^= x >> np.uint32(4)
    x ^= x >> np.uint32(2)
    x ^= x >> np.uint32(1)
    return x & np.uint32(1)
