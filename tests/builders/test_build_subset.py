"""Models by subset sums, as Lemma 4 has it: pairs of factors, their structure, and the errors that are stated."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from strongticket.builders import build
from strongticket.builders.subset import prune_pair
from strongticket.models.subset import ROWS, factor_pairs
from strongticket.seeds import Uniform, draw


@pytest.mark.parametrize(
    "shape", [(), (5,), (1, 9), (9, 1), (20, 30), (30, 20), (130, 150), (3, 4, 50), (64, 64)]
)
def test_pairs_make_every_number_once(shape):
    pairs = factor_pairs("w", shape, 10)
    rows, columns = pairs[0].columns, sum(len(pair.rows) for pair in pairs)
    assert rows * columns == math.prod(shape)
    assert columns <= rows  # the smaller side has the structure
    matrix = np.zeros((rows, columns) if pairs[0].transposed else (columns, rows), int)
    for pair in pairs:
        assert len(pair.rows) <= ROWS
        assert pair.shapes == {pair.left: (len(pair.rows), pair.units), pair.right: (rows, pair.units)}
        assert pair.units == 10 * len(pair.rows)
        pair.part(matrix)[:] += 1
    assert (matrix == 1).all()
    assert len({name for pair in pairs for name in pair.shapes}) == 2 * len(pairs)


def test_a_pair_is_pruned_random_weights():
    """Each unit serves one row, and an entry is the best of all subsets of its own products, by brute force."""
    (pair,) = factor_pairs("w", (3, 4), 9)
    target = np.random.default_rng(0).standard_normal((3, 4)) / 2
    (made,) = prune_pair(pair, target, 0.0, seed=7)
    scale = made["lines"][1]["scale"]
    assert scale == 4 * 2 ** np.ceil(np.log2(np.abs(target).max()))
    laws = Uniform(1.0), Uniform(scale)
    left, right = (draw(7, *named, law) for named, law in zip(pair.shapes.items(), laws, strict=True))
    subsets = (np.arange(1 << 9)[:, None] >> np.arange(9)) & 1
    largest = 0.0
    for row in range(3):
        units = slice(9 * row, 9 * row + 9)
        for column in range(4):
            products = left[row, units].astype(float) * right[column, units]
            largest = max(largest, np.abs(subsets @ products - target[row, column]).min())
    assert made["largest"] == pytest.approx(largest, abs=1e-6)


def test_tensors_of_any_shape_and_size():
    rng = np.random.default_rng(0)
    module = nn.ParameterDict(
        {
            "scalar": torch.tensor(-0.3),
            "vector": torch.from_numpy(rng.standard_normal(11)).float(),
            "matrix": torch.from_numpy(rng.standard_normal((70, 90))).float(),
            "tall": torch.from_numpy(1e-6 * rng.standard_normal((150, 7))).float(),
            "convolution": torch.from_numpy(1e6 * rng.standard_normal((6, 3, 3, 3))).float(),
            "zeros": torch.zeros(4, 5),
        }
    )
    ticket = build(module, by="subset", tolerance=0.01, workers=1)
    assert not ticket.choices
    assert not ticket.floats
    made = dict(ticket.state())
    for name, parameter in module.items():
        wanted = parameter.detach().double().numpy()
        error = made[name].astype(float) - wanted
        stated = ticket.metadata["errors"][name]
        size = np.sqrt(np.square(wanted).mean())
        assert np.abs(error).max() == pytest.approx(stated[0], rel=0.01, abs=1e-12)
        assert np.sqrt(np.square(error).mean()) == pytest.approx(stated[1] * size, rel=0.01, abs=1e-12)
        assert stated[1] < 0.01  # every entry is as near as asked for
    assert not made["zeros"].any()


def test_more_units_are_more_precise():
    """About a bit for each."""
    module = nn.Linear(40, 40, bias=False)
    module.weight.data = torch.from_numpy(np.random.default_rng(0).standard_normal((40, 40))).float()
    errors = [
        build(module, by="subset", per_row=per_row, tolerance=1e-9, workers=1).metadata["relative_error"]
        for per_row in (22, 30)
    ]
    assert 2**5 < errors[0] / errors[1] < 2**12


def test_hardly_any_number_is_out_of_reach():
    """Vectors are the worst case: most of their numbers are as large as the largest."""
    module = nn.ParameterDict({f"v{i}": torch.full((60,), 0.99) for i in range(50)})
    ticket = build(module, by="subset", tolerance=1e-3, workers=1)
    assert max(largest for largest, _ in ticket.metadata["errors"].values()) < 1e-3
