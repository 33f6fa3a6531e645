"""Which weights are kept: the best path, errors that know nothing of the target, errors fed forward, the rate."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.choice.oracle import CODES, offset, read_block

from strongticket import choice
from strongticket.choice import Feedback
from strongticket.choice.trellis import best_values


def paths(states: int, length: int):
    """(v mod 4 of every path from state 0), by the rule of the trellis."""
    h0, h1 = CODES[states]
    for odds in itertools.product((0, 1), repeat=length):
        state, labels = 0, []
        for odd in odds:
            labels.append(2 * odd + state % 2)
            state = state >> 1 ^ state % 2 * h0 ^ odd * h1
        yield np.array(labels)


@settings(max_examples=40)
@given(st.sampled_from([4, 8, 64]), st.integers(1, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_the_path_is_the_best_of_all(states, length, seed, with_zeros):
    rng = np.random.default_rng(seed)
    target = (3 * rng.standard_normal((length, 3))).astype(np.float32)
    offsets = rng.integers(0, 2**16, target.shape).astype(np.uint16)
    zeros = rng.random(target.shape) < 0.3 * with_zeros
    spacings = rng.random(length) + 0.5
    values = best_values(target, spacings, offsets, states, zeros)
    wanted = target / spacings[:, None] - (2.0 * offsets - 65535) / 2**17
    assert not values[zeros].any()
    for column, found, zero in zip(wanted.T, values.T, zeros.T, strict=True):
        column, found = column[~zero], found[~zero]
        allowed = list(paths(states, len(column)))
        assert any(np.array_equal(labels, found % 4) for labels in allowed)
        least = min((((column - labels + 2) % 4 - 2) ** 2).sum() for labels in allowed)
        assert ((column - found) ** 2).sum() == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize("states", choice.STATES)
def test_the_error_is_as_large_as_the_gain_says(states):
    rows = np.random.default_rng(0).standard_normal((3000, 40)).astype(np.float32)
    error = choice.decode(choice.encode(rows, 3, "w", 0.1, states), 3, "w") - rows
    assert np.sqrt((error**2).mean() * 12) / 0.1 == pytest.approx(choice.GAIN[states], rel=0.01)


def test_with_one_state_errors_are_uniform_and_independent():
    """Over the seed; of the target, and of each other."""
    target = np.random.default_rng(1).standard_t(3, (6, 5)).astype(np.float32)
    delta = read_block(choice.encode_rows(target, 0, 0, "w", 0.7, 1), target.shape, 0, 0, "w").deltas[0]
    errors = np.stack(
        [
            (choice.decode(choice.encode(target, seed, "w", 0.7, 1), seed, "w") - target).reshape(-1) / delta
            for seed in range(3000)
        ]
    )
    assert stats.kstest(errors.reshape(-1), "uniform", args=(-0.5, 1)).pvalue > 0.001
    noise = 1 / math.sqrt(len(errors))
    assert np.abs(errors.mean(axis=0)).max() < 4.5 * noise / math.sqrt(12)
    assert np.abs((errors**2).mean(axis=0) - 1 / 12).max() < 4.5 * noise / math.sqrt(180)
    between = np.corrcoef(errors.T) - np.eye(target.size)
    assert np.abs(between).max() < 5 * noise
    assert abs(np.corrcoef(np.broadcast_to(target.reshape(-1), errors.shape).flat, errors.flat)[0, 1]) < 0.015


def bits_above_the_limit(target: np.ndarray, step: float, states: int) -> float:
    """Bits of a number, everything counted, less those of a Gaussian source of the same variance and error."""
    coded = choice.encode(target, 3, "w", step, states, shrink=True)
    error = choice.decode(coded, 3, "w").astype(float) - target
    bits = 8 * sum(map(len, coded.blocks)) / target.size
    return bits - math.log2(target.astype(float).var() / (error**2).mean()) / 2


@pytest.mark.parametrize(("size", "states", "most"), [(576, 8, 0.11), (256, 8, 0.14), (576, 64, 0.08)])
@pytest.mark.parametrize("bits", [2, 3, 4, 6, 8])
def test_rate(size, states, most, bits):
    target = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
    assert 0 < bits_above_the_limit(target, 2 ** (2.1 - bits), states) < most


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_heavy_tails_take_fewer_bits_than_the_gaussian_limit(bits):
    target = np.random.default_rng(3).standard_t(4, (576, 576)).astype(np.float32)
    assert bits_above_the_limit(target, 2 ** (2.1 - bits), 8) < 0


def correlated(columns: int) -> np.ndarray:
    """A covariance of inputs that are alike."""
    rng = np.random.default_rng(4)
    inputs = rng.standard_normal((500, columns // 3)) @ rng.standard_normal((columns // 3, columns))
    inputs += 0.3 * rng.standard_normal(inputs.shape)
    return inputs.T @ inputs / len(inputs)


@pytest.mark.parametrize("states", [1, 8])
def test_errors_fed_forward_matter_less(states):
    covariance = correlated(48)
    rows = np.random.default_rng(5).standard_normal((64, 48)).astype(np.float32)

    def output_error(feedback):
        coded = choice.encode(rows, 3, "w", 0.5, states, feedback=feedback)
        error = choice.decode(coded, 3, "w") - rows
        return np.trace(error @ covariance @ error.T)

    assert output_error(Feedback.of(covariance)) < 0.5 * output_error(None)
    assert Feedback.of(np.zeros((48, 48))) is None


@pytest.mark.parametrize("states", choice.STATES)
def test_feeding_forward_is_the_plain_loop(states):
    feedback = Feedback.of(correlated(12))
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((30, 12)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = 0
    read = read_block(
        choice.encode_rows(rows, 0, 3, "w", 0.3, states, feedback=feedback), rows.shape, 0, 3, "w"
    )

    spacings = read.deltas / (1 if states == 1 else 2)
    offsets = np.array([offset(3, "w", i) for i in range(rows.size)], np.uint16).reshape(rows.shape)
    left, is_zero = rows.astype(float), rows == 0
    for i, j in enumerate(feedback.order):
        one = left[:, j : j + 1]
        values = best_values(one, spacings, offsets[:, j : j + 1], states, is_zero[:, j : j + 1])[:, 0]
        made = np.where(is_zero[:, j], 0, spacings * (values + (2.0 * offsets[:, j] - 65535) / 2**17))
        np.testing.assert_array_equal(read.values[:, j], values)
        error = left[:, j] - made
        for later, c in enumerate(feedback.order[i + 1 :], i + 1):
            left[:, c] -= feedback.shares[i, later] * error
