"""Width against bits: points thrown at random are as far as the formula says, and paths need less than subsets."""

import numpy as np
import pytest
from tests.reproduce.runs import make_again, read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket import choice, theory
from strongticket.reproduce import bits


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bits")
    return folder, reproduce(folder, "bits")


def test_the_study_is_made_once_and_says_what_it_measured(made):
    folder, summary = made
    make_again(folder, "bits")
    assert "subsets do" in summary["sentence"]
    choices = [summary["numbers"]["choices"][str(states)] for states in (*choice.STATES, bits.FREE_STATES)]
    assert choices == sorted(choices, reverse=True)
    assert 0 < choices[-1] < 0.1
    assert {row["serves"] for row in read_csv(folder / "bits" / "sums.csv")} == {"1", "2", "3"}
    assert all(row["products"] > row["points"] for row in summary["numbers"]["sums"])
    assert len(TINY["bits"].units) == len(summary["numbers"]["sums"])


@pytest.mark.parametrize(("serves", "units"), [(1, 7), (2, 8), (3, 9)])
def test_points_thrown_at_random_are_as_far_as_the_formula_says(serves, units):
    point = dict(seed=1, way="points", serves=serves, units=[units], problems=4000)
    (row,) = bits.nearest_sums(point)
    above = row["bits"] - theory.least_bits(row["error"])
    assert above == pytest.approx(theory.subset_sum_excess(serves), abs=0.15)


def test_all_subsets_are_summed():
    rng = np.random.default_rng(0)
    sums = bits._sums(rng, "products", 5, 3, 2)
    assert sums.shape == (5, 8, 2)
    assert not sums[:, 0].any()
    np.testing.assert_allclose(sums[:, 7], sums[:, 1] + sums[:, 2] + sums[:, 4])
    balanced = bits._sums(rng, "sums", 5, 3, 2)
    np.testing.assert_allclose(balanced[:, 0], -balanced[:, 7])


def test_a_long_path_is_nearer_than_those_of_files():
    target = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
    step = 2.0 ** (bits.ENTROPY["normal"] - 4)
    assert bits.free_error(target, 0, 4) < choice.GAIN[64] * step / np.sqrt(12)
