"""Sparse subset sums: the fewest units are the fewest, and a law is found where there is one."""

import itertools
import math

import numpy as np
import pytest
from tests.reproduce.runs import make_again, reproduce

from strongticket.reproduce import sparsity


def test_the_study_is_made_once_and_says_what_it_measured(tmp_path):
    summary = reproduce(tmp_path, "sparsity")
    make_again(tmp_path, "sparsity")
    assert "bits of subsets" in summary["sentence"]
    assert summary["numbers"]["log"]["slope"] > 0


def test_less_kept_and_smaller_errors_take_more_units():
    def units(fraction):
        point = dict(seed=0, fraction=fraction, epsilons=[0.1, 0.01, 0.001], trials=200, success=0.9)
        return [row["units"] for row in sparsity.fewest_units(point)]

    half, tenth = units(0.5), units(0.1)
    assert half == sorted(half)
    assert all(few > many for few, many in zip(tenth, half, strict=True))
    # Not even counting allows fewer.
    assert half[2] > math.log2(1000)


@pytest.mark.parametrize("power", [1, 2])
def test_the_law_of_made_up_cells_is_found(power):
    rows = []
    for fraction, bits in itertools.product((0.1, 0.3, 0.5), (4, 9, 16)):
        units = (0.5 * bits**power + 7) / sparsity.entropy(fraction)
        rows.append(dict(fraction=fraction, epsilon=2.0**-bits, units=units, kept=fraction * units))
    found = sparsity.law(rows, power)
    assert (found.slope, found.offset) == pytest.approx((0.5, 7))
    assert found.misfit == pytest.approx(0, abs=1e-9)
    assert sparsity.law(rows, 3 - power).misfit > 0.3


def test_entropy_is_that_of_a_coin():
    assert sparsity.entropy(0.5) == 1
    assert sparsity.entropy(0.11) == pytest.approx(0.5, abs=1e-3)
    assert np.isclose(sparsity.entropy(0.2), sparsity.entropy(0.8))
