"""ReLU networks, blocks and many blocks: certificates are above every error found and carry true radii."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import theory_oracles as oracle

from strongticket.errors import StrongTicketError
from strongticket.theory import (
    AttentionFactors,
    AttentionRounding,
    BlockWeights,
    certify_relu,
    certify_transformer,
)
from strongticket.theory.attention_step import attention_output, attention_step
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.region import Region, ball
from strongticket.theory.relu_certificate import relu_step

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
    moved = x + oracle.ball(rng, 300, dims[0], 0.1)
    step = relu_step(target, source, ball(dims[0], alpha), ball(dims[0], 0.1))
    assert oracle.largest_row(wanted) <= step.output.radius()
    assert oracle.largest_row(oracle.relu_network(source, moved) - wanted) <= step.error.radius()
    if dims[0] == dims[-1]:
        step = relu_step(target, source, ball(dims[0], alpha), ball(dims[0], 0.1), residual=True)
        change = oracle.relu_network(source, moved) + moved - wanted - x
        assert oracle.largest_row(change) <= step.error.radius()
        assert oracle.largest_row(wanted + x) <= step.output.radius()


def test_one_relu_layer_is_certified_within_twice_what_random_inputs_show():
    rng = oracle.generator(1)
    target = relu_target(rng, [6, 6], False)
    source = relu_source(rng, target, 1e-3)
    x = oracle.ball(rng, 20000, 6, 1.0)
    largest = oracle.largest_row(oracle.relu_network(source, x) - oracle.relu_network(target, x))
    assert largest <= certify_relu(target, source, 1.0).bound <= 2 * largest


def test_float32_relu_networks_cost_one_rounding_of_the_output():
    rng = oracle.generator(2)
    target = relu_target(rng, [5, 7, 3], True)
    source = relu_source(rng, target, 0.0)
    exact, double, single = (
        certify_relu(target, source, 2.0, arithmetic=e) for e in ("exact", "float64", "float32")
    )
    x = oracle.ball(rng, 500, 5, 2.0)
    wanted = oracle.relu_network(target, x)
    error = oracle.largest_row(oracle.relu_network(source, x).astype(np.float32) - wanted)
    assert exact.bound < double.bound < 1e-11 < error <= single.bound
    assert single.bound <= 2.0**-23 * 4 * oracle.largest_row(wanted)
    assert single.to_dict()["arithmetic"] == "float32"


def block_pair(rng, d, heads, layers, size, constant=False, gain=0.5):
    qk = gain * rng.standard_normal((heads, d + constant, d + constant)) / d**0.5
    vo = gain * rng.standard_normal((heads, d + constant, d)) / d**0.5
    target = relu_target(rng, [d] * (layers + 1), constant)
    made = tuple(m + size * rng.uniform(-1, 1, m.shape) for m in (qk, vo))
    return (
        BlockWeights(qk, vo, constant, layers=tuple(target)),
        BlockWeights(*made, constant, layers=tuple(relu_source(rng, target, size))),
    )


def run(blocks, x, allowed, read=None):
    """read: filled with the shortest vector that each norm is given"""
    for b in blocks:
        x = oracle.block(b.query_key, b.value_output, b.layers, x, allowed, b.constant, b.norm, read)
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


@settings(max_examples=25)
@given(seeds, st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_attention_stays_in_the_regions_computed_for_it(seed, d, heads, constant):
    rng = oracle.generator(seed)
    alpha, moves = rng.uniform(0.2, 3), 10 ** rng.uniform(-4, 0.5)
    target, source = block_pair(rng, d, heads, 1, 10 ** rng.uniform(-5, 0), constant, gain=2.0)
    # Inputs and errors from ellipsoids that are long in some directions and short in others.
    shape, error_shape = (rng.standard_normal((d, d)) * rng.uniform(0.1, 1, d) for _ in range(2))
    together = Region(d, (alpha * shape, moves * error_shape))
    found = attention_step(target, source, together, Region(d, (moves * error_shape,)), None)
    reach = attention_output(target, Region(d, (alpha * shape,)))
    outputs, changes = [], []
    for _ in range(30):
        x = oracle.ball(rng, 4, d, alpha) @ shape
        moved = x + oracle.ball(rng, 4, d, moves) @ error_shape
        allowed = oracle.mask(rng, 4)
        before = oracle.attention(target.query_key, target.value_output, x, allowed, constant=constant)
        after = oracle.attention(source.query_key, source.value_output, moved, allowed, constant=constant)
        outputs.append(before)
        changes.append(after - before)
    assert_within(np.concatenate(outputs), reach)
    assert_within(np.concatenate(changes), found)


def assert_within(vectors, region):
    """No vector is further out, in its own direction, than the region reaches."""
    around, radius = region.ellipsoid(), region.radius()
    for vector in vectors[np.linalg.norm(vectors, axis=1) > 0]:
        direction = vector / np.linalg.norm(vector)
        reach = sum(np.linalg.norm(shape @ direction) for shape in region.shapes) + region.ball
        assert vector @ direction <= reach * (1 + 1e-9)
        assert np.linalg.norm(around @ direction) >= reach * (1 - 1e-12)
        assert radius >= reach * (1 - 1e-12)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    seeds,
    st.integers(2, 4),
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from(["layer", "rms"]),
    st.booleans(),
)
def test_no_input_beats_the_certificate_of_blocks_with_norms(seed, d, heads, blocks, kind, constant):
    rng = oracle.generator(seed)
    norm = Normalisation(kind, 10 ** rng.uniform(-6, -1))
    alpha, size = rng.uniform(0.2, 3), 10 ** rng.uniform(-6, -1)
    pairs = [block_pair(rng, d, heads, 1, size, constant) for _ in range(blocks)]
    target, source = ([replace(block, norm=norm) for block in half] for half in zip(*pairs, strict=True))
    for tokens in (1, 2, 4):
        x, allowed, read = oracle.ball(rng, tokens, d, alpha), oracle.mask(rng, tokens), []
        wanted, made = run(target, x, allowed), run(source, x, allowed, read)
        found = certify_transformer(target, source, alpha, floors=read)
        assert found.floors == tuple(read)
        assert oracle.largest_row(made - wanted) <= found.bound
        assert oracle.largest_row(wanted) <= found.terms["radius"][-1]
        final = [oracle.normalise(z, norm) for z in (made, wanted)]
        last = np.linalg.norm(made @ norm.centring(d), axis=1).min()
        behind = certify_transformer(target, source, alpha, floors=[*read, last], final_norm=norm)
        assert oracle.largest_row(final[0] - final[1]) <= behind.bound


def test_rounding_counts_however_far_off_the_logits_are():
    """Where errors are so large that only the outputs' size bounds them, the source still rounds."""
    rng = oracle.generator(4)
    qk, vo = rng.standard_normal((1, 3, 3)), rng.standard_normal((1, 3, 3))
    target, source = BlockWeights(qk, vo), BlockWeights(1e6 * qk, 5 * vo)
    rounding = AttentionRounding(np.zeros(1), np.full(1, 0.5))
    steps = (attention_step(target, source, ball(3, 2.0), Region(3), each) for each in (None, rounding))
    without, counted = (step.radius() for step in steps)
    assert counted == pytest.approx(without + 0.5, rel=1e-6)


@given(seeds, st.integers(1, 6), st.sampled_from(["layer", "rms"]), st.floats(0, 1))
def test_norms_are_lipschitz_above_a_floor_and_end_in_their_region(seed, d, kind, floor):
    rng = oracle.generator(seed)
    norm = Normalisation(kind, 10 ** rng.uniform(-5, 0))
    x, y = rng.standard_normal((2, 200, d)) * 10 ** rng.uniform(-2, 2)
    lengths = np.minimum(*(np.linalg.norm(z @ norm.centring(d), axis=1) for z in (x, y)))
    apart = np.linalg.norm(oracle.normalise(x, norm) - oracle.normalise(y, norm), axis=1)
    allowed = norm.lipschitz(d, floor) * np.linalg.norm(x - y, axis=1)
    assert (apart <= allowed * (1 + 1e-9) + 1e-12)[lengths >= floor].all()
    assert_within(oracle.normalise(x, norm), norm.output(d))


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
    target = BlockWeights(*merged, layers=layers)
    source = BlockWeights(*merged, factors=factors, layers=source_layers)
    exact = certify_transformer([target], [source], 1.0)
    single = certify_transformer([target], [source], 1.0, arithmetic="float32")
    assert exact.bound < 1e-10 < single.bound < 1
    with pytest.raises(StrongTicketError, match="the source's attention has no factors"):
        certify_transformer(
            [target], [BlockWeights(*merged, layers=source_layers)], 1.0, arithmetic="float32"
        )


def test_what_is_wrong_is_named():
    rng = oracle.generator(5)
    target, source = block_pair(rng, 3, 2, 1, 0.1)
    normed = [replace(block, norm=Normalisation("rms")) for block in (target, source)]
    with pytest.raises(StrongTicketError, match="the source's None: expected the same"):
        certify_transformer(normed[:1], [source], 1.0)
    with pytest.raises(StrongTicketError, match="floors has 1 entries, the network has 2 norms"):
        certify_transformer(normed[:1], normed[1:], 1.0, floors=[1.0])
    with pytest.raises(StrongTicketError, match="1 target and 2 source blocks"):
        certify_transformer([target], [source, source], 1.0)
    narrow = tuple(relu_target(rng, [3, 2], False))
    narrow_pair = (
        [replace(target, layers=narrow)],
        [replace(source, layers=tuple(relu_source(rng, narrow, 0.1)))],
    )
    with pytest.raises(StrongTicketError, match=r"last layer of block 1 has shape .* expected \(3, any\)"):
        certify_transformer(*narrow_pair, 1.0)
    wide = block_pair(rng, 4, 2, 1, 0.1)
    with pytest.raises(StrongTicketError, match=r"query_key of block 2 has shape .* expected \(any, 3, 3\)"):
        certify_transformer([target, wide[0]], [source, wide[1]], 1.0)
    with pytest.raises(StrongTicketError, match="source has 1 layers for a target of 1: expected twice"):
        certify_relu(target.layers, target.layers, 1.0)
    with pytest.raises(StrongTicketError, match="for a target of 0"):
        certify_relu([], [], 1.0)
    with pytest.raises(StrongTicketError, match=r"source\[1\] has shape \(3, 5\): expected \(3, 6\)"):
        certify_relu(target.layers, [source.layers[0], (np.ones((3, 5)), None)], 1.0)
    with pytest.raises(StrongTicketError, match=r"target\[0\] bias has shape \(2,\): expected \(3\)"):
        certify_relu([(np.ones((3, 3)), np.ones(2))], source.layers, 1.0)
    with pytest.raises(StrongTicketError, match=r"target\[0\]\[0, 0\] is inf"):
        certify_relu([(np.full((3, 3), np.inf), None)], source.layers, 1.0)


def test_blocks_too_large_for_any_bound_say_so():
    layers = ((np.full((2, 2), 1e100), None), (np.full((2, 2), 1e100), None))
    block = BlockWeights(np.full((1, 2, 2), 1e100), np.full((1, 2, 2), 1e100), layers=layers)
    source = BlockWeights(-block.query_key, -block.value_output, layers=layers * 2)
    found = certify_transformer([block] * 3, [source] * 3, 1.0)
    assert found.bound == np.inf
    json.dumps(found.to_dict(), allow_nan=False)
