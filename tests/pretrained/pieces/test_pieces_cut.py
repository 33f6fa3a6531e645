"""Pieces from sizes alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strongticket.pretrained.pieces import Layout, cut


@given(
    rows=st.integers(1, 300),
    columns=st.integers(1, 5000),
    units=st.floats(1, 30),
    problems=st.integers(1, 10**6),
)
def test_pieces_cover_every_entry_once(rows, columns, units, problems):
    pieces = cut("p", rows, columns, Layout(units, problems))
    covered = np.zeros((rows, columns), int)
    for piece in pieces:
        covered[piece.place] += 1
        height = piece.stop - piece.start
        assert covered[piece.place].shape == ((columns, height)[::-1] if rows <= columns else (rows, height))
        assert piece.units >= round(units * height)
        assert 1 <= height <= 96
    assert (covered == 1).all()
    assert sum(piece.problems for piece in pieces) == rows * columns
    assert len({name for piece in pieces for name in piece.shapes}) == 2 * len(pieces)
