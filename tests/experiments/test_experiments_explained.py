"""The share of the variance that properties predict, against the hat matrix of least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strongticket.experiments.tasks.explained import predicted_share


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
    share, low, high = predicted_share(x.tolist(), y.tolist())
    assert share == pytest.approx(1 - np.square(errors).sum() / np.square(deviations).sum(), abs=1e-9)
    assert low <= high <= 1


def test_a_property_that_says_nothing_predicts_nothing():
    generator = np.random.default_rng(0)
    share, low, _ = predicted_share(
        generator.normal(size=(60, 1)).tolist(), generator.normal(size=60).tolist()
    )
    assert share < 0.1
    assert low < 0
