"""Literal answers, an independent generator, slices, threads, the law: the stream cannot change unnoticed."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, special, stats

from strongticket import seeds
from strongticket.errors import StrongTicketError
from strongticket.seeds import Constant, Hadamard, Normal, SignedConstant, Uniform, draw
from strongticket.seeds._draw import CHUNK
from strongticket.seeds.kernels import uniform
from strongticket.seeds.normal import normal

NAME = "blocks.0.attention.query"
MASK64 = 2**64 - 1


def bits(weights: np.ndarray) -> list[int]:
    return weights.reshape(-1).view(np.uint32).tolist()


@pytest.mark.parametrize(
    ("law", "first_twelve", "digest"),
    [
        (
            Uniform(1.0),
            "bf140259 3f2b93a3 bcd5ebe0 3e40fc94 3f5b877f 3f669279 "
            "3f65a417 bf443e85 3e85baf6 be0fc674 be238bd4 3f739287",
            "7fef6421ded28fffd0ac800484e13ee8986abda49f8cdcd5261c76f1c5c225ca",
        ),
        (
            Uniform(3**0.25),
            "bf42ca80 3f61cec2 bd0cc4a8 3e7dfc15 3f907559 3f97b99a "
            "3f971cbd bf8122ce 3eafffbe be3d3804 be573d29 3fa04796",
            "91fbd0bd59b67286000c53c824a165fbc318112f58a4779deea5343c440d57a7",
        ),
        (
            Normal(1.0),
            "bf4da0c8 3f797cc4 bd061451 3e742ac3 3fbbbc17 3fd2f5ae "
            "3fd0b908 bf98861c 3eaab7a3 be3522ba be4e5cf8 3ffc7cee",
            "12e29768c1bac5b165cf71b2cda79e16b1a9438ce43635dc171cc390789ab58e",
        ),
        (
            Normal(0.02),
            "bc839a1a 3c9fac03 ba2b9f20 3b9c4454 3cf04cea 3d0703a3 "
            "3d059524 bcc33b05 3bda84a8 bb67da88 bb84128a 3d2197a3",
            "ba21602c40fa5a256b3894a6c9d6dbe683d79e7306fabc5318bfc4bf380d7c12",
        ),
        (
            SignedConstant(1.0),
            "bf800000 3f800000 bf800000 3f800000 3f800000 3f800000 "
            "3f800000 bf800000 3f800000 bf800000 bf800000 3f800000",
            "a904448008f49fb3c4dff1e899732c6a7e2f0204a99bfe53ca4474af91d56188",
        ),
        (
            Hadamard(0.05),
            "bd4ccccd 3d4ccccd bd4ccccd 3d4ccccd bd4ccccd bd4ccccd "
            "bd4ccccd bd4ccccd bd4ccccd 3d4ccccd 3d4ccccd bd4ccccd",
            "5ae1af888ac72831a11d1668514592371bfaa1ce93ed938757d00925f248b624",
        ),
    ],
)
def test_known_answers(law, first_twelve, digest):
    assert seeds.GENERATOR_VERSION == 1
    assert bits(draw(42, NAME, (3, 4), law)) == [int(word, 16) for word in first_twelve.split()]
    long = draw(7, "größe", (1_000_003,), law)
    assert hashlib.sha256(long.astype("<f4").tobytes()).hexdigest() == digest


def test_known_key_and_words():
    key = seeds.key(42, NAME)
    assert [int(word) for word in key] == [0xA3B2F9E0BA79CAF0, 0x7C0C4DB33CC068B6]
    words = [
        0xD5C9D11835FED341,
        0x981F92D17CA85064,
        0xF3493C50EDC3BF14,
        0x1DE0BD4CF2D20BE7,
        0x6E0731E7A16EBD5E,
    ]
    assert np.random.Philox(key=key).random_raw(5).tolist() == words
    assert [word for block in (1, 2) for word in philox(block, key)][:5] == words


def philox(counter: int, key) -> list[int]:
    """Philox 4x64 with ten rounds (Salmon et al. 2011) in Python integers."""
    a, b, c, d = counter, 0, 0, 0
    k0, k1 = (int(word) for word in key)
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * a, 0xCA5A826395121157 * c
        a, b, c, d = (second >> 64) ^ b ^ k0, second & MASK64, (first >> 64) ^ d ^ k1, first & MASK64
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK64, (k1 + 0xBB67AE8584CAA73B) & MASK64
    return [a, b, c, d]


@given(
    seed=st.integers(0, MASK64),
    name=st.text(st.characters(exclude_categories=["Cs"])),
    first=st.integers(0, 40),
)
def test_against_an_independent_generator(seed, name, first):
    """Rebuilt from the documented recipe in exact arithmetic: hash, Philox, 24 bits, one rounding."""
    head = (1).to_bytes(4, "little") + seed.to_bytes(8, "little")
    digest = hashlib.blake2b(head + name.encode(), digest_size=16, person=b"strongticket").digest()
    key = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
    half_width = np.float32(1.7)
    got = draw(seed, name, (64,), Uniform(1.7), rows=slice(first, first + 9))
    for i, weight in enumerate(got, start=first):
        word = philox(i // 8 + 1, key)[i % 8 // 2]
        k = (word >> (32 * (i % 2)) & 0xFFFFFFFF) >> 8
        exact = Fraction(2 * k + 1 - 2**24, 2**24) * Fraction(float(half_width))
        assert weight == np.float32(float(exact))  # 48 bits: float() is exact, so this is the one rounding


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


def test_seed_and_name_both_matter():
    streams = {
        (s, n): tuple(bits(draw(s, n, (8,), Uniform(1.0))))
        for s in (0, 1, 256, MASK64)
        for n in ("", "a", "b")
    }
    assert len(set(streams.values())) == len(streams)


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


@given(
    st.integers(0, MASK64),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from([0.05, 2e-38, 3e38]),
)
def test_a_signed_constant_has_the_sign_of_the_other_laws(seed, name, magnitude):
    signed = draw(seed, name, (7, 5), SignedConstant(magnitude))
    assert set(np.abs(signed).reshape(-1).tolist()) == {float(np.float32(magnitude))}
    for law in (Uniform(1.0), Normal(1.0)):
        np.testing.assert_array_equal(np.sign(signed), np.sign(draw(seed, name, (7, 5), law)))


def test_signs_are_fair_and_independent():
    signs = draw(13, "w", (1_000_000,), SignedConstant(1.0)).astype(np.float64)
    assert abs(signs.sum()) < 4 * 1000
    assert abs((signs[:-1] * signs[1:]).sum()) < 4 * 1000


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 99))
def test_hadamard_is_the_documented_matrix(rows, columns, seed):
    """Built again from scipy's Hadamard matrix and the signs of the format page."""
    long_side, short_side = max(rows, columns), min(rows, columns)
    n = 1
    while n < short_side:
        n *= 2
    matrix = linalg.hadamard(n)
    blocks = -(-long_side // n)
    top = draw(seed, "w", (long_side + blocks * short_side,), SignedConstant(1.0))  # plus where the bit is 1
    expected = np.empty((short_side, long_side))
    for long in range(long_side):
        for short in range(short_side):
            own = top[long_side + long // n * short_side + short]
            expected[short, long] = matrix[short, long % n] * top[long] * own
    got = draw(seed, "w", (rows, columns), Hadamard(1.0))
    np.testing.assert_array_equal(got, expected.T if rows > columns else expected)


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
