import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket.errors import StrongTicketError
from strongticket.theory import (
    attention_widths,
    factor_widths,
    measured_units,
    prenorm_widths,
    product_width,
    relu_layer_width,
    relu_widths,
    transformer_widths,
)

dims = st.integers(1, 64)
heads = st.integers(1, 16)
epsilons = st.floats(1e-6, 0.99)
radii = st.floats(0.1, 50)
constants = st.floats(0.1, 10)


def enough(width, constant, argument):
    """The least multiple of the rows that satisfies the printed inequality."""
    need = width.rows * constant * math.log(argument)
    assert width.width == width.rows * width.per_row
    assert width.width >= need * (1 - 1e-9)
    assert width.per_row == 1 or width.width - width.rows < need * (1 + 1e-9)


@given(epsilons, dims, dims, heads, radii, constants)
def test_single_layers_are_as_wide_as_printed(epsilon, d1, d2, h, alpha, c):
    enough(product_width(epsilon, d1, d2, constant=c), c, d1 * d2 / epsilon)
    enough(relu_layer_width(epsilon, d1, d2, constant=c), c, 2 * d1 * d2 / epsilon)
    for width in relu_widths(epsilon, [d1, d2, d1], constant=c):
        enough(width, c, 8 * d1 * d2 / epsilon)
    widths = attention_widths(epsilon, d1, d2, h, alpha, constant=c)
    enough(widths.n_K, c, 8 * h * alpha**3 * d1**1.5 / epsilon)
    enough(widths.n_V, c, 2 * h * alpha * d1 * d2**0.5 / epsilon)
    assert widths.n_K.rows == widths.n_V.rows == d1


@given(epsilons, dims, heads, radii, st.integers(1, 4), constants)
def test_blocks_are_as_wide_as_printed(epsilon, d, h, alpha, layers, c):
    (block,) = transformer_widths(epsilon, d, h, alpha, layers, 1, constant=c)
    enough(block.n_MHA, c, 32 * alpha**3 * h * d**1.5 / epsilon)
    enough(block.n_FC, c, 24 * alpha * layers * h * d**2.5 / epsilon)


@given(epsilons, dims, dims, heads, radii, constants)
def test_the_smaller_side_never_needs_more(epsilon, d1, d2, h, alpha, c):
    plain, small = (product_width(epsilon, d1, d2, constant=c, smaller_side=side) for side in (False, True))
    assert small.width == min(d1, d2) * plain.per_row <= plain.width
    assert small.width == product_width(epsilon, d2, d1, constant=c, smaller_side=True).width
    widths = attention_widths(epsilon, d1, d2, h, alpha, constant=c, smaller_side=True)
    enough(widths.n_V, c, 2 * h * alpha * d1 * d2**0.5 / epsilon)
    assert widths.n_V.rows == min(d1, d2)


@given(epsilons, dims, dims, heads, st.floats(0.1, 50), st.integers(1, 8), constants)
def test_narrow_heads_through_their_factors_are_as_wide_as_proven(epsilon, d1, d2, h, alpha, rank, c):
    found = factor_widths(epsilon, d1, d2, h, alpha, rank, constant=c)
    size = (max(d1, d2) * rank) ** 0.5
    enough(found.n_K, c, 5 * h * size * max(alpha**3, size) / epsilon)
    enough(found.n_V, c, 5 * h * size * max(alpha, size) / epsilon)
    assert found.failure <= epsilon
    for width, power in ((found.n_K, 3), (found.n_V, 1)):
        # Lemma 7 at this accuracy: both factors are off by at most `off` in norm, their product by 2·off + off².
        off = size * math.exp(-(width.per_row + 1e-6) / c)
        assert h * alpha**power * (2 * off + off**2) <= epsilon / 2


def test_the_radius_decides_what_theorem_3_promises():
    assert attention_widths(0.1, 4, 9, 1, 3.0).failure < 0.1
    low = attention_widths(0.1, 4, 9, 1, 0.75)
    assert not low.assumption
    assert low.failure == pytest.approx(0.1 * (2 / (8 * 0.75**3) + 3 / (2 * 0.75)))
    assert low.failure > 0.2


@given(epsilons, dims, heads, st.floats(0.1, 10), st.integers(1, 4), st.integers(1, 9), constants)
def test_pre_norm_blocks_are_as_wide_as_proven(epsilon, d, h, floor, layers, blocks, c):
    found = prenorm_widths(epsilon, d, h, floor, layers, blocks, constant=c)
    slope = d**0.5 / floor
    growth = (1 + slope * h * (2 * d + 1)) * (1 + slope)
    share = epsilon / (2 * blocks * growth**blocks)
    assert len(found) == blocks
    for block in found:
        # Theorem 9 and Theorem 10 at radius √d, each for its share of ε.
        enough(block.n_MHA, c, 8 * h * d**1.5 * d**1.5 / share)
        enough(block.n_FC, c, 4 * layers * d * d * d**0.5 / share)


def test_three_blocks_written_out_from_the_proof_of_theorem_14():
    epsilon, d, h, alpha, layers, c = 0.1, 4, 2, 2.5, 2, 1.7
    root = math.sqrt(d)
    b1, b2, b3 = alpha, alpha * (4 * h * root), alpha * (4 * h * root) ** 2
    second, third = 16 * h * root * b2**2, 16 * h * root * b3**2
    shrink = [2**2 * second * third, 2**2 * third, 2]
    radius = [b1, 2 * b2, 2 * b3]
    found = transformer_widths(epsilon, d, h, alpha, layers, 3, constant=c)
    assert len(found) == 3
    for block, s, r in zip(found, shrink, radius, strict=True):
        enough(block.n_MHA, c, 32 * r**3 * h * d**1.5 * s / epsilon)
        enough(block.n_FC, c, 24 * r * layers * h * d**2.5 * s / epsilon)


def test_a_hundred_blocks_do_not_overflow():
    found = transformer_widths(0.01, 512, 8, 23.0, 2, 100, constant=3.0)
    assert len(found) == 100
    assert found[0].n_MHA.per_row > 3 * 700  # exp of what it is the logarithm of overflows
    assert found[0].n_MHA.width > found[-1].n_MHA.width


def test_the_measured_lines_are_used_where_no_constant_is_given():
    assert product_width(0.1, 4, 4).per_row == math.ceil(measured_units(math.log(160)))
    assert relu_layer_width(0.1, 4, 4).per_row == math.ceil(measured_units(math.log(320), "relu"))
    (block,) = transformer_widths(0.1, 4, 2, 2.0, 1, 1)
    assert block.n_MHA.per_row == math.ceil(measured_units(math.log(32 * 2**3 * 2 * 4**1.5 / 0.1)))
    assert block.n_FC.per_row == math.ceil(measured_units(math.log(24 * 2 * 2 * 4**2.5 / 0.1), "relu"))


def test_the_papers_assumption_on_the_radius_is_reported():
    assert attention_widths(0.1, 4, 9, 1, 3.0, constant=1.0).assumption
    assert not attention_widths(0.1, 4, 9, 1, 2.9, constant=1.0).assumption
    assert not transformer_widths(0.1, 16, 1, 1.0, 1, 1, constant=1.0)[0].assumption


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(epsilon=1.0), "epsilon=1.0: expected a number above 0 and below 1"),
        (dict(epsilon=math.nan), "epsilon=nan"),
        (dict(d1=0), "d1=0: expected a whole number"),
        (dict(heads=-1), "heads=-1"),
        (dict(alpha=0.0), "alpha=0.0: expected a number above 0"),
        (dict(layers=0), "layers=0"),
        (dict(blocks=0), "blocks=0"),
        (dict(constant=-1.0), "constant=-1.0"),
    ],
)
def test_wrong_numbers_are_named(change, message):
    good = dict(epsilon=0.1, d1=4, heads=2, alpha=2.0, layers=1, blocks=3, constant=2.0)
    with pytest.raises(StrongTicketError, match=message):
        transformer_widths(**(good | change))
