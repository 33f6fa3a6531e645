"""ReLU networks, blocks and many blocks: certificates are above every error found and carry true radii."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.theory import AttentionFactors, BlockWeights, certify_relu, certify_transformer
from strongticket.theory.relu_certificate import lipschitz, output_radius
from strongticket.theory.transformer_certificate import attention_gain, attention_lipschitz
from tests import theory_oracles as oracle

seeds = st.integers(0, 2**32 - 1)


def relu_source(rng, target, size, mixing=0):
    """2L layers near the L of the target: a unit of each sign for every input (and the constant), plus noise."""
    source = []
    for weight, bias in target:
        out, width = weight.shape
        inner = np.vstack([np.eye(width), -np.eye(width), rng.standard_normal((mixing, width))])
        outer = np.hstack([weight, -weight, np.zeros((out, mixing))])
        if bias is not None:
            inner, outer = np.vstack([inner, np.zeros((1, width))]), np.hstack([outer, bias[:, None]])
        inner_bias = None if bias is None else np.append(np.zeros(len(inner) - 1), 1.0)
        source += [(inner, inner_bias), (outer + size * rng.uniform(-1, 1, outer.shape), None)]
    return source


def relu_target(rng, dims, bias):
    return [
        (rng.standard_normal((b, a)) / a**0.5, rng.standard_normal(b) if bias else None)
        for a, b in itertools.pairwise(dims)
    ]


@settings(max_examples=40)
@given(seeds, st.lists(st.integers(1, 5), min_size=2, max_size=4), st.booleans(), st.integers(0, 2))
def test_no_input_beats_the_relu_certificate(seed, dims, bias, mixing):
    rng = oracle.generator(seed)
    alpha, size = rng.uniform(0.2, 3), 10 ** rng.uniform(-4, -0.5)
    target = relu_target(rng, dims, bias)
    source = relu_source(rng, target, size, mixing)
    found = certify_relu(target, source, alpha)
    x = oracle.ball(rng, 300, dims[0], alpha)
    made, wanted = oracle.relu_network(source, x), oracle.relu_network(target, x)
    assert oracle.largest_row(made - wanted) <= found.bound
    if not mixing and oracle.spectral(target[0][0]) <= 1 and not bias:
        assert found.bound <= found.paper_bound
    assert oracle.largest_row(wanted) <= output_radius(target, alpha) * (1 + 1e-9)
    moved = x + oracle.ball(rng, 300, dims[0], 0.1)
    change = np.linalg.norm(oracle.relu_network(target, moved) - wanted, axis=1)
    assert (change <= lipschitz(target) * np.linalg.norm(moved - x, axis=1) * (1 + 1e-9)).all()


def test_one_relu_layer_is_certified_within_twice_what_random_inputs_show():
    rng = oracle.generator(1)
    target = relu_target(rng, [6, 6], False)
    source = relu_source(rng, target, 1e-3)
    x = oracle.ball(rng, 20000, 6, 1.0)
    largest = oracle.largest_row(oracle.relu_network(source, x) - oracle.relu_network(target, x))
    assert largest <= certify_relu(target, source, 1.0).bound <= 2 * largest


def test_float32_relu_networks_stay_within_their_rounding():
    rng = oracle.generator(2)
    target = [(w.astype(np.float32), b.astype(np.float32)) for w, b in relu_target(rng, [5, 7, 3], True)]
    source = [
        (w.astype(np.float32), None if b is None else b.astype(np.float32))
        for w, b in relu_source(rng, target, 0.0)
    ]
    exact, single = (certify_relu(target, source, 2.0, evaluation=e) for e in ("exact", "float32"))
    x = oracle.ball(rng, 500, 5, 2 * (1 - 1e-6)).astype(np.float32)
    wide = [(w.astype(np.float64), b.astype(np.float64)) for w, b in target]
    made = x
    for index, (weight, bias) in enumerate(source):
        made = (np.maximum(made, 0) if index else made) @ weight.T + (np.float32(0) if bias is None else bias)
    error = oracle.largest_row(made - oracle.relu_network(wide, x.astype(np.float64)))
    assert made.dtype == np.float32
    assert exact.bound < 1e-12 < error <= single.bound < 1e-3


def block_pair(rng, d, heads, layers, size, constant=False, gain=0.5):
    qk = gain * rng.standard_normal((heads, d + constant, d + constant)) / d**0.5
    vo = gain * rng.standard_normal((heads, d + constant, d)) / d**0.5
    target = relu_target(rng, [d] * (layers + 1), constant)
    made = tuple(m + size * rng.uniform(-1, 1, m.shape) for m in (qk, vo))
    return (
        BlockWeights(qk, vo, tuple(target), constant),
        BlockWeights(*made, tuple(relu_source(rng, target, size)), constant),
    )


def run(blocks, x, allowed):
    for b in blocks:
        x = oracle.block(b.query_key, b.value_output, b.layers, x, allowed, b.constant)
    return x


@settings(max_examples=10)
@given(seeds, st.integers(1, 4), st.integers(1, 2), st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_no_input_beats_the_certificate_of_many_blocks(seed, d, heads, blocks, layers, constant):
    rng = oracle.generator(seed)
    alpha, size = rng.uniform(0.2, 2), 10 ** rng.uniform(-5, -1)
    pairs = [block_pair(rng, d, heads, layers, size, constant) for _ in range(blocks)]
    target, source = zip(*pairs, strict=True)
    found = certify_transformer(target, source, alpha)
    for tokens in (1, 2, 5):
        for _ in range(10):
            x, allowed = oracle.ball(rng, tokens, d, alpha), oracle.mask(rng, tokens)
            for depth in range(1, blocks + 1):
                wanted, made = run(target[:depth], x, allowed), run(source[:depth], x, allowed)
                assert oracle.largest_row(made - wanted) <= found.terms["error"][depth - 1] * (1 + 1e-9)
                assert oracle.largest_row(wanted) <= found.terms["radius"][depth - 1] * (1 + 1e-9)
                assert oracle.largest_row(made) <= found.terms["source_radius"][depth - 1] * (1 + 1e-9)
    assert found.bound == pytest.approx(found.terms["error"][-1])


@settings(max_examples=15)
@given(seeds, st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_gain_and_lipschitz_bound_the_attention(seed, d, heads, constant):
    rng = oracle.generator(seed)
    alpha = rng.uniform(0.2, 3)
    block, _ = block_pair(rng, d, heads, 1, 0.0, constant, gain=2.0)
    gain, slope = attention_gain(block, alpha), attention_lipschitz(block, alpha)
    for _ in range(30):
        x, allowed = oracle.ball(rng, 4, d, alpha), oracle.mask(rng, 4)
        step = oracle.ball(rng, 4, d, 10 ** rng.uniform(-4, 0))
        moved = x + step
        moved *= np.minimum(1, alpha / np.linalg.norm(moved, axis=1, keepdims=True))
        before, after = (
            oracle.attention(block.query_key, block.value_output, z, allowed, constant=constant)
            for z in (x, moved)
        )
        assert oracle.largest_row(before) <= gain
        assert (
            oracle.largest_row(after - before) <= slope * oracle.largest_row(moved - x) * (1 + 1e-7) + 1e-12
        )


def test_a_block_is_certified_far_below_the_papers_bound_and_deeper_is_worse():
    rng = oracle.generator(3)
    pairs = [block_pair(rng, 8, 2, 1, 1e-6) for _ in range(3)]
    target, source = zip(*pairs, strict=True)
    bounds = [certify_transformer(target[:n], source[:n], 3.0) for n in (1, 2, 3)]
    assert bounds[0].bound < bounds[1].bound < bounds[2].bound
    assert bounds[0].paper_bound > 20 * bounds[0].bound
    assert bounds[2].paper_bound > bounds[2].bound


def test_evaluation_in_float32_needs_factors_and_costs_a_little():
    rng = oracle.generator(4)
    d, n = 4, 8
    factors = AttentionFactors(
        *(rng.uniform(-1, 1, (1, d, n)).astype(np.float32) for _ in range(3)),
        rng.uniform(-1, 1, (1, n, d)).astype(np.float32),
    )
    query, key, value, output = (
        m.astype(np.float64) for m in (factors.query, factors.key, factors.value, factors.output)
    )
    layers = tuple(relu_target(rng, [d, d], False))
    source_layers = tuple(relu_source(rng, layers, 0.0))
    merged = query @ key.transpose(0, 2, 1) / n**0.5, value @ output
    target, source = BlockWeights(*merged, layers), BlockWeights(*merged, source_layers, factors=factors)
    exact = certify_transformer([target], [source], 1.0)
    single = certify_transformer([target], [source], 1.0, evaluation="float32", tokens=16)
    assert exact.bound < 1e-10 < single.bound < 1
    with pytest.raises(StrongTicketError, match="block 1 of the source has no factors"):
        certify_transformer(
            [target], [BlockWeights(*merged, source_layers)], 1.0, evaluation="float32", tokens=16
        )


def test_what_is_wrong_is_named():
    rng = oracle.generator(5)
    target, source = block_pair(rng, 3, 2, 1, 0.1)
    with pytest.raises(StrongTicketError, match="1 target and 2 source blocks"):
        certify_transformer([target], [source, source], 1.0)
    with pytest.raises(StrongTicketError, match="expected self-attention on width 3, constant the same"):
        certify_transformer(
            [target],
            [BlockWeights(source.query_key, source.value_output, source.layers, constant=True)],
            1.0,
        )
    narrow = tuple(relu_target(rng, [3, 2], False))
    with pytest.raises(StrongTicketError, match="layers map 3 to 2"):
        certify_transformer([BlockWeights(target.query_key, target.value_output, narrow)], [source], 1.0)
    with pytest.raises(StrongTicketError, match="source has 1 layers for a target of 1: expected 2"):
        certify_relu(target.layers, target.layers, 1.0)
    with pytest.raises(StrongTicketError, match="target has no layers"):
        certify_relu([], source.layers, 1.0)
    with pytest.raises(StrongTicketError, match=r"source\[1\] has shape \(3, 5\): expected \(any, 6\)"):
        certify_relu(target.layers, [source.layers[0], (np.ones((3, 5)), None)], 1.0)
    with pytest.raises(StrongTicketError, match=r"target\[0\] bias has shape \(2,\): expected \(3\)"):
        certify_relu([(np.ones((3, 3)), np.ones(2))], source.layers, 1.0)
    with pytest.raises(StrongTicketError, match=r"target\[0\]\[\(0, 0\)\] is inf"):
        certify_relu([(np.full((3, 3), np.inf), None)], source.layers, 1.0)


def test_blocks_too_large_for_any_bound_say_so():
    layers = ((np.full((2, 2), 1e100), None), (np.full((2, 2), 1e100), None))
    block = BlockWeights(np.full((1, 2, 2), 1e100), np.full((1, 2, 2), 1e100), layers)
    source = BlockWeights(-block.query_key, -block.value_output, layers * 2)
    found = certify_transformer([block] * 3, [source] * 3, 1.0)
    assert found.bound == np.inf
    json.dumps(found.to_dict(), allow_nan=False)
