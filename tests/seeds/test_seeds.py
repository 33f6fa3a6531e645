"""The documented generator, slices, threads, the law: the stream cannot change unnoticed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from tests.seeds import oracle

from strongticket.errors import StrongTicketError
from strongticket.seeds import Constant, Hadamard, Normal, SignedConstant, Uniform, draw
from strongticket.seeds._draw import CHUNK
from strongticket.seeds.kernels import uniform
from strongticket.seeds.normal import normal

MASK64 = 2**64 - 1


def bits(weights: np.ndarray) -> list[int]:
    return weights.reshape(-1).view(np.uint32).tolist()


@given(
    st.integers(0, MASK64),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from([Uniform(1.7), Normal(2.0), SignedConstant(2e-38), Hadamard(3e38), Constant(0.3)]),
)
def test_every_law_is_the_documented_one(seed, name, shape, law):
    """docs/ticket-format.md has literal answers, which its own test compares."""
    expected = oracle.weights(seed, name, shape, law.name, law.scale)
    assert draw(seed, name, tuple(shape), law).tobytes() == b"".join(expected)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.integers(-12, 12),
    st.integers(-12, 12),
    st.sampled_from([Uniform(0.5), Normal(2.0), SignedConstant(0.3), Hadamard(0.3), Constant(0.3)]),
)
def test_rows_alone_are_the_rows_of_the_whole(shape, start, stop, law):
    whole = draw(3, "w", tuple(shape), law)
    for rows in (slice(start, stop), slice(start, None), slice(None, stop)):
        part = draw(3, "w", tuple(shape), law, rows=rows)
        assert part.shape == whole[rows].shape
        assert bits(part) == bits(whole[rows])


def test_rows_and_threads_across_chunk_borders():
    shape = (3 * CHUNK // 7, 7)
    for law in (Uniform(1.0), Normal(1.0), SignedConstant(1.0), Hadamard(1.0)):
        whole = draw(1, "w", shape, law, threads=1)
        for threads in (2, 3, 8, None):
            assert bits(draw(1, "w", shape, law, threads=threads)) == bits(whole)
        part = draw(1, "w", shape, law, rows=slice(1000, 1010), threads=2)
        assert bits(part) == bits(whole[1000:1010])
        assert bits(draw(1, "w", shape, law, rows=slice(1001, shape[0]))) == bits(whole[1001:])


@pytest.mark.parametrize("rows", [None, slice(3, 90)])
def test_masked_weights_are_plus_zero(rows):
    shape = (100, CHUNK // 30)
    whole = draw(1, "w", shape, Normal(1.0), rows=rows)
    mask = np.random.default_rng(0).random(whole.shape) < 0.3
    got = draw(1, "w", shape, Normal(1.0), rows=rows, mask=mask, threads=2)
    assert bits(got) == bits(np.where(mask, whole, np.float32(0.0)))
    assert (
        bits(draw(1, "w", shape[::-1], Normal(1.0), mask=np.zeros(shape, bool).T))
        == [0] * mask[:1].size * 100
    )


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (0, 5), (5, 0), (2, 3, 4)])
def test_shapes(shape):
    weights = draw(0, "w", shape, Uniform(1.0))
    assert weights.shape == shape
    assert weights.dtype == np.float32
    assert weights.flags.c_contiguous
    assert bits(weights) == bits(draw(0, "w", (100,), Uniform(1.0)))[: weights.size]


def test_numpy_integers_are_integers():
    assert bits(draw(np.int64(3), "w", (np.int32(4),), Uniform(1.0))) == bits(
        draw(3, "w", (4,), Uniform(1.0))
    )


def all_uniform(half_width: float, chosen: np.ndarray) -> np.ndarray:
    out = np.empty(chosen.size, np.float32)
    uniform(chosen, np.float32(half_width) * np.float32(2.0**-24), out)
    return out


@given(st.floats(2.0**-102, float(np.finfo(np.float32).max)))
def test_uniform_stays_inside_symmetric_and_never_zero(half_width):
    edges = np.array([0, 256, 2**31 - 1, 2**31, 2**32 - 257, 2**32 - 1], np.uint32)
    weights = all_uniform(half_width, edges).astype(np.float64)
    assert np.all(np.abs(weights) <= half_width)
    assert np.all(np.abs(weights) >= np.finfo(np.float32).tiny)
    assert weights.tolist() == (-weights[::-1]).tolist()


def test_uniform_law():
    weights = draw(11, "w", (1_000_000,), Uniform(2.5)).astype(np.float64)
    assert stats.kstest(weights, "uniform", args=(-2.5, 5.0)).pvalue > 0.01
    assert abs(np.corrcoef(weights[:-1], weights[1:])[0, 1]) < 0.005


def quantiles(chosen: np.ndarray) -> np.ndarray:
    out = np.empty(chosen.size, np.float32)
    normal(chosen, 1.0, out)
    return out


def test_normal_quantile_is_the_nearest_float32():
    """Against scipy over the whole range: both tails, the centre and the seams of the approximation."""
    random = np.random.default_rng(0).integers(0, 2**32, 500_000)
    seams = [round((0.5 + s * q) * 2**32) for s in (-1, 1) for q in (0.425, 0.5 - math.exp(-25), 0.0, 0.25)]
    near = (np.array(seams)[:, None] + np.arange(-2000, 2001)).reshape(-1)
    chosen = np.concatenate([random, near, np.arange(20_000), 2**32 - 1 - np.arange(20_000)])
    chosen = chosen[(chosen >= 0) & (chosen < 2**32)].astype(np.uint32)
    # The upper half by symmetry: 1 - p loses digits near 1, p near 0 does not.
    upper = chosen >= 2**31
    tail = np.where(upper, np.uint32(2**32 - 1) - chosen, chosen).astype(np.float64)
    expected = np.where(upper, -1.0, 1.0) * special.ndtri((2 * tail + 1) * 2.0**-33)
    got = quantiles(chosen)
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=2.0**-24 * 1.001, atol=0)
    assert np.mean(got != expected.astype(np.float32)) < 1e-5
    assert np.abs(got).min() > 0


def test_normal_is_symmetric_monotonic_and_bounded():
    chosen = np.linspace(0, 2**32 - 1, 300_001).astype(np.uint32)
    up = quantiles(chosen)
    assert np.all(np.diff(up) >= 0)
    assert bits(up) == bits(-quantiles(np.uint32(2**32 - 1) - chosen))
    assert 6.33 < up[-1] < 6.34


def test_normal_law():
    weights = draw(5, "w", (2_000_000,), Normal(0.02)).astype(np.float64) / 0.02
    assert stats.kstest(weights, "norm").pvalue > 0.01
    for threshold in (2.0, 3.0, 4.0):
        expected = 2 * special.ndtr(-threshold) * weights.size
        assert abs(np.sum(np.abs(weights) > threshold) - expected) < 4 * math.sqrt(expected)


def test_signs_are_fair_and_independent():
    signs = draw(13, "w", (1_000_000,), SignedConstant(1.0)).astype(np.float64)
    assert abs(signs.sum()) < 4 * 1000
    assert abs((signs[:-1] * signs[1:]).sum()) < 4 * 1000


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (32, 4), (16, 4, 4), (2, 64)])
def test_hadamard_is_exactly_orthogonal(shape):
    matrix = draw(3, "w", shape, Hadamard(1.0)).reshape(shape[0], -1).astype(np.float64)
    matrix = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    np.testing.assert_array_equal(matrix @ matrix.T, matrix.shape[1] * np.eye(len(matrix)))


def test_scales_become_plain_floats():
    assert Uniform(np.float32(0.5)) == Uniform(0.5)
    assert type(Normal(1).std) is float


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-40, 1e39, 10**400, True, "1", None]
)
@pytest.mark.parametrize("law", [Uniform, Normal, SignedConstant, Hadamard, Constant])
def test_bad_scales(law, scale):
    with pytest.raises(StrongTicketError, match=rf"{law.__name__}\.(half_width|std|magnitude|value) must be"):
        law(scale)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "seed must be an integer from 0"),
        ({"seed": 2**64}, "seed must be an integer from 0"),
        ({"seed": 1.0}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"seed": np.array([1, 2])}, "seed must be"),
        ({"name": b"w"}, "name must be a str"),
        ({"name": "\ud800"}, "valid Unicode"),
        ({"shape": [3]}, "shape must be a tuple"),
        ({"shape": (-1,)}, "shape must be a tuple"),
        ({"shape": (2.0,)}, "shape must be a tuple"),
        ({"law": "uniform"}, "law must be"),
        ({"rows": slice(0, 4, 2)}, "step 1"),
        ({"rows": 3}, "rows must be a slice"),
        ({"shape": (), "rows": slice(0, 1)}, "at least one axis"),
        ({"mask": np.ones(3, bool)}, r"mask must be bool of shape \(4,\), got bool \(3,\)"),
        ({"mask": np.ones(4)}, "got float64"),
        ({"mask": [1] * 4}, "got int64"),
        ({"threads": 0}, "threads must be"),
        ({"threads": 1.5}, "threads must be"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"seed": 0, "name": "w", "shape": (4,), "law": Uniform(1.0)} | change
    with pytest.raises(StrongTicketError, match=message):
        draw(**arguments)
