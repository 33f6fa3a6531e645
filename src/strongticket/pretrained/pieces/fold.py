"""The two pruned factors of a piece multiplied out."""

import numpy as np
from jaxtyping import Float64

from strongticket.compiled import njit
from strongticket.pretrained.pieces.cut import Piece
from strongticket.ticket import Ticket


def fold(piece: Piece, ticket: Ticket) -> Float64[np.ndarray, "rows columns"]:
    """The numbers that stand at `piece.place` of the matrix.

    Every entry is a sum in the order of the units, so that other languages can add up the same bits. A unit serves few
    rows: nearly all of the left factor is zeros, which are left out.
    """
    left, right = (ticket.weights(name, threads=1) for name in (piece.left, piece.right))
    rows, units = left.nonzero()
    starts = np.searchsorted(rows, np.arange(len(left) + 1))
    values = left[rows, units].astype(np.float64)
    block = np.empty((len(left), len(right)))
    _add_up(values, units, starts, right, block)
    return block.T if piece.transposed else block


@njit(nogil=True, error_model="numpy")
def _add_up(
    values: np.ndarray, units: np.ndarray, starts: np.ndarray, right: np.ndarray, block: np.ndarray
) -> None:
    """values, units: of the left factor's weights, row after row, from starts[row] to starts[row + 1]."""
    for column in range(block.shape[1]):
        for row in range(block.shape[0]):
            total = 0.0
            for at in range(starts[row], starts[row + 1]):
                total += values[at] * np.float64(right[column, units[at]])
            block[row, column] = total
