"""The lowest point of a valley and the rules for it, on valleys whose answer is known; the study of images."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.reproduce.rows import spreads
from strongticket.reproduce.valley import RULES, Valley, answer, lowest, typical_factor
from strongticket.searching import search

SCALES = [2 ** (k / 2) for k in range(7)]
SETTINGS = replace(TINY["images"], scales=tuple(SCALES))


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
    assert not made(20).row()["best_is_inside"]
    assert made(2).row()["best_is_inside"]


def test_what_a_valley_shows():
    valley = made(math.sqrt(8), seeds=(-0.01, 0.0, 0.01))
    assert valley.stds == pytest.approx([0.01] * 7)
    assert RULES["paper"](valley) == pytest.approx(math.sqrt(8))
    assert RULES["logits"](valley) == pytest.approx(math.sqrt(0.7 / 0.0875))
    assert valley.scale_for(0.0875) == pytest.approx(1)
    assert valley.best_logit_std == pytest.approx(0.7)
    assert valley.loss_at(4) == pytest.approx(valley.means[4])
    assert valley.loss_at(100) == valley.means[-1]
    assert valley.cost(SCALES[3]) == 0
    assert valley.cost(4) == pytest.approx(0.1 * math.log(math.sqrt(2)) ** 2)
    assert [point["above"] for point in valley.points()] == pytest.approx([valley.cost(s) for s in SCALES])


def test_how_far_scales_are_from_the_best():
    valleys = [made(2), made(2)]
    assert typical_factor(valleys, [2, 2]) == pytest.approx(1)
    assert typical_factor(valleys, [4, 1]) == pytest.approx(2)
    assert typical_factor(valleys, [2, 4]) == pytest.approx(math.exp(math.log(2) / math.sqrt(2)))


def tables_of(best, spread):
    """What `measure` would return: a parabola, two seeds that differ, and dense training."""
    rows = [
        {"scale": s, "loss": 1 + 0.1 * math.log(s / best) ** 2 + shift, "logit_std": 0.175 * s**2}
        for shift in (-spread, spread)
        for s in SCALES
    ]
    dense = [{"scale": None, "loss": 0.5, "logit_std": None}]
    found = [row | {"accuracy": 0.5, "seed": 0, "cpu_seconds": 2.0} for row in [*rows, *dense]]
    return {"losses": found, "spreads": spreads(found, ("scale",), ("loss", "accuracy"))}


@pytest.mark.parametrize(
    ("best", "spread", "said"),
    [
        (2.0, 0.01, "Yes, scaling queries and keys lowers the loss by 0.048; the best scale is 2.00"),
        (2.0, 0.1, "No, scaling queries and keys changes the loss by less than its spread over seeds"),
        (0.5, 0.01, "No, scaling queries and keys changes the loss by less than its spread over seeds"),
    ],
)
def test_the_answer_says_whether_scaling_helps(best, spread, said):
    found = answer(tables_of(best, spread), SETTINGS)
    assert said in found.sentence
    assert found.numbers["dense"] == {"loss": 0.5, "accuracy": 0.5}
    assert found.numbers["cpu_seconds"] == 2.0 * 15


def test_the_answer_says_what_the_rules_cost():
    """n_K^¼ = 4^¼ is at a scale of the grid, the logits' deviation is 0.7 at the lowest point."""
    found = answer(tables_of(2.0, 0.0), SETTINGS)
    assert "standard deviation is 0.70; n_K^¼ costs 0.012 and the logit rule 0.000" in found.sentence
    assert [(line["scale"], line["error"]) for line in found.table][-2:] == [
        (None, "loss"),
        (None, "accuracy"),
    ]


@pytest.mark.slow
def test_a_row_is_the_search_or_training_it_names(tmp_path):
    settings = TINY["images"]
    reproduce(tmp_path, "images")
    rows = {(row["scale"], int(row["seed"])): row for row in read_csv(tmp_path / "images" / "losses.csv")}
    assert len(rows) == settings.seeds * (len(settings.scales) + 1)
    config = settings.config.changed(seed=1, cpu=True, cache=str(tmp_path))
    dense = config.changed(method="dense", qk_scale=1.0, lr=config.training.lr / 3, lr_end=0.0)
    for scale, wanted in (("2.0", config.changed(qk_scale=2.0)), ("", dense)):
        found, row = search(wanted), rows[scale, 1]
        assert float(row["loss"]) == pytest.approx(found.loss, rel=1e-5)
        assert float(row["accuracy"]) == pytest.approx(found.measures["accuracy"])
        assert int(row["nonzero"]) == found.kept
    assert rows["", 1]["nonzero"] == rows["", 1]["parameters"]
