"""The lowest point of a valley and the rules for it, on valleys whose answer is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.experiments.tasks.valley import Valley, compare_rules, lowest

SCALES = [2 ** (k / 2) for k in range(7)]


def made(best, *, head_size=64, std=0.05, logit_at_1=0.0875, seeds=(0.0,), scales=SCALES):
    """A valley that is a parabola in log scale with its lowest point at `best`."""
    losses = [[1.9 + 0.1 * math.log(s / best) ** 2 + shift for shift in seeds] for s in scales]
    logits = [logit_at_1 * s**2 for s in scales]
    return Valley("v", head_size, std, head_size**0.25, scales, losses, logits)


@given(st.floats(1.2, 6.7), st.floats(0.01, 10), st.floats(-5, 5))
def test_the_lowest_point_of_a_parabola_is_found(best, curvature, height):
    losses = [height + curvature * math.log(s / best) ** 2 for s in SCALES]
    assert lowest(SCALES, losses) == pytest.approx(best, rel=1e-6)


def test_uneven_scales_and_ends():
    scales = [0.5, 1, 1.4, 3, 8]
    assert lowest(scales, [math.log(s / 1.7) ** 2 for s in scales]) == pytest.approx(1.7)
    assert lowest([1, 2, 4], [3.0, 2.0, 1.0]) == 4
    assert lowest([1, 2, 4], [1.0, 2.0, 3.0]) == 1
    assert lowest([1, 2, 4], [1.0, 1.0, 1.0]) == 1
    assert not made(20).is_inside
    assert made(2).is_inside


def test_what_a_valley_shows():
    valley = made(math.sqrt(8), seeds=(-0.01, 0.0, 0.01))
    assert valley.stds == pytest.approx([0.01] * 7)
    assert valley.rule("paper") == pytest.approx(math.sqrt(8))
    assert valley.rule("logits") == pytest.approx(math.sqrt(0.7 / 0.0875))
    assert valley.best_logit_std == pytest.approx(0.7)
    assert valley.gain_in_stds() == pytest.approx(0.1 * math.log(8) ** 2 / 4 / 0.01)
    assert valley.loss_at(4) == pytest.approx(valley.means[4])
    assert valley.loss_at(100) == valley.means[-1]
    assert made(2).gain_in_stds() is None


def test_each_rule_wins_where_it_is_right():
    sizes, stds = (16, 32, 64, 128), (0.035, 0.07)
    follows_paper = [made(n**0.25, head_size=n) for n in sizes]
    follows_paper += [made(64**0.25, std=s, logit_at_1=35 * s**2) for s in stds]
    rules = compare_rules(follows_paper)
    assert rules["paper"]["factor"] == pytest.approx(1)
    assert rules["paper"]["explained"] == pytest.approx(1)
    assert rules["logits"]["explained"] < 0
    assert rules["slopes"] == pytest.approx({"head_size": 0.25, "std": 0}, abs=1e-9)

    follows_logits = [made(math.sqrt(8), head_size=n) for n in sizes]
    follows_logits += [made(math.sqrt(0.7 / (35 * s**2)), std=s, logit_at_1=35 * s**2) for s in stds]
    rules = compare_rules(follows_logits)
    assert rules["logits"]["factor"] == pytest.approx(1)
    assert rules["slopes"] == pytest.approx({"head_size": 0, "std": -1}, abs=1e-9)
    assert rules["best_logit_std"] == pytest.approx({"lowest": 0.7, "highest": 0.7, "mean": 0.7})
    best = np.log([v.best_scale for v in follows_logits])
    assert rules["constant"]["factor"] == pytest.approx(math.exp(best.std()))


def test_a_valley_needs_its_points():
    with pytest.raises(StrongTicketError, match="2 scales, 1 losses and 2 standard deviations"):
        Valley("v", 64, 0.05, 2.83, [1, 2], [[1.0]], [0.1, 0.2])
