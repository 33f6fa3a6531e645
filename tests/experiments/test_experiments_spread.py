"""Spreads over sources, against numpy and by hand."""

import numpy as np
import pytest

from strongticket.experiments.spread import select, spread, spreads


def test_spread():
    found = spread(list(np.arange(11.0)))
    assert found["median"] == found["mean"] == 5
    assert (found["low"], found["high"]) == (1, 9)
    assert found["std"] == pytest.approx(np.std(np.arange(11), ddof=1))
    assert found["count"] == 11


ROWS = [
    {"line": "a", "n": 4, "error": 1.0, "bound": 2.0},
    {"line": "a", "n": 4, "error": None, "bound": None},
    {"line": "b", "n": 4, "error": 5.0, "bound": 6.0},
]


def test_groups_keep_their_order_and_name_their_column():
    found = spreads(ROWS, ("line", "n"), ("error", "bound"), skip_gaps_in=("error",))
    assert [(row["line"], row["error"], row["mean"], row["count"]) for row in found] == [
        ("a", "error", 1.0, 1),
        ("b", "error", 5.0, 1),
        ("b", "bound", 6.0, 1),
    ]


def test_a_group_of_gaps_has_no_spread():
    assert spreads(ROWS[1:2], ("line",), ("error",), skip_gaps_in=("error",)) == []


def test_select_asks_for_every_column():
    assert select(ROWS, line="a", error=None) == [ROWS[1]]
    with pytest.raises(KeyError):
        select(ROWS, width=4)
