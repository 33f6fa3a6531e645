"""What rotary positions may do to logits and outputs is never more than the bound, and often nearly that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import theory_oracles as oracle

from strongticket.theory.rotary import rotary_bound, turned


def planes(rng, pairs, keys, queries):
    """A and B of every frequency: products of two keys' and two queries' numbers, as RoPE has them."""
    k, q = rng.standard_normal((2, pairs, keys)), rng.standard_normal((2, pairs, queries))
    same = np.einsum("cfk,cfq->fkq", k, q)
    return list(
        zip(same, np.einsum("fk,fq->fkq", k[0], q[1]) - np.einsum("fk,fq->fkq", k[1], q[0]), strict=True)
    )


@given(
    seed=st.integers(0, 1000),
    pairs=st.integers(1, 6),
    keys=st.integers(1, 7),
    queries=st.integers(1, 7),
    exponent=st.sampled_from([-1070, -300, -100, 0, 100, 300]),
    whole=st.booleans(),
)
def test_no_angles_turn_a_vector_further(seed, pairs, keys, queries, exponent, whole):
    rng = oracle.generator(seed)
    errors = (
        list(rng.standard_normal((pairs, 2, keys, queries))) if whole else planes(rng, pairs, keys, queries)
    )
    errors = [(np.ldexp(cosine, exponent), np.ldexp(sine, exponent)) for cosine, sine in errors]
    found = turned(errors)
    assert np.isfinite(found).all()
    for _ in range(20):
        x, angles = rng.standard_normal(queries), rng.uniform(0, 2 * np.pi, pairs)
        both = zip(np.cos(angles), np.sin(angles), errors, strict=True)
        moved = sum(c * cosine @ x + s * sine @ x for c, s, (cosine, sine) in both)
        assert np.linalg.norm(moved) <= np.linalg.norm(found @ x) * (1 + 1e-12)


def test_orthogonal_planes_give_exactly_their_sizes():
    """At one frequency an orthonormal key plane times an orthonormal query plane turns nothing longer than it is."""
    rng = oracle.generator(0)
    k, q = (np.linalg.qr(rng.standard_normal((5, 2)))[0].T for _ in range(2))
    same, across = np.einsum("ck,cq->kq", k, q), np.outer(k[0], q[1]) - np.outer(k[1], q[0])
    assert np.linalg.norm(turned([(same, across)]), 2) == pytest.approx(1, rel=1e-5)


def test_nothing_wrong_moves_nothing_and_infinity_everything():
    nothing = np.zeros((3, 4))
    assert not turned([(nothing, nothing)]).any()
    for far in (np.inf, np.nan, 1e300):
        assert np.isinf(turned([(nothing, np.full((3, 4), far))])).all()
    target, source = oracle.generator(0).standard_normal((2, 1, 3, 2))
    most = 2.0 * (oracle.spectral(target[0]) + oracle.spectral(source[0]))
    assert rotary_bound([np.full((4, 4), np.inf)], target, source, 2.0, 4.0) == pytest.approx(most)


@pytest.mark.parametrize("size", [1e-4, 0.1, 3.0])
def test_a_head_errs_by_no_more_than_the_bound(size):
    """Two opposite keys at angles of their own: what the bound is made of."""
    rng = oracle.generator(1)
    heads, dim, pairs, radius = 2, 4, 2, 1.5
    errors = [[(a * size, b * size) for a, b in planes(rng, pairs, dim, dim)] for _ in range(heads)]
    target = rng.standard_normal((heads, dim, 3))
    source = target + size * rng.standard_normal(target.shape)
    bound = rotary_bound([turned(error) for error in errors], target, source, radius, radius**2)
    worst = 0.0
    for _ in range(300):
        x = rng.standard_normal(dim)
        x *= radius / np.linalg.norm(x)
        total = np.zeros(3)
        for error, wanted, made in zip(errors, target, source, strict=True):
            angles = rng.uniform(0, 2 * np.pi, pairs)
            matrix = sum(np.cos(t) * a + np.sin(t) * b for t, (a, b) in zip(angles, error, strict=True))
            y = matrix @ x + 0.3 * rng.standard_normal(dim)
            keys = np.array([[1], [-1]]) * y * radius / np.linalg.norm(y)
            shares = np.exp(keys @ matrix @ x)
            total += shares / shares.sum() @ keys @ made - np.mean(keys, 0) @ wanted
        worst = max(worst, float(np.linalg.norm(total)))
    assert worst <= bound < 20 * worst
