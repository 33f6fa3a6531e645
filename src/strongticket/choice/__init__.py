"""Numbers -> choices -> numbers: every connection has many random weights, and the mask keeps one of them.

Connection (i, j) of the source has the random weights D_i·(v + u_ij), v = …, −1, 0, 1, …, with one offset u_ij,
uniform in (−½, ½), from the seed. Spacing is fixed and the offset random: subtractive dither (Roberts 1962; Ziv 1985).

- With one state, D = Δ and the nearest weight is kept: |W − Ŵ| ≤ Δ/2 (+ 2^-23·|Ŵ| in float32) for every target. Over
  the seed, errors are uniform, independent of the target and of each other, of root mean square Δ/√12.
- With S states, D = Δ/2, and the state of the column says whether an even or an odd v may be kept next (`trellis`).
  Then |W − Ŵ| ≤ Δ, and the root mean square error is GAIN[S]·Δ/√12 at the rate of one state: entropy-coded trellis
  quantisation (Fischer & Wang 1992), a tenth of a bit above the rate-distortion limit of normal numbers.
- Δ is a step times the root mean square of the row (`scales`). With `shrink` the stored unit is multiplied by
  a = <W, Ŵ> / <Ŵ, Ŵ>, worth 0.05 bits at 2 bits and nothing above 4; the bound grows by (1 − a)·|Ŵ|.
- Exact zeros stay exact in rows of zeros, and in blocks where they are at least 2 % of the numbers; the others' Δ is
  then larger, so that the error of all is again the step's.

Choices are coded as tokens (`tokens`) with tables of whole frequencies (`tables`) by rANS, in blocks of whole rows
(`blocks`). Paths begin anew in every block, so that a reader may decode only the blocks of the rows it needs.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from strongticket import seeds
from strongticket.choice import blocks, reading
from strongticket.choice.blocks import Cost as Cost
from strongticket.choice.feeding import Feedback as Feedback
from strongticket.choice.scales import SMALLEST
from strongticket.choice.trellis import GAIN as GAIN
from strongticket.choice.trellis import STATES as STATES
from strongticket.choice.trellis import check_states as check_states
from strongticket.errors import StrongTicketError, TicketError

BLOCK = 1 << 19  # numbers that a block has at least, if the matrix has as many
LEAST_ROWS = 512  # and rows: every path begins at state 0, which costs 0.009 bits a weight with so many rows


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) of a tensor seen as a matrix: its axes are cut in two where that is most nearly square.

    One axis is one column. A convolution is nearly always its first axis × the rest; of stacked experts the first
    two axes × the last.

    >>> matrix_shape((64, 3, 7, 7)), matrix_shape((5,)), matrix_shape((8, 128, 64)), matrix_shape(())
    ((64, 147), (5, 1), (1024, 64), (1, 1))
    """
    if len(shape) < 2:
        return math.prod(shape), 1
    cuts = [(math.prod(shape[:i]), math.prod(shape[i:])) for i in range(1, len(shape))]
    rows, columns = min(cuts, key=lambda sides: max(sides))
    return (columns, 1) if rows == 1 else (rows, columns)


def row_blocks(matrix: tuple[int, int]) -> list[range]:
    """The rows of each block: as many equal parts as have BLOCK numbers and LEAST_ROWS rows.

    >>> row_blocks((1200, 1024))
    [range(0, 600), range(600, 1200)]
    """
    rows, columns = matrix
    parts = max(1, min(rows * columns // BLOCK, rows // LEAST_ROWS))
    ends = [rows * part // parts for part in range(parts + 1)]
    return [range(*pair) for pair in pairwise(ends)]


@dataclass(frozen=True)
class Choices:
    """The choices of a tensor, coded.

    Attributes:
        shape: of the tensor.
        blocks: bytes of each block of rows of its matrix.
        transposed: whether the matrix was transposed first, so that errors are fed forward along its rows.
    """

    shape: tuple[int, ...]
    blocks: tuple[bytes, ...]
    transposed: bool = False

    def __post_init__(self) -> None:
        if len(self.blocks) != len(self.rows()):
            raise TicketError(f"{len(self.blocks)} blocks of choices: expected {len(self.rows())}")

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns as they are coded."""
        rows, columns = matrix_shape(self.shape)
        return (columns, rows) if self.transposed else (rows, columns)

    def rows(self) -> list[range]:
        """The rows of each block."""
        return row_blocks(self.matrix)

    def tensor(self, matrix: np.ndarray) -> np.ndarray:
        """The matrix as it is coded -> the tensor."""
        return np.ascontiguousarray(matrix.T if self.transposed else matrix).reshape(self.shape)


def encode(
    tensor: np.ndarray,
    seed: int,
    name: str,
    step: float,
    states: int = 8,
    *,
    shrink: bool = False,
    transposed: bool = False,
    feedback: Feedback | None = None,
) -> Choices:
    """Code a float32 tensor; see `encode_rows`.

    >>> numbers = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    >>> coded = encode(numbers, seed=0, name="w", step=0.01)
    >>> float(np.abs(decode(coded, seed=0, name="w") - numbers).max()) < 0.01
    True
    """
    matrix = tensor.reshape(matrix_shape(tensor.shape))
    matrix = np.ascontiguousarray(matrix.T) if transposed else matrix
    coded = [
        encode_rows(matrix[rows.start : rows.stop], rows.start, seed, name, step, states, shrink, feedback)
        for rows in row_blocks(matrix.shape)
    ]
    return Choices(tensor.shape, tuple(coded), transposed)


def encode_rows(
    rows: np.ndarray,
    first: int,
    seed: int,
    name: str,
    step: float,
    states: int = 8,
    shrink: bool = False,
    feedback: Feedback | None = None,
) -> bytes:
    """Code one block of a tensor's matrix.

    Args:
        rows: float32 (rows, columns).
        first: number of the first of these rows in the matrix.
        seed: of the random weights.
        name: of the tensor.
        step: Δ over the root mean square.
        states: of the trellis, of STATES.
        shrink: whether to multiply what is read by the factor of least square error.
        feedback: feed errors forward from column to column.
    """
    offsets = _offsets(seed, name, first, rows)
    return blocks.encode(blocks.choose(rows, step, offsets, states, shrink, feedback))


def decode(choices: Choices, seed: int, name: str) -> np.ndarray:
    """The numbers of a tensor, float32; TicketError if the blocks are not those of such a tensor."""
    out = np.empty(choices.matrix, np.float32)
    for rows, data in zip(choices.rows(), choices.blocks, strict=True):
        decode_rows(data, rows.start, seed, name, out[rows.start : rows.stop])
    return choices.tensor(out)


def decode_rows(data: bytes, first: int, seed: int, name: str, out: np.ndarray) -> None:
    """Fill `out` with the numbers of a block whose first row has the number `first`."""
    reading.decode(data, _offsets(seed, name, first, out), out)


def bounds(choices: Choices) -> np.ndarray:
    """How far each number can be from its target, float64 of the tensor's shape: Δ/2 with one state, Δ with a trellis.

    For choices without `shrink` and without feedback; float32 adds 2^-23 times the number's own size. A number below
    the smallest spacing, 2^-126, may be in a row of zeros.
    """
    found = np.full(choices.matrix, SMALLEST)
    for rows, data in zip(choices.rows(), choices.blocks, strict=True):
        if data:
            read = reading.streams(data, (len(rows), choices.matrix[1]))
            spacings = read.spacings[:, None].astype(np.float64)
            found[rows.start : rows.stop] = np.maximum(spacings * (2.0 if read.code[0] else 0.5), SMALLEST)
    return choices.tensor(found)


def cost(rows: np.ndarray, seed: int, name: str, step: float, states: int = 8) -> Cost:
    """What `encode_rows` will take for the first rows of a matrix, before anything is coded."""
    return blocks.cost(blocks.choose(rows, step, _offsets(seed, name, 0, rows), states, shrink=False))


def _offsets(seed: int, name: str, first: int, matrix: np.ndarray) -> np.ndarray:
    """Of these rows, the first of which has the number `first`."""
    if matrix.dtype != np.float32 or matrix.ndim != 2:
        raise StrongTicketError(
            f"numbers of type {matrix.dtype} with {matrix.ndim} axes: expected float32 with 2",
            hint="Convert them by numbers.astype(np.float32).",
        )
    return seeds.offsets(seed, name, first * matrix.shape[1], matrix.size).reshape(matrix.shape)
