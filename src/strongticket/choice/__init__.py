"""Numbers -> choices -> numbers: every connection has many random weights, and the mask keeps one of them.

Connection (i, j) of the source has the random weights D_i·(v + u_ij), v = …, −1, 0, 1, …, with one offset u_ij,
uniform in (−½, ½), from the seed. Spacing is fixed and the offset random: subtractive dither (Roberts 1962; Ziv 1985).

- With one state, D = Δ and the nearest weight is kept: |W − Ŵ| ≤ Δ/2 (+ 2^-23·|Ŵ| in float32) for every target. Over
  the seed, errors are uniform, independent of the target and of each other, of root mean square Δ/√12.
- With S states, D = Δ/2, and the state of the column says whether an even or an odd v may be kept next (`trellis`).
  Then |W − Ŵ| ≤ Δ, and the root mean square error is GAIN[S]·Δ/√12 at the rate of one state: entropy-coded trellis
  quantisation (Fischer & Wang 1992), a tenth of a bit above the rate-distortion limit of normal numbers.
- Δ is a step times the root mean square of the row (`scales`). With `shrink` the stored unit is multiplied by
  a = <W, Ŵ> / <Ŵ, Ŵ>, worth 0.05 bits at 2 bits and nothing above 4; the bound grows by (1 − a)·|Ŵ| / a.

Choices are coded as tokens (`tokens`) with tables of whole frequencies (`tables`) by rANS, in blocks of whole rows
(`blocks`). Paths begin anew in every block, so that a reader may decode only the blocks of the rows it needs.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from strongticket import seeds
from strongticket.choice import blocks, reading
from strongticket.choice.feeding import feeding_factor as feeding_factor
from strongticket.choice.trellis import GAIN as GAIN
from strongticket.choice.trellis import STATES as STATES
from strongticket.choice.trellis import check_states
from strongticket.errors import TicketError

BLOCK = 1 << 19  # numbers of a block, about
STEPS = (2.0**-18, 16.0)  # the least and the greatest step


def row_blocks(shape: tuple[int, int]) -> list[range]:
    """The rows of each block: equal parts of about BLOCK numbers.

    >>> row_blocks((1000, 1024))
    [range(0, 500), range(500, 1000)]
    """
    rows, columns = shape
    parts = min(max(1, round(rows * columns / BLOCK)), max(rows, 1))
    ends = [rows * part // parts for part in range(parts + 1)]
    return [range(*pair) for pair in pairwise(ends)]


def encode_rows(
    rows: np.ndarray,
    first: int,
    seed: int,
    name: str,
    step: float,
    states: int = 8,
    shrink: bool = False,
    factor: np.ndarray | None = None,
) -> bytes:
    """Code one block of a tensor.

    Args:
        rows: float32 (rows, columns).
        first: number of the tensor's first row in the block.
        seed: of the random weights.
        name: of the tensor.
        step: Δ over the root mean square.
        states: of the trellis, of STATES.
        shrink: whether to multiply what is read by the factor of least square error.
        factor: of `feeding_factor`: feed errors forward.
    """
    check_states(states)
    offsets = _offsets(seed, name, first, rows.shape)
    return blocks.encode(blocks.choose(rows, step, offsets, states, shrink, factor))


def encode(
    matrix: np.ndarray,
    seed: int,
    name: str,
    step: float,
    states: int = 8,
    shrink: bool = False,
    factor: np.ndarray | None = None,
) -> list[bytes]:
    """Code a matrix (or a vector, as one column): its blocks.

    >>> matrix = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    >>> [len(block) for block in encode(matrix, seed=0, name="w", step=0.01)]
    [56]
    """
    matrix = as_columns(matrix)
    return [
        encode_rows(matrix[rows.start : rows.stop], rows.start, seed, name, step, states, shrink, factor)
        for rows in row_blocks(matrix.shape)
    ]


def decode(coded: Sequence[bytes], seed: int, name: str, shape: tuple[int, int]) -> np.ndarray:
    """The numbers of a matrix, float32; TicketError if the blocks are not those of such a matrix."""
    out = np.empty(shape, np.float32)
    columns = as_columns(out)
    ranges = row_blocks(columns.shape)
    if len(coded) != len(ranges):
        raise TicketError(f"{len(coded)} blocks of choices: expected {len(ranges)}")
    for block, rows in zip(coded, ranges, strict=True):
        decode_rows(block, rows.start, seed, name, columns[rows.start : rows.stop])
    return out


def decode_rows(block: bytes, first: int, seed: int, name: str, out: np.ndarray) -> None:
    """Fill `out`, the rows of one block; `first` is the number of its first row."""
    reading.decode(block, _offsets(seed, name, first, out.shape), out)


def cost(matrix: np.ndarray, seed: int, name: str, step: float, states: int = 8) -> float:
    """Bits that `encode` will take for a matrix of at most one block, before anything is coded."""
    check_states(states)
    matrix = as_columns(matrix)
    return blocks.choose(matrix, step, _offsets(seed, name, 0, matrix.shape), states, False).bits


def as_columns(matrix: np.ndarray) -> np.ndarray:
    """A row as a column, for paths run down the columns; anything else as it is."""
    return matrix.reshape(-1, 1) if len(matrix) == 1 else matrix


def _offsets(seed: int, name: str, first: int, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = shape
    return seeds.offsets(seed, name, first * columns, rows * columns).reshape(shape)
