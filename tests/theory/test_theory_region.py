"""Regions of any scale: their radius and ellipsoid still bound every vector."""

from itertools import product

import numpy as np
import pytest

from strongticket.theory.region import Region

SCALES = (1e-320, 1e-300, 1e-160, 1e-20, 1.0, 1e100)


@pytest.mark.parametrize(("first", "second"), list(product(SCALES, SCALES)))
def test_tiny_and_large_parts_add_up(first, second):
    rng = np.random.default_rng(0)
    shapes = [scale * rng.uniform(0.5, 1, (2, 3)) for scale in (first, second)]
    region = Region(3, tuple(shapes), first)
    longest = max(np.abs(shape).max() for shape in shapes)
    vectors = sum(shape.sum(0) / 2 for shape in shapes)  # of the region: each v_j is (1, 1)/2
    assert region.radius() / longest >= np.linalg.norm(vectors / longest)
    assert region.radius() <= region.size * (1 + 1e-6)
    direction = np.ones(3) / 3**0.5
    reach = sum(np.linalg.norm(shape / longest @ direction) for shape in shapes) + first / longest
    assert np.linalg.norm(region.ellipsoid() / longest @ direction) >= reach


def test_a_part_that_overflows_or_is_nan_has_no_bound():
    for value in (np.inf, np.nan):
        region = Region(2, (np.ones((1, 2)), np.full((1, 2), value)))
        assert region.radius() == np.inf
