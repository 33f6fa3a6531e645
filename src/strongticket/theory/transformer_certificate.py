"""B blocks with residuals: the true radius and the true error carried from block to block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory import lemmas
from strongticket.theory.certificate import (
    Certificate,
    certify_attention,
    check_attention,
    constant_term,
    paper_attention_bound,
)
from strongticket.theory.joint import Norm, Pair, supremum_bound
from strongticket.theory.relu_certificate import (
    Layer,
    certify_relu,
    check_layers,
    lipschitz,
    output_radius,
    paper_relu_bound,
)
from strongticket.theory.rounding import INFLATE, AttentionFactors, Evaluation, attention_rounding, unit_of


@dataclass(frozen=True)
class BlockWeights:
    """One block: merged self-attention (constant as in certify_attention) and the feed-forward's layers.

    factors: the attention's four matrices, for rounding to be counted: of merging, and of running the source
    """

    query_key: Float[np.ndarray, "heads rows columns"]
    value_output: Float[np.ndarray, "heads columns dim"]
    layers: tuple[Layer, ...]
    constant: bool = False
    factors: AttentionFactors | None = None


@np.errstate(over="ignore", invalid="ignore")
def certify_transformer(
    target: Sequence[BlockWeights],
    source: Sequence[BlockWeights],
    radius: Real,
    *,
    evaluation: Evaluation = "exact",
    tokens: int = 1,
) -> Certificate:
    """Bound ‖Tf_S − Tf_T‖ over ‖x_i‖ ≤ radius for blocks y = attn(x) + x, z = ff(y) + y (Theorems 11 and 14).

    terms: after each block the largest error and the radii that target and source can reach.
    Uses neither Lemma 13 nor the assumption that a perturbed input stays in the ball.
    """
    checks.positive(radius=radius)
    if len(target) != len(source) or not target:
        raise StrongTicketError(
            f"{len(target)} target and {len(source)} source blocks: expected as many, at least one"
        )
    unit = unit_of(evaluation)
    error, reach, source_reach, paper = 0.0, float(radius), float(radius), 0.0
    errors, reaches, source_reaches = [], [], []
    for number, (goal, built) in enumerate(zip(target, source, strict=True), 1):
        _check_block(number, goal, built)
        if unit and built.factors is None:
            raise StrongTicketError(
                f"block {number} of the source has no factors: rounding in {evaluation} needs them",
                hint="Pass BlockWeights(factors=...) or evaluation='exact'.",
            )
        attention = _attention_step(goal, built, source_reach, evaluation, tokens)
        goal_gain = attention_gain(goal, reach)
        built_gain = attention_gain(built, source_reach) + sum(attention.terms["rounding"])
        moved = attention.bound + attention_lipschitz(goal, max(reach, source_reach)) * error
        error += min(moved, goal_gain + built_gain) + unit * (source_reach + built_gain)
        reach += goal_gain
        source_reach = min(source_reach + built_gain, reach + error)

        forward = certify_relu(goal.layers, built.layers, source_reach, evaluation=evaluation)
        error = lipschitz(goal.layers, residual=True) * error + forward.bound
        reach = output_radius(goal.layers, reach, residual=True)
        error += unit * (reach + error)
        source_reach = (reach + error) * INFLATE
        paper = _paper_step(paper, number, goal, built, radius)
        errors.append(error)
        reaches.append(reach)
        source_reaches.append(source_reach)
        if not np.isfinite(source_reach):
            error = np.inf
            break
    return Certificate(
        kind="transformer",
        bound=error * INFLATE,
        paper_bound=paper,
        radius=float(radius),
        terms={"error": tuple(errors), "radius": tuple(reaches), "source_radius": tuple(source_reaches)},
    )


def attention_gain(block: BlockWeights, radius: Real) -> float:
    """At least sup ‖Attn(x)‖ over the ball: each head averages tokens, so its average stays in the ball."""
    keys = block.query_key.shape[2] - block.constant
    terms: list[Norm | Pair] = [Norm(radius * vo[:keys]) for vo in block.value_output]
    lost = 0.0
    if block.constant:
        together, lost = constant_term(block.value_output[:, -1])
        terms.append(together)
    return supremum_bound([block.value_output.shape[2]], terms) + lost


def attention_lipschitz(block: BlockWeights, radius: Real) -> float:
    """At least L in ‖Attn(X)_i − Attn(X′)_i‖ ≤ L·max_k ‖x_k − x′_k‖, both in the ball: docs/theory.md."""
    _, rows, columns = block.query_key.shape
    inputs, keys = rows - block.constant, columns - block.constant
    scale = np.append(np.full(inputs, float(radius)), [1.0] * block.constant)
    terms: list[Norm | Pair] = []
    for query_key, value_output in zip(block.query_key, block.value_output, strict=True):
        logit, target = query_key[:, :keys].T, value_output[:keys]
        slots = (2, 3) if block.constant else (2,)
        terms.append(Pair(radius * radius * logit[:, :inputs], target, (1,), aligned=True))
        terms.append(Pair(radius * logit * scale, target, slots))
        terms.append(Norm(target))
    dims = [block.value_output.shape[2], inputs, inputs, *([1] if block.constant else [])]
    return supremum_bound(dims, terms)


def _attention_step(
    goal: BlockWeights, built: BlockWeights, radius: float, evaluation: Evaluation, tokens: int
) -> Certificate:
    rounding = None
    if built.factors is not None:
        rounding = attention_rounding(
            built.factors, radius, constant=built.constant, evaluation=evaluation, tokens=tokens
        )
        if goal.factors is not None:
            rounding += attention_rounding(goal.factors, radius, constant=goal.constant)
    return certify_attention(
        goal.query_key,
        built.query_key,
        goal.value_output,
        built.value_output,
        radius,
        constant=goal.constant,
        rounding=rounding,
    )


def _paper_step(before: float, number: int, goal: BlockWeights, built: BlockWeights, radius: Real) -> float:
    """Theorem 14's chain on the same weights: Theorem 11 on block b at radius 2β_b, Lemma 13 as printed."""
    heads, d1 = goal.query_key.shape[0], goal.value_output.shape[2]
    log_beta = lemmas.block_radius_log(number, radius, heads, d1)
    if log_beta > 200 or not np.isfinite(before):
        return np.inf
    beta = float(np.exp(log_beta))
    here = beta if number == 1 else 2 * beta
    attention = paper_attention_bound(
        built.query_key - goal.query_key,
        built.value_output - goal.value_output,
        goal.value_output,
        here,
        goal.constant,
    )
    inner = lemmas.feed_forward_radius(here, heads, d1)
    forward = paper_relu_bound(goal.layers, built.layers, inner)
    if not np.isfinite(attention + forward):
        return np.inf
    own = lemmas.block_error(attention, forward)
    return own + (lemmas.block_sensitivity(before, beta, heads, d1) if number > 1 else 0.0)


def _check_block(number: int, goal: BlockWeights, built: BlockWeights) -> None:
    arrays = check_attention(
        goal.constant,
        target_qk=goal.query_key,
        source_qk=built.query_key,
        target_vo=goal.value_output,
        source_vo=built.value_output,
    )
    width = arrays[2].shape[2]
    _, rows, columns = arrays[0].shape
    if goal.constant != built.constant or rows != columns or rows != width + goal.constant:
        raise StrongTicketError(
            f"block {number}: query_key {goal.query_key.shape} with constant={goal.constant}, source "
            f"constant={built.constant}: expected self-attention on width {width}, constant the same in both"
        )
    layers = check_layers(f"block {number} layers", goal.layers)
    if layers[0][0].shape[1] != width or layers[-1][0].shape[0] != width:
        raise StrongTicketError(
            f"block {number}: layers map {layers[0][0].shape[1]} to {layers[-1][0].shape[0]}: "
            f"expected width {width} at both ends, for the residual"
        )
