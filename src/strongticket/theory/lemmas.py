"""The right-hand side of every inequality of the paper, as printed; beside it the tight form if there is one.

Letters as in the paper: d1, d2 input and output width, alpha the radius ‖x_i‖ ≤ α, heads H, layers L.
What the tests check: random instances obey each of them, and the tight form is never above the printed one.
"""

import math
from collections.abc import Sequence

from strongticket.checks import Real
from strongticket.errors import StrongTicketError


def weight_error(epsilon: Real, d1: int, d2: int) -> float:
    """Lemma 4 and 7: ‖W − (W̃₂⊙M₂)(W̃₁⊙M₁)‖_max ≤ ε/(d₁d₂)."""
    return epsilon / (d1 * d2)


def relu_layer_error(sum_max: Real, d1: int, d2: int) -> float:
    """Lemma 2: ‖F_T(x) − F_S(x)‖ ≤ ε for ‖x‖ ≤ 1, if every subset sum is within ε/(2d₁d₂), here `sum_max`."""
    return 2 * d1 * d2 * sum_max


def relu_layer_error_tight(sum_max: Real, d1: int, d2: int) -> float:
    """Tight form of Lemma 2: √(d₁d₂)·ε/(2d₁d₂), attained if all sums are off alike and all x_i are equal."""
    return math.sqrt(d1 * d2) * sum_max


def softmax_ratio(epsilon_max: Real) -> float:
    """Equation (9): |1 − exp(ε_j)/Z| ≤ exp(2ε_max) − 1."""
    return expm1(2 * epsilon_max)


def softmax_change(epsilon_max: Real, alpha: Real, d1: int) -> float:
    """Lemma 8: ‖(p − p′)X‖ ≤ √d₁·α·(exp(2ε_max) − 1). The perturbation has T entries, not d₁ as printed."""
    return math.sqrt(d1) * alpha * expm1(2 * epsilon_max)


def softmax_change_linear(epsilon_max: Real, alpha: Real, d1: int) -> float:
    """Lemma 5: ‖(p − p′)X‖ ≤ 4√d₁·α·ε_max, for ε_max ≤ 1/2."""
    if epsilon_max > 0.5:
        raise StrongTicketError(
            f"epsilon_max={epsilon_max}: Lemma 5 holds up to 1/2",
            hint="Use softmax_change (Lemma 8) above it.",
        )
    return 4 * math.sqrt(d1) * alpha * epsilon_max


def softmax_l1_tight(epsilon_max: Real) -> float:
    """Tight: ‖p − p′‖₁ ≤ 2·tanh(ε_max/2), attained by two equal groups moved by +ε_max and −ε_max."""
    return 2 * math.tanh(epsilon_max / 2)


def softmax_change_tight(epsilon_max: Real, alpha: Real) -> float:
    """Tight form of Lemma 5 and 8: ‖(p − p′)X‖ ≤ 2α·tanh(ε_max/2), attained by the two tokens x and −x."""
    return alpha * softmax_l1_tight(epsilon_max)


def logit_error(qk_max: Real, alpha: Real, d1: int) -> float:
    """Theorem 9, step 2, after (14): logits move by at most α²·d₁·‖ΔQK‖_max. Tight: α²‖ΔQK‖₂."""
    return alpha * alpha * d1 * qk_max


def value_error(vo_max: Real, alpha: Real, d1: int, d2: int) -> float:
    """Equation (17): ‖p′XΔVO‖ ≤ d₁√d₂·α·‖ΔVO‖_max. Tight: α‖ΔVO‖₂."""
    return d1 * math.sqrt(d2) * alpha * vo_max


def attention_error(qk_max: Sequence[float], vo_max: Sequence[float], alpha: Real, d1: int, d2: int) -> float:
    """Theorem 9, step 3, (16) + (17) over the heads: Lemma 8 on each logit error, plus each value error.

    Takes ‖ΔQK_h‖_max and ‖ΔVO_h‖_max of each head; the paper assumes ‖W_VO,h‖ ≤ 1.
    """
    return sum(
        softmax_change(logit_error(qk, alpha, d1), alpha, d1) + value_error(vo, alpha, d1, d2)
        for qk, vo in zip(qk_max, vo_max, strict=True)
    )


def attention_error_tight(
    qk_norm: Sequence[float], vo_norm: Sequence[float], target_vo_norm: Sequence[float], alpha: Real
) -> float:
    """Tight per head: Σ_h α(2·tanh(α²‖ΔQK_h‖/2)·‖W_VO,h‖ + ‖ΔVO_h‖). Certificates go further."""
    return sum(
        softmax_change_tight(alpha**2 * qk, alpha) * target + alpha * vo
        for qk, vo, target in zip(qk_norm, vo_norm, target_vo_norm, strict=True)
    )


def relu_error(epsilon: Real, alpha: Real) -> float:
    """Theorem 10: ‖F_S − F_T‖ ≤ exp(αε/2) − 1. Needs α ≥ 1: below, it is less than relu_error_tight.

    Holds when each pair of random layers gives ‖g_l(x) − W_l x‖ ≤ (ε/2L)·‖x‖ and ‖W_l‖ ≤ 1.
    """
    if alpha < 1:
        raise StrongTicketError(
            f"alpha={alpha}: Theorem 10 as printed holds from 1 on", hint="Use relu_error_tight."
        )
    return expm1(alpha * epsilon / 2)


def relu_error_tight(epsilon: Real, alpha: Real, layers: int) -> float:
    """Tight form of Theorem 10: α((1 + ε/2L)^L − 1), attained by one-dimensional positive layers."""
    return alpha * expm1(layers * math.log1p(epsilon / (2 * layers)))


def attention_radius(alpha: Real, heads: int, d1: int) -> float:
    """Theorem 11: ‖Attn_T(x)‖ ≤ αH√d₁. Tight: αH, as an average of tokens stays in the ball."""
    return alpha * heads * math.sqrt(d1)


def feed_forward_radius(alpha: Real, heads: int, d1: int) -> float:
    """Equation (19): ‖Attn_S(x) + x‖ ≤ 3αH√d₁, once (18) holds with ε/4 ≤ αH√d₁."""
    return 3 * attention_radius(alpha, heads, d1)


def block_error(attention: Real, feed_forward: Real) -> float:
    """Theorem 11, last step: ‖Blk_S − Blk_T‖ ≤ feed-forward error + 2·attention error, F_T 1-Lipschitz."""
    return feed_forward + 2 * attention


def attention_sensitivity(epsilon_max: Real, alpha: Real, heads: int, d1: int) -> float:
    """Lemma 12: ‖Attn_T(x_i) − Attn_T(x′_i)‖ ≤ H√d₁(α(exp(4αε_max) − 1) + ε_max). Assumes ‖x′_i‖ ≤ α too."""
    return heads * math.sqrt(d1) * (alpha * expm1(4 * alpha * epsilon_max) + epsilon_max)


def attention_sensitivity_tight(
    epsilon_max: Real, alpha: Real, heads: int, *, perturbed_radius: Real | None = None
) -> float:
    """Tight form of Lemma 12 without its assumption: H(2α·tanh((α+α′)ε_max/2) + ε_max), α′ = max ‖x′_i‖."""
    other = alpha if perturbed_radius is None else perturbed_radius
    return heads * (softmax_change_tight((alpha + other) * epsilon_max, alpha) + epsilon_max)


def block_sensitivity(epsilon_max: Real, alpha: Real, heads: int, d1: int) -> float:
    """Lemma 13 as printed: H√d₁(α(exp(4αε_max) − 1) + 2ε_max). Its proof gives twice that: see the next.

    Theorem 14's widths rest on this form. It fails for every α (docs/theory.md has the example and
    why the widths hold all the same).
    """
    return block_sensitivity_proven(epsilon_max, alpha, heads, d1) / 2


def block_sensitivity_proven(epsilon_max: Real, alpha: Real, heads: int, d1: int) -> float:
    """Lemma 13 as its proof ends: ‖Blk_T(x_i) − Blk_T(x′_i)‖ ≤ 2H√d₁(α(exp(4αε_max) − 1) + 2ε_max)."""
    return 2 * heads * math.sqrt(d1) * (alpha * expm1(4 * alpha * epsilon_max) + 2 * epsilon_max)


def block_sensitivity_tight(
    epsilon_max: Real, alpha: Real, heads: int, *, perturbed_radius: Real | None = None
) -> float:
    """Tight form of Lemma 13: twice Lemma 12's tight form and 2ε_max, F_T 1-Lipschitz."""
    inner = attention_sensitivity_tight(epsilon_max, alpha, heads, perturbed_radius=perturbed_radius)
    return 2 * inner + 2 * epsilon_max


def block_radius_log(block: int, alpha: Real, heads: int, d1: int) -> float:
    """Logarithm of β_b in Theorem 14: ‖x^(b)‖ ≤ β_b = α(4H√d₁)^(b−1), block b counted from 1."""
    return math.log(alpha) + (block - 1) * math.log(4 * heads * math.sqrt(d1))


def expm1(x: float) -> float:
    """exp(x) − 1, infinite rather than an error where it overflows."""
    return math.expm1(x) if x < 700 else math.inf
