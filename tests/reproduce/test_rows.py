"""Spreads over sources and fits of decays, against NumPy, SciPy and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from strongticket.reproduce.rows import failures, fit_errors, fit_logs, select, spread, spreads

ROWS = [
    {"line": "a", "n": 4, "error": 1.0, "bound": 2.0},
    {"line": "a", "n": 4, "error": None, "bound": None},
    {"line": "b", "n": 4, "error": 5.0, "bound": 6.0},
]
N = [4, 8, 16, 24, 32]


def test_spread():
    found = spread(list(np.arange(11.0)))
    assert found["median"] == found["mean"] == 5
    assert (found["low"], found["high"]) == (1, 9)
    assert found["std"] == pytest.approx(np.std(np.arange(11), ddof=1))
    assert found["count"] == 11


def test_groups_keep_their_order_and_name_their_column():
    found = spreads(ROWS, ("line", "n"), ("error", "bound"))
    assert [(row["line"], row["error"], row["mean"], row["count"]) for row in found] == [
        ("a", "error", 1.0, 1),
        ("a", "bound", 2.0, 1),
        ("b", "error", 5.0, 1),
        ("b", "bound", 6.0, 1),
    ]


def test_a_group_of_gaps_has_no_spread():
    assert spreads(ROWS[1:2], ("line",), ("error",)) == []


def test_select_asks_for_every_column():
    assert select(ROWS, line="a", error=None) == [ROWS[1]]
    with pytest.raises(KeyError):
        select(ROWS, width=4)


def test_intervals_of_failures_are_clopper_and_pearsons():
    """The ends are the probabilities at which so many hits, or so few, have the chance 2.5 %."""
    for hits, trials in ((3, 40), (0, 25), (25, 25)):
        (found,) = failures(
            [{"n": 4, "bad": i < hits} for i in range(trials)], ("n",), lambda row: row["bad"]
        )
        assert found["share"] == hits / trials
        low, high = found["share_low"], found["share_high"]
        assert low == 0 if hits == 0 else binom.sf(hits - 1, trials, low) == pytest.approx(0.025)
        assert high == 1 if hits == trials else binom.cdf(hits, trials, high) == pytest.approx(0.025)


def test_failures_count_by_group():
    rows = [{"n": n, "bad": bad} for n, bad in ((4, True), (4, False), (8, False), (4, True))]
    found = failures(rows, ("n",), lambda row: row["bad"])
    assert [(row["n"], row["sources"], row["failed"]) for row in found] == [(4, 3, 2), (8, 1, 0)]
    assert found[0]["share_low"] < 2 / 3 < found[0]["share_high"]


@given(gamma=st.floats(1e-3, 1e3), delta=st.floats(0.01, 0.5))
def test_an_exact_decay_is_found_by_every_method(gamma, delta):
    errors = [gamma * math.exp(-delta * n) for n in N]
    for fit in (fit_errors(N, errors), fit_logs(N, errors), fit_logs(N, errors, delta)):
        assert fit.gamma == pytest.approx(gamma, rel=1e-5)
        assert fit.delta == pytest.approx(delta, rel=1e-5)
        assert fit.r2 == pytest.approx(1, abs=1e-6)
        assert fit(N) == pytest.approx(errors, rel=1e-4)


def test_log_fit_agrees_with_polyfit_and_sees_small_errors():
    rng = np.random.default_rng(0)
    errors = np.exp(-0.3 * np.array(N) + rng.normal(0, 0.5, len(N)))
    slope, offset = np.polyfit(N, np.log(errors), 1)
    fit = fit_logs(N, errors)
    assert (fit.delta, math.log(fit.gamma)) == pytest.approx((-slope, offset))
    spoiled = errors.copy()
    spoiled[-1] *= 100
    assert abs(fit_logs(N, spoiled).delta - fit.delta) > 0.05
    assert fit_errors(N, spoiled).delta == pytest.approx(fit_errors(N, errors).delta, abs=0.02)


def test_a_given_delta_has_the_r2_of_its_own_residuals():
    errors = [1.0, 0.3, 0.03, 0.004, 0.0003]
    fit = fit_logs(N, errors, 0.2)
    logs = np.log(errors)
    residual = logs - (math.log(fit.gamma) - 0.2 * np.array(N))
    assert residual.sum() == pytest.approx(0, abs=1e-12)
    assert fit.r2 == pytest.approx(1 - (residual**2).sum() / ((logs - logs.mean()) ** 2).sum())
