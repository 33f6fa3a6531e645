"""Random bits -> weights of each law but the normal one, which has its own file.

Kernels here use only + - * / and sqrt, which IEEE 754 rounds in one way, and no fastmath, without which LLVM never
fuses a multiply and an add. libm's log and erfinv differ in their last bits between machines.
"""

import numpy as np

from strongticket.compiled import njit

kernel = njit(nogil=True, cache=True, error_model="numpy")


@kernel
def uniform(bits: np.ndarray, step: np.float32, out: np.ndarray) -> None:
    """Top 24 bits k -> (2k + 1 - 2^24) * step: the integer is exact in float32, the product rounds once."""
    for i in range(bits.size):
        out[i] = np.float32(np.int32((bits[i] >> 7) | 1) - np.int32(1 << 24)) * step


@kernel
def one_sided(bits: np.ndarray, step: np.float32, out: np.ndarray) -> None:
    """Top 23 bits k -> (2^23 + k) * step: the integer is exact in float32, the product rounds once."""
    for i in range(bits.size):
        out[i] = np.float32((1 << 23) | (bits[i] >> 9)) * step


@kernel
def signed(bits: np.ndarray, magnitude: np.float32, out: np.ndarray) -> None:
    """The top bit: 1 is plus, as in the other laws."""
    for i in range(bits.size):
        out[i] = magnitude if bits[i] >> 31 else -magnitude


@kernel
def hadamard(
    out: np.ndarray,
    first: int,
    magnitude: np.float32,
    columns: int,
    is_tall: bool,
    n: int,
    longer: np.ndarray,
    shorter: np.ndarray,
) -> None:
    """Plus if an even number of these is 1: a Hadamard matrix's entry, the longer side's sign, the block's."""
    for i in range(out.size):
        row, column = divmod(first + i, columns)
        long, short = (row, column) if is_tall else (column, row)
        common = (long % n) & short
        parity = longer[long] ^ shorter[long // n, short]
        while common:
            parity ^= 1
            common &= common - 1
        out[i] = -magnitude if parity else magnitude
