"""Pieces from sizes and layout alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.pretrained.pieces import FEW_UNITS, Layout, cut, rows_apart


@given(
    rows=st.integers(1, 300),
    columns=st.integers(1, 5000),
    units=st.floats(1, 30),
    problems=st.integers(1, 10**6),
    apart=st.sets(st.integers(0, 299)),
)
def test_pieces_cover_every_entry_once(rows, columns, units, problems, apart):
    alone = sorted(row for row in apart if row < min(rows, columns))
    pieces = cut("p", rows, columns, Layout(units, problems, apart=tuple(alone)))
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
    assert {piece.start for piece in pieces if piece.stop - piece.start == 1} >= set(alone)


def test_rows_apart_must_be_rows():
    with pytest.raises(StrongTicketError, match="the matrix has 20 rows"):
        cut("w", 20, 100, Layout(apart=(20,)))
    for wrong in ((1, 1), (2, 1), (-1,), ("1",), 3):
        with pytest.raises(StrongTicketError, match="apart must be"):
            Layout(apart=wrong)
    with pytest.raises(StrongTicketError, match="paper's source"):
        Layout(paper=True, apart=(1,))


def test_rows_with_far_larger_numbers_are_apart():
    target = np.random.default_rng(0).normal(size=(384, 1536))
    assert rows_apart(target, Layout(8.5)) == ()
    target[99, 7], target[223, 1000] = 150, -40
    assert rows_apart(target, Layout(8.5)) == (99, 223)
    assert rows_apart(target * 1e-30, Layout(8.5)) == (99, 223)
    assert rows_apart(target, Layout(FEW_UNITS)) == ()  # nothing to win
    assert rows_apart(np.zeros((384, 5)), Layout(8.5)) == ()
    target[:, 0] = 150  # in every row: none is worth its bits
    assert rows_apart(target, Layout(8.5)) == ()
