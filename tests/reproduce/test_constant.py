"""The measured constant: what the table says is what measuring gives, and what it promises holds."""

import itertools
import json
import math
from importlib.resources import files
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.errors import StrongTicketError
from strongticket.reproduce.constant import Constant, answer, points_of, smallest_per_row, trial_errors
from strongticket.reproduce.rows import select
from strongticket.subset_sum import solve
from strongticket.theory import (
    constants,
    lemmas,
    measured_constant,
    measurements,
    predicted_error,
    product_width,
)
from strongticket.theory.constants import Targets

SMALL = TINY["constant"]
BOTH = pytest.mark.parametrize("construction", ["product", "relu"])
ALL_TARGETS = pytest.mark.parametrize("targets", get_args(Targets))


def every_subset(values, targets, *, tolerance=None):
    """The slow and sure solver: all 2^n sums."""
    n = values.shape[1]
    subsets = np.array(list(itertools.product([0, 1], repeat=n)), float).reshape(2**n, n)
    return SimpleNamespace(errors=np.abs(values @ subsets.T - targets[:, None]).min(1))


def point(settings, **wanted):
    (found,) = select(points_of(settings, 0), **wanted)
    return found


@BOTH
@ALL_TARGETS
def test_errors_are_the_same_by_any_exact_solver(construction, targets):
    ours, sure = (
        trial_errors(np.random.default_rng(1), construction, targets, 2, 8, 5, solver, None)
        for solver in (solve, every_subset)
    )
    assert ours.shape == (5, 4 if construction == "product" else 8)
    # float64 sums in another order: equal but for their last digits
    assert ours == pytest.approx(sure, rel=1e-6, abs=1e-15)


@BOTH
def test_the_smallest_width_is_the_same_by_any_exact_solver(construction):
    wanted = point(SMALL, construction=construction, targets="norm", dim=1)
    assert smallest_per_row(wanted, solve) == smallest_per_row(wanted, every_subset)


def test_the_stored_table_is_what_its_settings_give():
    summary = json.loads(files("strongticket.theory").joinpath(constants.TABLE).read_text())
    assert summary["command"] == "strongticket reproduce constant"
    settings = Constant(**{k: tuple(v) if isinstance(v, list) else v for k, v in summary["settings"].items()})
    (section,) = select(measurements()["sections"], construction="product", targets="entries")
    again = smallest_per_row(point(settings, construction="product", targets="entries", dim=2), solve)
    assert [{"dim": 2, **cell} for cell in again] == select(section["cells"], dim=2)


def test_theory_reads_what_the_study_writes(tmp_path, monkeypatch):
    reproduce(tmp_path, "constant")
    folder = tmp_path / "constant"
    monkeypatch.setattr(constants, "TABLE", str(folder / "summary.json"))
    measurements.cache_clear()
    try:
        cells, errors = read_csv(folder / "cells.csv"), read_csv(folder / "errors.csv")
        assert len(cells) == 2 * 5 * 2
        assert len(errors) == 2 * 2 * 2 * 3
        for construction, targets in itertools.product(("product", "relu"), get_args(Targets)):
            rows = select(cells, construction=construction, targets=targets)
            largest = max(float(row["per_row"]) / float(row["log_argument"]) for row in rows)
            assert measured_constant(construction, targets) == largest
        (row,) = select(errors, construction="relu", targets="entries", dim="2", per_row="8")
        found = predicted_error(8, dim=2, construction="relu", targets="entries")
        assert found.median == pytest.approx(float(row["median"]))
        assert found.maximum == pytest.approx(float(row["maximum"]))
    finally:
        measurements.cache_clear()


def test_the_answer_names_the_cell_that_decides():
    cells = [
        dict(construction=construction, targets=targets, dim=dim, epsilon=0.5, per_row=n, log_argument=log)
        for construction in ("product", "relu")
        for targets, ns in (("entries", (2, 3)), ("ones", (4, 5)))
        for dim, n, log in zip((1, 2), ns, (1.0, 2.0), strict=True)
    ]
    found = answer({"cells": cells, "errors": []}, SMALL)
    assert (
        "is 4.00 for products (2.00 if entries are uniform) and 4.00 for ReLU pairs (2.00" in found.sentence
    )
    assert [row["at d"] for row in found.table] == [1, 1, 1, 1]
    (section,) = select(found.numbers["sections"], construction="relu", targets="ones")
    assert section["constant"] == 4
    assert section["least_squares_constant"] == pytest.approx((4 * 1 + 5 * 2) / (1 + 4))
    assert section["cells"][1] == dict(dim=2, epsilon=0.5, per_row=5, log_argument=2.0)


@BOTH
@ALL_TARGETS
def test_the_constant_covers_every_cell(construction, targets):
    section = next(
        s for s in measurements()["sections"] if s["construction"] == construction and s["targets"] == targets
    )
    constant = measured_constant(construction, targets)
    for cell in section["cells"]:
        sums = cell["dim"] ** 2 * (2 if construction == "relu" else 1)
        assert cell["log_argument"] == pytest.approx(math.log(sums / cell["epsilon"]))
        assert cell["per_row"] <= constant * cell["log_argument"] * (1 + 1e-12)
        assert cell["failures"] < cell["failures_upper"] < cell["epsilon"]
    assert constant <= measured_constant(construction)
    assert section["least_squares_constant"] <= constant


def test_lemma_7_holds_at_the_measured_constant():
    epsilon, d1, d2, rng = 0.2, 3, 5, np.random.default_rng(11)
    per_row = product_width(epsilon, d1, d2, constant=measured_constant()).per_row
    trials, failed = 60, 0
    for _ in range(trials):
        u, v = rng.uniform(-1, 1, (1, d1, per_row)), rng.uniform(-1, 1, (d2, d1, per_row))
        solved = solve((u * v).reshape(-1, per_row), rng.uniform(-1, 1, d1 * d2))
        failed += solved.errors.max() > lemmas.weight_error(epsilon, d1, d2)
    assert failed <= epsilon * trials


@pytest.mark.parametrize("epsilon", [0.3, 0.1])
@pytest.mark.parametrize("target", [1.0, -1.0, 0.97])
def test_a_single_worst_entry_fails_less_often_than_epsilon(epsilon, target):
    per_row = product_width(epsilon, 1, 1).per_row
    rng = np.random.default_rng(5)
    values = rng.uniform(-1, 1, (2000, per_row)) * rng.uniform(-1, 1, (2000, per_row))
    errors = solve(values, np.full(2000, target), tolerance=epsilon).errors
    assert np.mean(errors > epsilon) < epsilon


def test_predictions_fall_with_width_and_meet_what_is_built():
    widths = [predicted_error(n, dim=8) for n in (6, 10, 14, 18, 22, 30)]
    assert all(a.median > b.median for a, b in itertools.pairwise(widths))
    assert all(w.median <= w.maximum for w in widths)
    assert predicted_error(10, dim=3) == predicted_error(10, dim=2)
    assert predicted_error(20, construction="relu").median > predicted_error(20).median

    rng = np.random.default_rng(3)
    target = rng.standard_normal((40, 8, 8))
    target /= np.linalg.norm(target, 2, axis=(1, 2))[:, None, None]
    values = rng.uniform(-1, 1, (40, 8, 1, 14)) * rng.uniform(-1, 1, (40, 8, 8, 14))
    errors = solve(values.reshape(-1, 14), target.reshape(-1)).errors.reshape(40, -1)
    assert predicted_error(14, dim=8).median == pytest.approx(np.median(errors), rel=0.2)
    assert 1 / 3 < predicted_error(14, dim=8).maximum / np.median(errors.max(1)) < 3


def test_a_solver_that_never_succeeds_is_reported():
    def useless(values, targets, *, tolerance=None):
        return SimpleNamespace(errors=np.ones(len(targets)))

    with pytest.raises(StrongTicketError, match=r"no n' up to 200 succeeds for dim=1, epsilon=0\.5"):
        smallest_per_row(point(SMALL, construction="product", targets="entries", dim=1), useless)


def test_predictions_name_what_is_wrong():
    with pytest.raises(StrongTicketError, match="per_row=0"):
        predicted_error(0)
