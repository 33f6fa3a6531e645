"""The measured constant: what the table says is what measuring gives, and what it promises holds."""

import itertools
import json
import math
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

from strongticket.builders.measure_constant import Settings, main, measure_constant, smallest_n_primes
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import solve
from strongticket.theory import lemmas, measured_constant, measurements, predicted_error, product_width
from strongticket.theory.constants import Targets

SMALL = Settings(dims=(1, 2), epsilons=(0.5,), trials=20, error_trials=2, error_n_primes=(2, 4, 6))


def every_subset(values, targets, *, tolerance=None):
    """The slow and sure solver: all 2^n sums."""
    n = values.shape[1]
    subsets = np.array(list(itertools.product([0, 1], repeat=n)), float).reshape(2**n, n)
    return SimpleNamespace(errors=np.abs(values @ subsets.T - targets[:, None]).min(1))


@pytest.mark.parametrize("construction", ["product", "relu"])
def test_the_smallest_width_is_the_same_by_any_exact_solver(construction):
    ours = smallest_n_primes(SMALL, construction, "norm", 1, solve)
    assert ours == smallest_n_primes(SMALL, construction, "norm", 1, every_subset)


def test_the_table_is_what_its_settings_give():
    table = measurements()
    settings = Settings(**{k: tuple(v) if isinstance(v, list) else v for k, v in table["settings"].items()})
    section = table["sections"][0]
    assert (section["construction"], section["targets"]) == ("product", "entries")
    again = smallest_n_primes(settings, "product", "entries", 2, solve)
    assert again == {
        c["epsilon"]: (c["n_prime"], c["failures"], c["failures_upper"])
        for c in section["cells"]
        if c["dim"] == 2
    }


@pytest.mark.parametrize("construction", ["product", "relu"])
@pytest.mark.parametrize("targets", get_args(Targets))
def test_the_constant_covers_every_cell(construction, targets):
    section = next(
        s for s in measurements()["sections"] if s["construction"] == construction and s["targets"] == targets
    )
    constant = measured_constant(construction, targets)
    for cell in section["cells"]:
        sums = cell["dim"] ** 2 * (2 if construction == "relu" else 1)
        assert cell["log_argument"] == pytest.approx(math.log(sums / cell["epsilon"]))
        assert cell["n_prime"] <= constant * cell["log_argument"] * (1 + 1e-12)
        assert cell["failures"] < cell["failures_upper"] < cell["epsilon"]
    assert constant <= measured_constant(construction)
    assert section["least_squares_constant"] <= constant


def test_lemma_7_holds_at_the_measured_constant():
    epsilon, d1, d2, rng = 0.2, 3, 5, np.random.default_rng(11)
    n_prime = product_width(epsilon, d1, d2, constant=measured_constant()).n_prime
    trials, failed = 60, 0
    for _ in range(trials):
        u, v = rng.uniform(-1, 1, (1, d1, n_prime)), rng.uniform(-1, 1, (d2, d1, n_prime))
        solved = solve((u * v).reshape(-1, n_prime), rng.uniform(-1, 1, d1 * d2))
        failed += solved.errors.max() > lemmas.weight_error(epsilon, d1, d2)
    assert failed <= epsilon * trials


@pytest.mark.parametrize("epsilon", [0.3, 0.1])
@pytest.mark.parametrize("target", [1.0, -1.0, 0.97])
def test_a_single_worst_entry_fails_less_often_than_epsilon(epsilon, target):
    n_prime = product_width(epsilon, 1, 1).n_prime
    rng = np.random.default_rng(5)
    values = rng.uniform(-1, 1, (2000, n_prime)) * rng.uniform(-1, 1, (2000, n_prime))
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


def test_measuring_is_repeatable_and_says_what_made_it():
    first, second = measure_constant(SMALL, solve=every_subset), measure_constant(SMALL)
    assert first["settings"]["seed"] == 0
    assert first["version"] == second["version"]
    # float64 sums in another order: equal but for their last digits.
    for a, b in zip(first["sections"], second["sections"], strict=True):
        assert a["cells"] == b["cells"]
        for x, y in zip(a["errors"], b["errors"], strict=True):
            assert x == pytest.approx(y, rel=1e-6)


def test_the_command_writes_a_whole_table(tmp_path, capsys):
    output = tmp_path / "table.json"
    main(["--output", str(output), "--trials", "20", "--dims", "1", "2", "--epsilons", "0.5"])
    written = json.loads(output.read_text())
    settings = Settings(dims=(1, 2), epsilons=(0.5,), trials=20)
    assert written == json.loads(json.dumps(measure_constant(settings)))
    assert [path.name for path in tmp_path.iterdir()] == ["table.json"]
    assert "product  entries  C = " in capsys.readouterr().out


def test_a_solver_that_never_succeeds_is_reported():
    def useless(values, targets, *, tolerance=None):
        return SimpleNamespace(errors=np.ones(len(targets)))

    with pytest.raises(StrongTicketError, match=r"no n' up to 200 succeeds for dim=1, epsilon=0\.5"):
        smallest_n_primes(SMALL, "product", "entries", 1, useless)


def test_predictions_name_what_is_wrong():
    with pytest.raises(StrongTicketError, match="n_prime=0"):
        predicted_error(0)
