"""A certificate is above every error that random inputs, masks and lengths show, and far below the paper's bound."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import theory_oracles as oracle

from strongticket.errors import StrongTicketError
from strongticket.theory import AttentionFactors, AttentionWeights, certify_attention, lemmas

seeds = st.integers(0, 2**32 - 1)


def certify(target_qk, source_qk, target_vo, source_vo, radius, constant=False):
    weights = (
        AttentionWeights(target_qk, target_vo, constant),
        AttentionWeights(source_qk, source_vo, constant),
    )
    return certify_attention(*weights, radius)


def perturbed(rng, matrix, size):
    return matrix + size * rng.uniform(-1, 1, matrix.shape)


@pytest.mark.slow
@settings(max_examples=25)
@given(seeds, st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.booleans(), st.floats(-4, 0.5))
def test_no_input_mask_or_length_beats_the_certificate(seed, d1, d2, heads, constant, log_size):
    rng = oracle.generator(seed)
    alpha, size = rng.uniform(0.3, 3), 10**log_size
    qk = rng.standard_normal((heads, d1 + constant, d1 + constant))
    vo = rng.standard_normal((heads, d1 + constant, d2))
    qk_source, vo_source = perturbed(rng, qk, size), perturbed(rng, vo, size * rng.choice([0.01, 1, 10]))
    bound = certify(qk, qk_source, vo, vo_source, alpha, constant=constant).bound
    for tokens in (1, 2, 3, 9):
        for _ in range(10):
            x, allowed = oracle.ball(rng, tokens, d1, alpha), oracle.mask(rng, tokens)
            made, wanted = (
                oracle.attention(*weights, x, allowed, constant=constant)
                for weights in ((qk_source, vo_source), (qk, vo))
            )
            assert oracle.largest_row(made - wanted) <= bound


@settings(max_examples=15)
@given(seeds, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_cross_attention_reads_inputs_of_two_widths(seed, d, context, constant):
    rng = oracle.generator(seed)
    alpha = float(rng.uniform(0.2, 3))
    qk = rng.standard_normal((2, d + constant, context + constant))
    vo = rng.standard_normal((2, context + constant, 3))
    source = perturbed(rng, qk, 0.1), perturbed(rng, vo, 0.1)
    bound = certify(qk, source[0], vo, source[1], alpha, constant=constant).bound
    for _ in range(20):
        x, y = oracle.ball(rng, 3, d, alpha), oracle.ball(rng, 5, context, alpha)
        allowed = oracle.mask(rng, 3, 5)
        made, wanted = (
            oracle.attention(*weights, x, allowed, context=y, constant=constant)
            for weights in (source, (qk, vo))
        )
        assert oracle.largest_row(made - wanted) <= bound


def test_the_steps_of_the_proof_hold():
    """(p′ − p)Y·b ≤ α²(‖a‖‖b‖ + a·b)/2 with a = ΔQKᵀx: by the covariance along the path from p to p′."""
    rng = oracle.generator(5)
    for _ in range(500):
        d, tokens, alpha = rng.integers(1, 5), rng.integers(1, 8), rng.uniform(0.2, 3)
        y, a, b = oracle.ball(rng, tokens, d, alpha), rng.standard_normal(d), rng.standard_normal(d)
        logits, everything = rng.normal(0, 2, (1, tokens)), np.ones((1, tokens), bool)
        p, q = oracle.softmax(logits, everything), oracle.softmax(logits + y @ a, everything)
        limit = alpha**2 * (np.linalg.norm(a) * np.linalg.norm(b) + a @ b) / 2
        assert ((q - p) @ y @ b).item() <= limit + 1e-12


def test_variance_and_average_share_the_radius():
    """p′Y(b + d) − pYb ≤ max over m of α²(1 − m²)c + αm‖d‖, c between b and b + d: by E y·(b + td) along the path."""
    rng = oracle.generator(6)
    for _ in range(500):
        dim, tokens, alpha = rng.integers(1, 5), rng.integers(1, 8), rng.uniform(0.2, 3)
        y, everything = oracle.ball(rng, tokens, dim, alpha), np.ones((1, tokens), bool)
        a, b, d = (rng.standard_normal(dim) * size for size in (1, 1, rng.choice([0.1, 1, 10])))
        logits = rng.normal(0, 2, (1, tokens))
        p, q = oracle.softmax(logits, everything), oracle.softmax(logits + y @ a, everything)
        c = max((np.linalg.norm(a) * np.linalg.norm(end) + a @ end) / 2 for end in (b, b + d)) * alpha**2
        moved = alpha * np.linalg.norm(d)
        m = min(1, moved / (2 * c)) if c > 0 else 1
        assert (q @ y @ (b + d) - p @ y @ b).item() <= (1 - m * m) * c + m * moved + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_errors_of_queries_and_values_together_take_less_than_their_sum(seed):
    rng = oracle.generator(seed)
    qk, vo = oracle.target_heads(rng, 2, 8, 8, 4)
    source = perturbed(rng, qk, 1e-3), perturbed(rng, vo, 2e-3)
    both = certify(qk, source[0], vo, source[1], 3.0).bound
    alone = [certify(qk, source[0], vo, vo, 3.0).bound, certify(qk, qk, vo, source[1], 3.0).bound]
    assert max(alone) * (1 - 1e-9) <= both < 0.95 * sum(alone)


def test_no_bound_exceeds_what_the_outputs_can_differ_by():
    """Logits far off and values of norm 1: the outputs have norm 3 at most, whatever the errors."""
    rng = oracle.generator(8)
    vo = np.stack([np.eye(4)] * 2) / 2
    source = rng.standard_normal((2, 4, 4)) * 1e3
    found = certify(np.zeros((2, 4, 4)), source, vo, -vo, 3.0)
    assert found.bound == pytest.approx(3.0 + 3.0, rel=1e-3)
    x = np.stack([np.full(4, 1.5), np.full(4, -1.5)])
    made, wanted = (
        oracle.attention(*weights, x, np.eye(2, dtype=bool))
        for weights in ((source, -vo), (np.zeros((2, 4, 4)), vo))
    )
    assert oracle.largest_row(made - wanted) == pytest.approx(6.0)


def test_the_covariance_step_is_attained():
    a, b = np.array([1.0, 0.2]) * 1e-6, np.array([0.3, -1.0])
    unit = a / np.linalg.norm(a) + b / np.linalg.norm(b)
    unit /= np.linalg.norm(unit)
    y, everything = np.stack([2 * unit, -2 * unit]), np.ones((1, 2), bool)
    p, q = oracle.softmax(np.zeros((1, 2)), everything), oracle.softmax((y @ a)[None], everything)
    limit = 2**2 * (np.linalg.norm(a) * np.linalg.norm(b) + a @ b) / 2
    assert ((q - p) @ y @ b).item() == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_sixteen_wide_four_heads_is_twenty_times_tighter_than_the_paper(seed):
    rng = oracle.generator(seed)
    qk, vo = oracle.target_heads(rng, 4, 16, 16, 4)
    source = perturbed(rng, qk, 1e-3), perturbed(rng, vo, 1e-3)
    found = certify(qk, source[0], vo, source[1], 4.0)
    assert found.paper_bound > 20 * found.bound
    norms = [[oracle.spectral(m) for m in group] for group in (source[0] - qk, source[1] - vo, vo)]
    assert found.bound < lemmas.attention_error_tight(*norms, 4.0)
    largest = [list(np.abs(a - b).max((1, 2))) for a, b in ((source[0], qk), (source[1], vo))]
    assert found.paper_bound == pytest.approx(lemmas.attention_error(*largest, 4.0, 16, 16))


def test_one_token_of_one_head_is_certified_sharply():
    rng = oracle.generator(0)
    qk, vo = oracle.target_heads(rng, 1, 6, 6, 3)
    source = perturbed(rng, vo, 0.1)
    found = certify(qk, qk, vo, source, 2.0)
    # T = 1 and x the worst vector: the error is α‖ΔVO‖, so the bound cannot be lower and is not higher.
    assert found.bound == pytest.approx(2 * oracle.spectral(source[0] - vo[0]), rel=1e-4)
    assert found.bound >= 2 * oracle.spectral(source[0] - vo[0])


def test_equal_weights_have_no_error_and_the_constants_column_counts_for_nothing():
    rng = oracle.generator(2)
    qk, vo = rng.standard_normal((2, 4, 4)), rng.standard_normal((2, 4, 3))
    assert certify(qk, qk, vo, vo, 1.0).bound == 0
    moved = qk.copy()
    moved[:, :, -1] += 5
    assert certify(qk, moved, vo, vo, 1.0, constant=True).bound == 0
    # Constant rows of the heads that cancel leave no error either.
    moved = vo.copy()
    moved[0, -1] += 1
    moved[1, -1] -= 1
    assert certify(qk, qk, vo, moved, 1.0, constant=True).bound < 1e-12


def test_huge_errors_are_bounded_by_what_softmax_can_do():
    qk, vo = np.zeros((1, 2, 2)), np.eye(2)[None]
    found = certify(qk, qk + 1e9, vo, vo, 3.0)
    assert found.bound == pytest.approx(6.0, rel=1e-4)
    assert found.paper_bound == np.inf
    assert json.loads(json.dumps(found.to_dict()))["paper_bound"] is None


def test_rounding_is_added_and_reported():
    rng = oracle.generator(3)
    weights = [rng.uniform(-1, 1, (2, 4, 6)).astype(np.float32) for _ in range(3)]
    factors = AttentionFactors(*weights, rng.uniform(-1, 1, (2, 6, 4)).astype(np.float32))
    query, key, value, output = (
        m.astype(np.float64) for m in (factors.query, factors.key, factors.value, factors.output)
    )
    qk, vo = query @ key.transpose(0, 2, 1) / 6**0.5, value @ output
    target, source = AttentionWeights(qk, vo), AttentionWeights(qk, vo, factors=factors)
    plain = certify_attention(target, target, 2.0)
    merged, single = (certify_attention(target, source, 2.0, arithmetic=e) for e in ("exact", "float32"))
    assert plain.bound == 0 < merged.bound < 1e-10 < single.bound < 1e-5
    assert len(single.terms["rounding"]) == 2
    assert (merged.arithmetic, single.arithmetic) == ("exact", "float32")
    x = oracle.ball(rng, 4, 4, 2.0)
    wanted = oracle.attention(qk, vo, x, np.ones((4, 4), bool))
    error = oracle.largest_row(wanted.astype(np.float32) - wanted)
    assert 0 < error <= single.bound


def test_the_record_is_plain_json():
    rng = oracle.generator(4)
    qk, vo = rng.standard_normal((2, 3, 3)), rng.standard_normal((2, 3, 3))
    record = json.loads(json.dumps(certify(qk, qk + 0.01, vo, vo - 0.01, 1.5).to_dict()))
    assert record["kind"] == "attention"
    assert record["radius"] == 1.5
    assert len(record["terms"]["softmax"]) == 2
    assert record["bound"] <= sum(record["terms"]["softmax"]) + sum(record["terms"]["values"]) + 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(source_qk=np.full((2, 3, 3), np.nan)), r"source's query_key\[0, 0, 0\] is nan"),
        (dict(radius=0.0), "radius=0.0"),
        (dict(radius=float("inf")), "radius=inf"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    qk, vo = np.ones((2, 3, 3)), np.ones((2, 3, 4))
    good = dict(target_qk=qk, source_qk=qk, target_vo=vo, source_vo=vo, radius=1.0)
    with pytest.raises(StrongTicketError, match=message):
        certify(**(good | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            dict(source_qk=np.ones((2, 3, 4)), source_vo=np.ones((2, 4, 4))),
            r"source's query_key has shape .*: expected \(2, 3, 3\)",
        ),
        (dict(source_vo=np.ones((2, 3, 5))), r"source's value_output has shape .*: expected \(2, 3, 4\)"),
        (
            dict(source_qk=np.ones((2, 3, 3), np.float32)),
            "source's query_key has dtype float32: expected float64",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, message):
    qk, vo = np.ones((2, 3, 3)), np.ones((2, 3, 4))
    good = dict(target_qk=qk, source_qk=qk, target_vo=vo, source_vo=vo, radius=1.0)
    with pytest.raises(StrongTicketError, match=message):
        certify(**(good | change))


def test_a_constant_may_be_all_there_is():
    one = np.ones((1, 1, 1))
    assert certify(one, one, one, one / 2, 1.0, constant=True).bound == pytest.approx(0.5, rel=1e-4)


def test_weights_too_large_for_any_bound_say_so():
    qk, vo = np.full((1, 2, 2), 1e250), np.full((1, 2, 2), 1e250)
    found = certify(qk, -qk, vo, -vo, 1e100)
    assert found.bound == found.paper_bound == np.inf
    stored = found.to_dict()
    assert stored["bound"] is None
    assert None in stored["terms"]["values"]
    json.dumps(stored, allow_nan=False)
