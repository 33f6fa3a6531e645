"""Verified bounds are never below the truth, computed in more digits where float64 has too few."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import theory_oracles as oracle

from strongticket.errors import StrongTicketError
from strongticket.theory import AttentionFactors, attention_rounding
from strongticket.theory.joint import Term, supremum_bound
from strongticket.theory.rounding import (
    frobenius,
    gamma,
    largest_eigenvalue,
    output_rounding,
    spectral_norm,
    unit_of,
)

seeds = st.integers(0, 2**32 - 1)
small = st.integers(1, 7)


@given(seeds, small, small, st.integers(-30, 30))
def test_spectral_norm_is_bounded_closely(seed, rows, columns, power):
    matrix = oracle.generator(seed).standard_normal((rows, columns)) * 10.0**power
    bound, true = spectral_norm(matrix), oracle.spectral(matrix)
    assert true * (1 - 1e-14) <= bound <= true * (1 + 1e-10)
    assert frobenius(matrix) >= bound * (1 - 1e-12)


def test_spectral_norm_is_above_the_exact_one():
    # ‖uvᵀ‖² = ‖u‖²‖v‖² exactly, in rational numbers.
    rng = oracle.generator(0)
    for _ in range(200):
        u, v = rng.integers(-99, 99, 5).astype(float), rng.integers(-99, 99, 4).astype(float)
        exact = sum(Fraction(a) ** 2 for a in u) * sum(Fraction(b) ** 2 for b in v)
        assert Fraction(spectral_norm(np.outer(u, v))) ** 2 >= exact


def test_norms_of_nothing_and_of_zero():
    assert spectral_norm(np.zeros((3, 2))) == 0
    assert largest_eigenvalue(np.zeros((2, 2))) == 0
    assert spectral_norm(np.array([[-3.0]])) == pytest.approx(3)


def test_eigenvalues_that_coincide_are_still_bounded():
    assert 1 <= largest_eigenvalue(np.eye(50)) <= 1 + 1e-10
    assert 5 <= largest_eigenvalue(np.full((5, 5), 1.0)) <= 5 * (1 + 1e-10)


def test_gamma_refuses_to_promise_nothing():
    with pytest.raises(StrongTicketError, match="may lose every digit"):
        gamma(2**24, 2.0**-24)


def value_of(term, v, both):
    """A term's value for these vectors: the best m is ‖Nv‖/(2c), at most 1."""
    norm = sum(np.linalg.norm(n @ v) for n in term.norm)
    c = 0.0
    if term.pair:
        a, b = term.pair[0] @ both, term.pair[1] @ v
        c = (np.linalg.norm(a) * np.linalg.norm(b) + a @ b) / 2
    if term.largest == np.inf:
        return c + norm
    assert c <= term.largest
    m = min(1.0, norm / (2 * c)) if c else 1.0
    return (1 - m * m) * c + m * norm


@settings(max_examples=25)
@given(seeds, small, small, st.integers(1, 3))
def test_the_joint_bound_is_above_every_value_and_below_the_separate_bounds(seed, d, e, count):
    rng, terms = oracle.generator(seed), []
    for _ in range(count):
        norm = rng.standard_normal((e, d)) * 10 ** rng.uniform(-3, 1)
        pair = rng.standard_normal((3, e + 1)), rng.standard_normal((3, d))
        largest = supremum_bound([d, e, 1], [Term(pair=pair)])
        assert largest <= oracle.spectral(pair[0]) * 2**0.5 * oracle.spectral(pair[1]) * 1.01
        terms += [[Term((norm,))], [Term(pair=pair)], [Term((norm,), pair)], [Term((norm,), pair, largest)]]
    for some in (*terms, [term for each in terms for term in each]):
        bound = supremum_bound([d, e, 1], some)
        for _ in range(20):
            v, w = (x / np.linalg.norm(x) for x in (rng.standard_normal(d), rng.standard_normal(e)))
            both = np.append(w, rng.choice([-1, 1]))
            assert sum(value_of(term, v, both) for term in some) <= bound
        if len(some) > 1:
            assert bound <= 1.05 * sum(supremum_bound([d, e, 1], [term]) for term in some)


def test_what_shares_a_radius_is_bounded_sharply():
    """c = 3 and ‖N‖ = 2 at the same vectors: (1 − m²)·3 + 2m is largest at m = ⅓."""
    one = np.ones((1, 1))
    shared, apart = (supremum_bound([1, 1], [Term((2 * one,), (3 * one, one), c)]) for c in (3.0, np.inf))
    assert shared == pytest.approx(3 + 2**2 / (4 * 3), rel=1e-6)
    assert apart == pytest.approx(5, rel=1e-6)
    assert supremum_bound([1, 1], [Term((8 * one,), (3 * one, one), 3.0)]) == pytest.approx(8, rel=1e-4)


@settings(max_examples=15)
@given(seeds, small)
def test_the_joint_bound_of_one_term_is_its_norm(seed, d):
    a = oracle.generator(seed).standard_normal((4, d))
    assert supremum_bound([d], [Term((a,))]) == pytest.approx(oracle.spectral(a), rel=1e-3)
    # Both vectors are the longest axis: Aw = Av₀.
    assert supremum_bound([d, d], [Term(pair=(a, a))]) == pytest.approx(oracle.spectral(a) ** 2, rel=1e-3)


def test_the_joint_bound_of_nothing_is_zero():
    assert supremum_bound([3], []) == 0
    zeros = [Term(pair=(np.zeros((2, 2)), np.ones((2, 3)))), Term((np.zeros((1, 3)),))]
    assert supremum_bound([3, 2], zeros) == 0


@settings(max_examples=60)
@given(seeds, small, st.integers(1, 3), st.integers(1, 9), st.booleans())
def test_merged_attention_in_float64_stays_within_its_rounding(seed, d, heads, tokens, of_halves):
    rng = oracle.generator(seed)
    n, units, alpha = 12, 40, rng.uniform(0.5, 4)
    query, key, value = (rng.uniform(-2, 2, (heads, d, n)) for _ in range(3))
    output = rng.uniform(-1, 1, (heads, n, d))
    exact_factors = [m.astype(np.longdouble) for m in (query, key, value, output)]
    options = {}
    if of_halves:
        outer, inner = rng.uniform(-2, 2, (4, heads, d, units)), rng.uniform(-2, 2, (4, heads, units, n))
        query, key, value, turned = outer @ inner
        output = turned.transpose(0, 2, 1)
        sizes = list(np.abs(outer) @ np.abs(inner))
        sizes[3] = sizes[3].transpose(0, 2, 1)
        options = dict(inner=(units, units), sizes=tuple(sizes))
        exact_factors = list(outer.astype(np.longdouble) @ inner.astype(np.longdouble))
        exact_factors[3] = exact_factors[3].transpose(0, 2, 1)
    factors = AttentionFactors(query, key, value, output, **options)
    rounding = attention_rounding(factors, alpha, arithmetic="float64")
    x = oracle.ball(rng, tokens, d, alpha * (1 - 1e-12))
    wide = x.astype(np.longdouble)  # 11 more bits
    for h in range(heads):
        factors = [m[h] for m in exact_factors]
        exact_logits = (wide @ factors[0]) @ (wide @ factors[1]).T / np.sqrt(np.longdouble(n))
        logits = x @ (query[h] @ key[h].T / n**0.5) @ x.T
        assert np.abs(logits - exact_logits).max() <= rounding.logits[h]
        # With the rounded logits given, the rest of the head is within `values`.
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        head = (weights / weights.sum(-1, keepdims=True)) @ x @ (value[h] @ output[h])
        weights = np.exp(logits.astype(np.longdouble) - logits.max(-1, keepdims=True))
        wanted = (weights / weights.sum(-1, keepdims=True)) @ wide @ factors[2] @ factors[3]
        difference = np.sqrt(np.square(head - wanted).sum(-1)).max()
        assert difference <= rounding.values[h]


def test_rounding_is_counted_where_a_network_runs_and_adds_up():
    rng = oracle.generator(1)
    factors = AttentionFactors(*(rng.uniform(-1, 1, (2, 4, 4)).astype(np.float32) for _ in range(4)))
    exact, double, single = (
        attention_rounding(factors, 2.0, arithmetic=e) for e in ("exact", "float64", "float32")
    )
    assert (exact.logits < double.logits).all()
    assert (double.logits == single.logits).all()  # both run in float64
    assert output_rounding(3.0, 4, "float32") == pytest.approx(3 * 2.0**-24)
    assert output_rounding(3.0, 4, "exact") == 0
    assert ((exact + single).values == exact.values + single.values).all()
    wide = attention_rounding(factors, 2.0, constant=True)
    assert wide.logits == pytest.approx(exact.logits * 5 / 4)


def test_rounding_names_what_is_wrong():
    ones = np.ones((1, 2, 2), np.float32)
    broken = ones.copy()
    broken[0, 1, 0] = np.nan
    with pytest.raises(StrongTicketError, match=r"key\[0, 1, 0\] is nan"):
        attention_rounding(AttentionFactors(ones, broken, ones, ones), 1.0)
    with pytest.raises(StrongTicketError, match="arithmetic='float16': expected one of exact"):
        unit_of("float16")


@pytest.mark.parametrize("exponent", [-1000, -600, -3, 0, 500, 1000])
def test_the_joint_bound_at_any_scale(exponent):
    """Squares of such numbers overflow or underflow; the bound still scales with its terms."""
    rng = oracle.generator(0)
    a, b, c = (rng.standard_normal((3, 3)) for _ in range(3))

    def bound(shift):
        scaled = np.ldexp(a, shift), np.ldexp(b, shift // 2), np.ldexp(c, shift - shift // 2)
        return supremum_bound(
            [3, 3], [Term((scaled[0],)), Term((scaled[0],), scaled[1:], np.ldexp(9.0, shift))]
        )

    assert bound(exponent) == pytest.approx(np.ldexp(bound(0), exponent), rel=1e-6)


def test_terms_of_very_different_size_are_all_counted():
    tiny, large = np.full((1, 1), 1e-200), np.ones((1, 1))
    for terms in (Term((large,)), Term((tiny,)), Term((large,))), (Term((tiny,), (large, 2 * large), 2.0),):
        assert supremum_bound([1, 1], list(terms)) == pytest.approx(2, rel=1e-6)
    assert supremum_bound([1], [Term((tiny,))]) == pytest.approx(1e-200, rel=1e-9)
    assert supremum_bound([1], [Term((np.full((1, 1), np.inf),))]) == np.inf
