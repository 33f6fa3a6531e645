"""Errors fed forward: against GPTQ's own steps, and what they are for, errors of outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pretrained.pieces.solving import RECIPE, solved

from strongticket.pretrained.pieces import Job, Layout, Takeover, cut


def correlated(columns: int, seed: int = 0) -> np.ndarray:
    """Mean of x xᵀ for inputs with few strong directions."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=(4 * columns, columns // 4)) @ chance.normal(size=(columns // 4, columns))
    x += 0.3 * chance.normal(size=x.shape)
    return x.T @ x / len(x)


@given(st.integers(2, 12), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_what_is_left_of_an_error_is_least(columns, seed):
    """With an error fixed at the first column, the others cannot cancel more of it than they take over."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=(3 * columns, columns)) @ chance.normal(size=(columns, columns))
    gram = x.T @ x / len(x)
    takeover = Takeover.of(gram)
    assert takeover is not None
    assert sorted(takeover.order) == list(range(columns))
    assert (np.diff(gram.diagonal()[takeover.order]) <= 0).all()
    damped = gram[takeover.order][:, takeover.order] + 0.01 * gram.diagonal().mean() * np.eye(columns)
    for fixed in range(columns - 1):
        # The best answer to an error of 1 there: least squares over the later columns.
        best = np.linalg.solve(damped[fixed + 1 :, fixed + 1 :], -damped[fixed + 1 :, fixed])
        assert takeover.shares[fixed, fixed + 1 :] == pytest.approx(best, rel=1e-3, abs=1e-4)
    assert not np.tril(takeover.shares).any()


def test_inputs_that_are_all_zero_have_none():
    assert Takeover.of(np.zeros((3, 3))) is None


@pytest.mark.parametrize("shape", [(24, 96), (96, 24)])
def test_outputs_come_nearer_at_equal_bits(shape):
    target, gram = np.random.default_rng(1).normal(size=shape), correlated(shape[1])
    layout = Layout(5, axis=0)
    errors, sizes = [], []
    for takeover in (None, Takeover.of(gram)):
        whole, found, _ = solved(target, layout, takeover=takeover)
        error = whole - target
        assert sum(each.errors["squared"] for each in found) == pytest.approx(
            np.square(error).sum(), rel=1e-9
        )
        errors.append(float(np.einsum("ij,jk,ik", error, gram, error)))
        sizes.append(sum(len(tensor.data) for each in found for tensor in each.tensors))
    assert errors[1] < errors[0] / 2
    assert sizes[1] == pytest.approx(sizes[0], rel=0.02)


def test_a_weight_with_inputs_first_is_cut_along_its_outputs():
    """As transformers' Conv1D has it: the same errors as of the transposed weight."""
    target, takeover = np.random.default_rng(1).normal(size=(24, 32)), Takeover.of(correlated(32))
    whole, *_ = solved(target, Layout(5, axis=0), takeover=takeover)
    other, *_ = solved(target.T.copy(), Layout(5, axis=1), takeover=takeover)
    assert np.array_equal(whole, other.T)


def test_a_job_keeps_its_takeover_and_its_name_covers_it():
    target, takeover = np.random.default_rng(1).normal(size=(20, 30)), Takeover.of(correlated(30))
    assert takeover is not None
    (piece,) = cut("w", 20, 30, Layout(5, axis=0))
    job = Job(piece, target, 0.0, "balanced", 0, RECIPE, takeover)
    again = Job.from_bytes(job.to_bytes())
    assert again.takeover is not None
    assert np.array_equal(again.takeover.shares, takeover.shares)
    assert np.array_equal(again.takeover.order, takeover.order)
    assert again.identity() == job.identity()
    other = Job(piece, target, 0.0, "balanced", 0, RECIPE, Takeover.of(correlated(30, seed=1)))
    plain = Job(piece, target, 0.0, "balanced", 0, RECIPE)
    assert len({job.identity(), other.identity(), plain.identity()}) == 3
