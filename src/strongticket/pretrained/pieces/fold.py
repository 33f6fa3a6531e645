"""The two pruned factors of a piece multiplied out."""

import numpy as np
from scipy.sparse import csr_array

from strongticket.pretrained.pieces.cut import Piece
from strongticket.ticket import Ticket


def fold(piece: Piece, ticket: Ticket, threads: int | None = None) -> np.ndarray:
    """The numbers that stand at `piece.place` of the matrix, float64."""
    left, right = (ticket.weights(name, threads=threads).astype(np.float64) for name in piece.shapes)
    numbers: np.ndarray = csr_array(left) @ right.T  # a unit serves few rows: nearly all of left is zeros
    return numbers.T if piece.transposed else numbers
