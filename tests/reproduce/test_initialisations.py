"""Initialisations: tuning and calibration, the deviation of the weights, and the share that properties predict."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.reproduce.initialisations import (
    INITIALISATIONS,
    STUDY,
    answer,
    configured,
    predicted_share,
    predictors,
    weight_std,
)
from strongticket.searching import Scheme, prepare_parameters

SETTINGS = TINY["initialisations"]


def test_every_case_is_tuned_and_calibrated(tmp_path):
    numbers = reproduce(tmp_path, "initialisations")["numbers"]
    rows, tuning = (read_csv(tmp_path / "initialisations" / f"{name}.csv") for name in ("losses", "tuning"))
    assert (len(rows), len(tuning)) == (4, 4 * len(SETTINGS.rates))
    for row in rows:
        same = [
            float(each["loss"])
            for each in tuning
            if all(each[name] == row[name] for name in ("data", "initialisation", "scaling"))
        ]
        assert float(row["loss"]) == min(same)  # one seed: that of the tuning
        if row["scaling"] == "calibrated":
            assert float(row["logit_std"]) == pytest.approx(0.7, rel=0.05)
    assert numbers["images"]["best"]["mean"] == min(float(row["loss"]) for row in rows)
    assert numbers["rates_at_an_end"] == 4  # there are only two


@pytest.mark.parametrize("name", INITIALISATIONS)
def test_the_deviation_of_an_initialisation_is_that_of_its_weights(name):
    config = configured(STUDY.settings["laptop"], "images", name, "1")
    linear = torch.nn.Linear(config.model.dim, config.model.dim)
    scheme = Scheme(
        config.source.init, config.source.std, law="" if config.source.law == "normal" else config.source.law
    )
    prepare_parameters(linear, scheme=scheme, qk_scale=1, train=["*"])
    assert float(linear.weight.detach().std()) == pytest.approx(weight_std(config), rel=0.1)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(8, 20))
def test_left_out_errors_follow_from_the_hat_matrix(seed, properties, cases):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(cases, properties))
    y = x @ generator.normal(size=properties) + generator.normal(size=cases)
    design = np.column_stack([np.ones(cases), x])
    hat = design @ np.linalg.inv(design.T @ design) @ design.T
    errors = (y - hat @ y) / (1 - np.diag(hat))
    deviations = (y - y.mean()) * cases / (cases - 1)
    share, low, high = predicted_share(x, y).values()
    assert share == pytest.approx(1 - np.square(errors).sum() / np.square(deviations).sum(), abs=1e-9)
    assert low < high <= 1


def test_a_property_that_says_nothing_predicts_nothing():
    generator = np.random.default_rng(0)
    features, losses = generator.normal(size=(60, 1)), generator.normal(size=60)
    share, low, high = predicted_share(features, losses).values()
    assert low < share < 0.1
    assert low < 0
    assert high < 0.5


def cases(loss):
    """Eighteen cases of text. loss: (law, logits' standard deviation) -> loss"""
    return [
        dict(data="text", initialisation=name, scaling=scaling, law=changes["law"], logit_std=logit_std)
        | dict(std_of_weights=0.1 + 0.01 * number, mean=loss(changes["law"], logit_std), std=0.0, rate=1e-3)
        for number, (name, changes) in enumerate(INITIALISATIONS.items())
        for scaling, logit_std in (("1", 0.1), ("paper", 0.4 + 0.1 * number), ("calibrated", 0.7))
    ]


@pytest.mark.parametrize(
    ("loss", "best", "apart"),
    [
        (lambda law, logits: 2 + len(law), "law", "2.000"),
        (lambda law, logits: 2 + np.log(logits / 0.7) ** 2, "logits", "0.000"),
    ],
)
def test_the_best_predictor_is_named(loss, best, apart):
    rows = cases(loss)
    properties = [{"data": "text"} | row for row in predictors(rows)]
    tables = {"cases": rows, "losses": [], "tuning": [], "properties": properties}
    laptop = STUDY.settings["laptop"]
    found = answer(tables, replace(laptop, data={"text": laptop.data["text"]}))
    assert f"the best single predictor of the loss is the {best};" in found.sentence
    assert f"{best} 100% (100% to 100%)" in found.sentence
    assert f"{apart} apart unscaled and {apart} with logits' std 0.7" in found.sentence
    assert found.table == rows
