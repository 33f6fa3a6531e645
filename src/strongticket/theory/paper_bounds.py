"""The paper's chains of inequalities on given weights, for comparison with our bounds: Theorems 9, 10 and 14."""

from collections.abc import Sequence
from math import hypot

import numpy as np

from strongticket.checks import Real
from strongticket.theory import lemmas
from strongticket.theory.rounding import spectral_norm
from strongticket.theory.weights import BlockWeights, Layer, bias_of, merge_pair


def paper_attention_bound(
    qk_error: np.ndarray, vo_error: np.ndarray, target_vo: np.ndarray, radius: Real, constant: bool
) -> float:
    """Theorem 9's chain. The constant coordinate is one more input; ‖W_VO‖ counts where it is above 1."""
    _, d1, d2 = vo_error.shape
    alpha = float(np.hypot(radius, 1)) if constant else radius
    total = 0.0
    for qk, vo, target in zip(qk_error, vo_error, target_vo, strict=True):
        moved = lemmas.logit_error(float(np.abs(qk).max()), alpha, d1)
        if not np.isfinite(moved):
            return np.inf
        alone = lemmas.softmax_change(moved, alpha, d1)
        total += alone * max(1.0, spectral_norm(target))
        total += lemmas.value_error(float(np.abs(vo).max()), alpha, d1, d2)
    return total


def paper_relu_bound(target: Sequence[Layer], source: Sequence[Layer], radius: Real) -> float:
    """Theorem 10 at the ε for which every sum is within ε/(4L·d_l·d_{l+1}). A bias is one more input."""
    epsilon = 0.0
    for index, (weight, bias) in enumerate(target):
        pair = merge_pair(source[2 * index], source[2 * index + 1])
        sides = [pair.up - weight, pair.constant - bias_of((weight, bias))]
        sides += [pair.down + weight] if index == 0 else []
        sums = weight.size + (0 if bias is None else len(bias))
        epsilon = max(epsilon, 4 * len(target) * sums * float(max(np.abs(s).max() for s in sides)))
    if not np.isfinite(epsilon):
        return np.inf
    biased = any(bias is not None for _, bias in target)
    return lemmas.relu_error(epsilon, max(1.0, hypot(radius, 1) if biased else radius))


def paper_block_bound(
    before: float, number: int, target: BlockWeights, source: BlockWeights, radius: Real
) -> float:
    """Theorem 14's chain, one block further: Theorem 11 on block b at radius 2β_b, Lemma 13 as printed.

    `before` is the bound behind the block before, `number` is b, counted from 1, `radius` the network's.
    """
    if target.norm is not None:
        return np.inf  # the paper has no theorem for it
    heads, d1 = target.query_key.shape[0], target.value_output.shape[2]
    log_beta = lemmas.block_radius_log(number, radius, heads, d1)
    if log_beta > 200 or not np.isfinite(before):
        return np.inf
    beta = float(np.exp(log_beta))
    here = beta if number == 1 else 2 * beta
    attention = paper_attention_bound(
        source.query_key - target.query_key,
        source.value_output - target.value_output,
        target.value_output,
        here,
        target.constant,
    )
    forward = paper_relu_bound(target.layers, source.layers, lemmas.feed_forward_radius(here, heads, d1))
    own = lemmas.block_error(attention, forward)
    return own + (lemmas.block_sensitivity(before, beta, heads, d1) if number > 1 else 0.0)
