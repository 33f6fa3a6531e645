"""Random instances obey every inequality of the paper; the tight forms are below the printed ones and attained."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import theory_oracles as oracle

from strongticket.errors import StrongTicketError
from strongticket.theory import lemmas

seeds = st.integers(0, 2**32 - 1)
small = st.integers(1, 6)
errors = st.floats(1e-6, 3.0)
SLACK = 1 + 1e-9


@given(seeds, small, small)
def test_a_pruned_layer_errs_no_more_than_lemma_2_says(seed, d1, d2):
    rng = oracle.generator(seed)
    w, x = rng.standard_normal((d2, d1)), oracle.ball(rng, 1, d1, 1.0)[0]
    off = rng.uniform(0, 0.01)
    up, down = (off * rng.choice([-1, 1, rng.uniform(-1, 1)], (d2, d1)) for _ in range(2))
    # Units that keep one input each make W·relu(x) and −W·relu(−x), one subset sum for an entry.
    pruned = (w + up) @ np.maximum(x, 0) + (down - w) @ np.maximum(-x, 0)
    tight = lemmas.relu_layer_error_tight(off, d1, d2)
    assert np.linalg.norm(pruned - w @ x) <= tight * SLACK + 1e-12
    assert tight <= lemmas.relu_layer_error(off, d1, d2)
    assert np.linalg.norm(np.full((d2, d1), off) @ np.full(d1, d1**-0.5)) == pytest.approx(tight)
    assert lemmas.relu_layer_error(0.3 / (2 * d1 * d2), d1, d2) == pytest.approx(0.3)


@given(seeds, small, st.integers(1, 7), errors)
def test_softmax_moves_no_more_than_lemmas_5_and_8_say(seed, d, tokens, error):
    rng = oracle.generator(seed)
    alpha = rng.uniform(0.3, 3)
    x, allowed = oracle.ball(rng, tokens, d, alpha), oracle.mask(rng, 1, tokens)
    logits = rng.normal(0, rng.choice([0.1, 1, 5]), (1, tokens))
    moved = error * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], (1, tokens))
    p, q = oracle.softmax(logits, allowed), oracle.softmax(logits + moved, allowed)

    ratio = np.abs(1 - q[allowed] / p[allowed]).max()
    assert ratio <= lemmas.softmax_ratio(error) * SLACK + 1e-12
    assert np.abs(p - q).sum() <= lemmas.softmax_l1_tight(error) * SLACK + 1e-12
    change = np.linalg.norm((p - q) @ x)
    assert change <= lemmas.softmax_change_tight(error, alpha) * SLACK + 1e-12
    assert lemmas.softmax_change_tight(error, alpha) <= lemmas.softmax_change(error, alpha, d)
    if error <= 0.5:
        assert lemmas.softmax_change(error, alpha, d) <= lemmas.softmax_change_linear(error, alpha, d)


@given(errors, st.floats(0.1, 5))
def test_the_tight_softmax_form_is_attained_by_two_opposite_tokens(error, alpha):
    x, everything = np.array([[alpha], [-alpha]]), np.ones((1, 2), bool)
    # Half the mass on each side after half of the move: from −ε/2 apart to +ε/2 apart.
    p, q = (oracle.softmax(np.array([[s * error, -s * error]]) / 2, everything) for s in (-1, 1))
    assert np.linalg.norm((p - q) @ x) == pytest.approx(lemmas.softmax_change_tight(error, alpha))


@given(seeds, small, small, st.integers(1, 4), st.integers(1, 5))
def test_attention_errs_no_more_than_theorem_9_says(seed, d1, d2, heads, tokens):
    rng = oracle.generator(seed)
    alpha = max(d1, d2) ** 0.5 * rng.uniform(1, 1.5)
    qk, vo = oracle.target_heads(rng, heads, d1, d2, rng.integers(1, 5))
    qk_error = rng.uniform(-1, 1, qk.shape) * 10 ** rng.uniform(-4, -1)
    vo_error = rng.uniform(-1, 1, vo.shape) * 10 ** rng.uniform(-4, -1)
    x, allowed = oracle.ball(rng, tokens, d1, alpha), oracle.mask(rng, tokens)

    qk_max, vo_max = np.abs(qk_error).max((1, 2)), np.abs(vo_error).max((1, 2))
    moved = np.abs(x @ qk_error[0] @ x.T).max()
    assert moved <= lemmas.logit_error(qk_max[0], alpha, d1) * SLACK
    assert oracle.largest_row(x @ vo_error[0]) <= lemmas.value_error(vo_max[0], alpha, d1, d2) * SLACK

    source = oracle.attention(qk + qk_error, vo + vo_error, x, allowed)
    error = oracle.largest_row(source - oracle.attention(qk, vo, x, allowed))
    norms = [[oracle.spectral(m) for m in group] for group in (qk_error, vo_error, vo)]
    tight = lemmas.attention_error_tight(*norms, alpha)
    assert error <= tight * SLACK
    assert tight <= lemmas.attention_error(list(qk_max), list(vo_max), alpha, d1, d2) * SLACK


def test_theorem_9_gives_epsilon_at_its_own_accuracies():
    heads, alpha, d1, d2, epsilon = 3, 2.5, 4, 6, 0.3
    qk = epsilon / (8 * heads * alpha**3 * d1**1.5)  # (14)
    vo = epsilon / (2 * heads * alpha * d1 * d2**0.5)  # (15)
    assert lemmas.attention_error([qk] * heads, [vo] * heads, alpha, d1, d2) <= epsilon


@given(seeds, small, st.integers(1, 4), st.floats(0.01, 0.9))
def test_relu_networks_err_no_more_than_theorem_10_says(seed, d, layers, epsilon):
    rng = oracle.generator(seed)
    alpha = rng.uniform(1, 3)
    target = [(oracle.unit_norm(rng, d, d), None) for _ in range(layers)]
    source = [(w + epsilon / (2 * layers) * oracle.unit_norm(rng, d, d), None) for w, _ in target]
    x = oracle.ball(rng, 5, d, alpha)
    error = oracle.largest_row(oracle.relu_network(source, x) - oracle.relu_network(target, x))
    tight = lemmas.relu_error_tight(epsilon, alpha, layers)
    assert error <= tight * SLACK
    assert tight <= lemmas.relu_error(epsilon, alpha) * SLACK


def test_theorem_10_is_attained_in_one_dimension_and_its_printed_form_needs_a_large_ball():
    epsilon, layers, alpha = 0.5, 3, 0.2
    one, more = np.ones((1, 1)), np.ones((1, 1)) * (1 + epsilon / (2 * layers))
    x = np.array([[alpha]])
    error = oracle.relu_network([(more, None)] * layers, x) - oracle.relu_network([(one, None)] * layers, x)
    assert error.item() == pytest.approx(lemmas.relu_error_tight(epsilon, alpha, layers))
    assert error.item() > math.expm1(alpha * epsilon / 2)
    with pytest.raises(StrongTicketError, match="Use relu_error_tight"):
        lemmas.relu_error(epsilon, alpha)


@given(seeds, small, st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))
def test_blocks_obey_theorem_11_and_14(seed, d, heads, tokens, layers):
    rng = oracle.generator(seed)
    alpha = d**0.5 * rng.uniform(1, 1.3)
    qk, vo = oracle.target_heads(rng, heads, d, d, 2)
    target = [(oracle.unit_norm(rng, d, d), None) for _ in range(layers)]
    x, allowed = oracle.ball(rng, tokens, d, alpha), oracle.mask(rng, tokens)
    attended = oracle.attention(qk, vo, x, allowed)
    assert oracle.largest_row(attended) <= alpha * heads * SLACK
    assert alpha * heads <= lemmas.attention_radius(alpha, heads, d) * SLACK

    qk_source, vo_source = (m + rng.uniform(-1, 1, m.shape) * 1e-3 for m in (qk, vo))
    source = [(w + rng.uniform(-1, 1, w.shape) * 1e-3, None) for w, _ in target]
    attended_source = oracle.attention(qk_source, vo_source, x, allowed)
    y = attended_source + x
    assert oracle.largest_row(y) <= lemmas.feed_forward_radius(alpha, heads, d)
    attention = oracle.largest_row(attended_source - attended)
    forward = oracle.largest_row(oracle.relu_network(source, y) - oracle.relu_network(target, y))
    made = oracle.block(qk_source, vo_source, source, x, allowed)
    wanted = oracle.block(qk, vo, target, x, allowed)
    assert oracle.largest_row(made - wanted) <= lemmas.block_error(attention, forward) * SLACK + 1e-12
    assert oracle.largest_row(wanted) <= math.exp(lemmas.block_radius_log(2, alpha, heads, d)) * SLACK


@given(seeds, small, st.integers(1, 3), st.integers(1, 5), st.floats(1e-4, 0.3))
def test_sensitivity_obeys_lemmas_12_and_13(seed, d, heads, tokens, size):
    rng = oracle.generator(seed)
    alpha = d**0.5 * rng.uniform(1, 1.3)
    qk, vo = oracle.target_heads(rng, heads, d, d, 2)
    layers = [(oracle.unit_norm(rng, d, d), None)]
    x, allowed = oracle.ball(rng, tokens, d, alpha), oracle.mask(rng, tokens)
    moved = x + oracle.ball(rng, tokens, d, size)
    epsilon, other = oracle.largest_row(moved - x), max(alpha, oracle.largest_row(moved))

    change = oracle.largest_row(
        oracle.attention(qk, vo, moved, allowed) - oracle.attention(qk, vo, x, allowed)
    )
    assert change <= lemmas.attention_sensitivity_tight(epsilon, alpha, heads, perturbed_radius=other) * SLACK
    assert change <= lemmas.attention_sensitivity(epsilon, other, heads, d) * SLACK
    change = oracle.largest_row(
        oracle.block(qk, vo, layers, moved, allowed) - oracle.block(qk, vo, layers, x, allowed)
    )
    assert change <= lemmas.block_sensitivity_tight(epsilon, alpha, heads, perturbed_radius=other) * SLACK
    assert change <= lemmas.block_sensitivity_proven(epsilon, other, heads, d) * SLACK


@given(st.floats(1e-6, 2), st.floats(0.1, 4), small, small)
def test_tight_sensitivities_are_below_the_printed_ones(epsilon, alpha, heads, d):
    tight = lemmas.attention_sensitivity_tight(epsilon, alpha, heads)
    assert tight <= lemmas.attention_sensitivity(epsilon, alpha, heads, d)
    assert lemmas.block_sensitivity_tight(epsilon, alpha, heads) <= lemmas.block_sensitivity_proven(
        epsilon, alpha, heads, d
    )


def test_lemma_13_as_printed_fails_in_a_small_ball_where_its_proof_does_not():
    alpha, epsilon = 0.5, 1e-3
    one = np.ones((1, 1, 1))
    x, everything = np.array([[alpha - epsilon]]), np.ones((1, 1), bool)
    change = oracle.block(one, one, [(one[0], None)], x + epsilon, everything) - oracle.block(
        one, one, [(one[0], None)], x, everything
    )
    assert change.item() == pytest.approx(4 * epsilon)
    assert change.item() > lemmas.block_sensitivity(epsilon, alpha, 1, 1)
    assert change.item() <= lemmas.block_sensitivity_proven(epsilon, alpha, 1, 1)


def test_lemma_7_is_the_share_of_an_entry():
    assert lemmas.weight_error(0.5, 2, 5) == 0.05


def test_what_overflows_is_infinite():
    assert lemmas.softmax_change(1e6, 1.0, 4) == math.inf


def test_lemma_5_ends_at_one_half():
    with pytest.raises(StrongTicketError, match="Lemma 5 holds up to 1/2"):
        lemmas.softmax_change_linear(0.6, 1.0, 2)


@pytest.mark.parametrize("alpha", [0.8, 1.0, 2.0])
def test_lemma_13_as_printed_fails_and_as_proven_holds(alpha):
    """One head, one dimension, weights 1: the example of docs/theory.md, on the network itself."""
    share, step = 0.5 + 1 / (8 * alpha**2), 1e-6

    def block(query, above, below):
        # As many tokens as it takes for the + ones to have this mass under softmax.
        count = share / (1 - share) * math.exp(-2 * alpha**2)
        up, down = count * math.exp(query * above), math.exp(query * below)
        return 2 * (query + (up * above + down * below) / (up + down))

    moved = block(alpha + step, alpha + step, -alpha - step) - block(alpha, alpha, -alpha)
    assert moved / step == pytest.approx(4 * alpha**2 + 2 + 1 / (4 * alpha**2), rel=1e-3)
    assert moved > lemmas.block_sensitivity(step, alpha, 1, 1)
    assert moved <= lemmas.block_sensitivity_proven(step, alpha + step, 1, 1)


def test_theorem_14_leaves_room_for_lemma_13_as_proven():
    for alpha, heads, d1 in ((1.0, 1, 1), (2.0, 2, 4), (4.0, 3, 16)):
        for block in (2, 3):
            beta = math.exp(lemmas.block_radius_log(block, alpha, heads, d1))
            allowed = 16 * heads * d1**0.5 * beta**2
            before = 1 / (2 * allowed)  # by which the source's stream may leave the ball
            assert (
                lemmas.block_sensitivity_proven(before, beta + before, heads, d1) <= 0.53 * allowed * before
            )
