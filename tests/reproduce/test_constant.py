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
from strongticket.reproduce import constant
from strongticket.reproduce.constant import Constant, answer, points_of, smallest_per_row, trial_errors
from strongticket.reproduce.rows import select, upper_limit
from strongticket.subset_sum import solve
from strongticket.theory import (
    constants,
    lemmas,
    measured_constant,
    measured_units,
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
    assert smallest_per_row(wanted, 0.5, 1, solve) == smallest_per_row(wanted, 0.5, 1, every_subset)


@BOTH
def test_trying_the_largest_values_first_changes_no_failure(construction, monkeypatch):
    def failed(limit):
        errors = trial_errors(np.random.default_rng(2), construction, "ones", 2, 24, 40, solve, limit)
        return (errors > limit).any(1).tolist()

    whole = failed(0.01)
    monkeypatch.setattr(constant, "LARGEST", 5)
    assert failed(0.01) == whole
    assert 0 < sum(whole) < 40


def test_a_source_that_fails_as_often_as_epsilon_is_taken_as_seldom_as_stated():
    """Every width fails with probability ε: the scan must go on, but for once in twenty times."""
    epsilon, rng = 0.3, np.random.default_rng(7)

    def coin(values, targets, *, tolerance=None):
        return SimpleNamespace(errors=np.where(rng.random(len(targets)) < epsilon, 1.0, 0.0))

    stopped = 0
    for _ in range(300):
        wanted = point(SMALL, construction="product", targets="entries", dim=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(constant, "MOST_UNITS", 20)
            try:
                smallest_per_row(wanted, epsilon, 1, coin)
                stopped += 1
            except StrongTicketError:
                pass
    assert stopped <= 0.05 * 300 + 12


def test_the_stored_table_is_what_its_settings_give():
    summary = json.loads(files("strongticket.theory").joinpath(constants.TABLE).read_text())
    assert summary["command"] == "strongticket reproduce constant"
    settings = Constant(**{k: tuple(v) if isinstance(v, list) else v for k, v in summary["settings"].items()})
    (section,) = select(measurements()["sections"], construction="product", targets="entries")
    wanted, stored = (
        point(settings, construction="product", targets="entries", dim=2),
        select(section["cells"], dim=2),
    )
    again = smallest_per_row(wanted, 0.2, stored[0]["per_row"], solve)
    assert [{"dim": 2, **again}] == select(stored, epsilon=0.2)


def test_theory_reads_what_the_study_writes(tmp_path, monkeypatch):
    reproduce(tmp_path, "constant")
    folder = tmp_path / "constant"
    monkeypatch.setattr(constants, "TABLE", str(folder / "summary.json"))
    measurements.cache_clear()
    try:
        cells, errors = read_csv(folder / "cells.csv"), read_csv(folder / "errors.csv")
        assert len(cells) == 2 * 5 * 2 * 2
        assert len(errors) == 2 * 2 * 2 * 3
        for construction, targets in itertools.product(("product", "relu"), get_args(Targets)):
            rows = select(cells, construction=construction, targets=targets)
            largest = max(float(row["per_row"]) / float(row["log_argument"]) for row in rows)
            assert measured_constant(construction, targets) == largest
            line = constants.measurements()["lines"][construction]
            assert all(
                float(row["per_row"]) <= line["slope"] * float(row["log_argument"]) + line["offset"] + 1e-9
                for row in rows
            )
        (row,) = select(errors, construction="relu", targets="entries", dim="2", per_row="8")
        found = predicted_error(8, dim=2, construction="relu", targets="entries")
        assert found.median == pytest.approx(float(row["median"]))
        assert found.maximum == pytest.approx(float(row["maximum"]))
    finally:
        measurements.cache_clear()


def test_the_answer_names_the_cell_that_decides_and_a_line_that_covers_all():
    cells = [
        dict(construction=construction, targets=targets, dim=dim, epsilon=0.5, per_row=n, log_argument=log)
        for construction in ("product", "relu")
        for targets, ns in (("entries", (2, 3, 7)), ("ones", (4, 5, 9)))
        for dim, n, log in zip((1, 2, 3), ns, (1.0, 2.0, 3.0), strict=True)
    ]
    found = answer({"cells": cells, "errors": []}, SMALL)
    assert (
        "is 4.00 for products (2.33 if entries are uniform) and 4.00 for ReLU pairs (2.33" in found.sentence
    )
    assert "the lines that do are 2.50·log + 1.5 for products" in found.sentence
    assert [row["at d"] for row in found.table] == [3, 1, 3, 1]
    (section,) = select(found.numbers["sections"], construction="relu", targets="ones")
    assert section["constant"] == 4
    assert section["cells"][1] == dict(dim=2, epsilon=0.5, per_row=5, log_argument=2.0)
    line = found.numbers["lines"]["relu"]
    assert line["slope"] == pytest.approx(2.5)
    assert line["fitted_offset"] == pytest.approx(1.0)
    low, high = line["slope_interval"]
    assert low < 2.5 < high


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
        assert cell["per_row"] <= measured_units(cell["log_argument"], construction) + 1e-9
        # Clopper and Pearson, each test of a width twice as sure as the one before.
        limit = upper_limit(cell["failures"], cell["trials"], 1 - 0.05 / 2 ** cell["tests"])
        assert limit < cell["epsilon"]
    assert constant <= measured_constant(construction)


def test_lemma_7_holds_at_the_measured_units():
    epsilon, d1, d2, rng = 0.2, 3, 5, np.random.default_rng(11)
    per_row = product_width(epsilon, d1, d2).per_row
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

    with pytest.raises(StrongTicketError, match=r"no n' up to 300 succeeds for dim=1, epsilon=0\.5"):
        smallest_per_row(point(SMALL, construction="product", targets="entries", dim=1), 0.5, 1, useless)


def test_predictions_name_what_is_wrong():
    with pytest.raises(StrongTicketError, match="per_row=0"):
        predicted_error(0)
