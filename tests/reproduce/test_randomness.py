"""The price of randomness: the trellis against every path, bytes against the library's coder, and what is said."""

import itertools

import numpy as np
import pytest
from tests.reproduce.runs import make_again, reproduce
from tests.reproduce.tiny import TINY

from strongticket import choice
from strongticket.reproduce import random_codes, randomness
from strongticket.reproduce.rows import select
from strongticket.reproduce.study import Run

SETTINGS = TINY["randomness"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the study was made with tiny settings."""
    made = tmp_path_factory.mktemp("randomness")
    reproduce(made, "randomness")
    return made


@pytest.fixture
def tables(folder):
    """What it measured: nothing is computed again."""
    return randomness.measure(Run(folder, workers=1), SETTINGS)


def target(size=64, seed=0):
    return np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)


def test_methods_are_in_the_order_of_what_they_leave_to_chance(tables):
    quoted = randomness.answer(tables, SETTINGS).numbers["above_at_4_bits"]

    def above(method, states):
        (row,) = select(quoted, target="normal", method=method, states=states)
        return row["above"]

    independent = [above("products", None), above("nearest", 1), above("coded", 1)]
    independent += [above("pool", states) for states in (64, 256)]
    spread = [above("offset", states) for states in (1, 4, 8, 64)]
    for order in (independent, spread):
        assert order == sorted(order, reverse=True)
    assert above("one-sided", None) < above("products", None)
    assert spread[1] < independent[-1]
    assert all(row["above"] > 0 for row in select(quoted, target="normal"))


def test_a_random_offset_costs_hardly_more_than_a_fixed_grid(tables):
    for row in randomness.answer(tables, SETTINGS).numbers["largest_prices"]:
        assert row["price"] < 0.05
        assert row["average"] <= row["price"]
    price = tables["prices"][0]
    same = {name: price[name] for name in ("size", "target", "states", "setting")}
    random, fixed = (select(tables["codes"], method=method, **same) for method in ("offset", "grid"))
    assert len(random) == len(fixed) == SETTINGS.matrices
    differences = [a["above"] - b["above"] for a, b in zip(random, fixed, strict=True)]
    assert price["price"] == pytest.approx(np.mean(differences))
    assert price["standard_error"] == pytest.approx(np.std(differences, ddof=1) / len(differences) ** 0.5)


def test_independent_weights_have_their_best_size(tables):
    """No size that was tried last or first is the best: others would be better still."""
    few, sums, wide = random_codes.DEVIATIONS, random_codes.SUM_DEVIATIONS, random_codes.WIDE_DEVIATIONS
    ends = {"products": sums, "one-sided": sums, "nearest": wide, "coded": wide, "pool": few}
    for method, tried in ends.items():
        chosen = [row["deviation"] for row in select(tables["codes"], method=method)]
        assert min(tried) < min(chosen) <= max(chosen) < max(tried)


def test_choices_are_coded_by_their_probability():
    weights = np.sort(target(4), axis=1)
    every = [random_codes._likelihood(weights, np.full((4, 1), kept)) for kept in range(4)]
    assert np.sum(every, axis=0) == pytest.approx(1)
    numbers = np.random.default_rng(0).standard_normal(20_000)
    hits = np.bincount(np.abs(weights[0] - numbers[:, None]).argmin(1), minlength=4) / len(numbers)
    assert [each[0, 0] for each in every] == pytest.approx(hits, abs=0.02)


def test_a_second_run_computes_nothing_again(folder):
    make_again(folder, "randomness")


@pytest.mark.parametrize(("log_size", "new_bits"), [(2, 1), (4, 1), (4, 2), (3, 3)])
def test_the_best_path_is_the_best_of_all(log_size, new_bits):
    rng = np.random.default_rng(log_size * 10 + new_bits)
    pool = rng.standard_normal(1 << log_size).astype(np.float32)
    numbers = rng.standard_normal(5).astype(np.float32)
    found = random_codes.best_states(numbers, pool, new_bits)

    def path(first, steps):
        states = [first]
        for step in steps:
            states.append((states[-1] << new_bits | step) % len(pool))
        return states

    every = [
        path(first, steps)
        for first in range(len(pool))
        for steps in itertools.product(range(1 << new_bits), repeat=len(numbers) - 1)
    ]
    assert found.tolist() in every
    errors = np.square(pool[np.array(every)] - numbers).sum(1)
    assert np.square(pool[found] - numbers).sum() == pytest.approx(errors.min(), rel=1e-5)


def test_the_bytes_are_those_of_the_library():
    matrix = target()
    (row, _) = random_codes.evenly(matrix, 3, bits=[3], states=[8], entropy=2.0471)
    coded = choice.encode(matrix, 3, "w", 2.0 ** (2.0471 - 3), 8, shrink=True)
    assert row["method"] == "offset"
    assert row["bits"] == 8 * sum(map(len, coded.blocks)) / matrix.size
    assert row["error"] == random_codes.error_of(choice.decode(coded, 3, "w"), matrix)
    assert 0 < row["overhead"] < row["bits"]


def test_every_weight_kept_is_a_random_one_and_every_bit_is_counted():
    matrix = target(32)
    fixed, coded = random_codes.nearest(matrix, 1, [4])
    assert fixed["bits"] == 4 + 32 / matrix.size
    assert coded["bits"] + np.log2(coded["error"]) < fixed["bits"] + np.log2(fixed["error"])
    (row,) = random_codes.pool(matrix, 1, 6, [2])
    assert row["bits"] == 2 + (6 - 2 + 32) / matrix.size
    (row,) = random_codes.products(matrix, 1, [3], one_sided=False)
    assert 2 < row["bits"] < 3 + np.log2(32) * 3 / 32 + 0.2  # the right mask, and a row for each unit


def test_units_are_shared_out_with_signs_in_balance():
    left = np.random.default_rng(0).uniform(-1, 1, (16, 64)).astype(np.float32)
    owner = random_codes.alternating(left)
    assert np.bincount(owner).tolist() == [4] * 16
    signs = np.sign(left[owner, np.arange(64)])
    balance = np.array([signs[owner == row].sum() for row in range(16)])
    assert np.abs(balance).max() <= 2  # the last unit has no row to choose
    assert np.count_nonzero(balance) <= 2


def test_rates_between_the_measured_ones_are_interpolated_and_others_left_out():
    line = [dict(bits=2.0, above=0.1), dict(bits=4.0, above=0.3)]
    found = [randomness.above_at(line, bits) for bits in (1.9, 3, 4.1, 6)]
    assert found == [0.1, pytest.approx(0.2), 0.3, None]
    assert randomness.standard_error([1.0]) is None


def test_a_price_that_counts_is_not_denied(tables):
    assert randomness.answer(tables, SETTINGS).sentence.startswith("Hardly anything")
    for row in tables["prices"]:
        row["price"] += 0.1
    assert randomness.answer(tables, SETTINGS).sentence.startswith("Something")
