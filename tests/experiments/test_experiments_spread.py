"""Spreads over sources, against numpy and by hand."""

import numpy as np
import pytest
from scipy.stats import binom

from strongticket.experiments.spread import mean_interval, select, share, shares, spread, spreads


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


def test_share_is_clopper_and_pearson():
    """The ends are the probabilities at which so many hits, or so few, have the chance 2.5 %."""
    for hits, trials in ((3, 40), (0, 25), (25, 25)):
        found = share(hits, trials)
        assert found["share"] == hits / trials
        low, high = found["share_low"], found["share_high"]
        assert low == 0 if hits == 0 else binom.sf(hits - 1, trials, low) == pytest.approx(0.025)
        assert high == 1 if hits == trials else binom.cdf(hits, trials, high) == pytest.approx(0.025)


def test_shares_count_by_group():
    rows = [{"n": n, "bad": bad} for n, bad in ((4, True), (4, False), (8, False), (4, True))]
    found = shares(rows, ("n",), lambda row: row["bad"])
    assert [(row["n"], row["sources"], row["failed"]) for row in found] == [(4, 3, 2), (8, 1, 0)]
    assert found[0]["share_low"] < 2 / 3 < found[0]["share_high"]


def test_the_mean_lies_in_its_interval_as_often_as_promised():
    rng = np.random.default_rng(0)
    intervals = [mean_interval(spread(list(rng.exponential(2.0, 400)))) for _ in range(400)]
    assert 0.92 < np.mean([low <= 2 <= high for low, high in intervals]) < 0.98
    assert mean_interval({"mean": 0.1, "std": 10.0, "count": 4})[0] == 0
