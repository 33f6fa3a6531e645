"""B blocks with residuals: where streams and errors may lie, carried from block to block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory import lemmas
from strongticket.theory.attention_step import attention_output, attention_step
from strongticket.theory.certificate import Certificate, check_attention, paper_attention_bound
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.region import Region, ball
from strongticket.theory.relu_certificate import Layer, check_layers, check_pairs, paper_relu_bound, relu_step
from strongticket.theory.rounding import (
    INFLATE,
    MAX_TOKENS,
    AttentionFactors,
    AttentionRounding,
    Evaluation,
    attention_rounding,
    output_rounding,
    unit_of,
)


@dataclass(frozen=True)
class BlockWeights:
    """One block: merged self-attention (constant as in certify_attention) and the feed-forward's layers.

    factors: the attention's four matrices, for rounding to be counted: of merging, and of running the source
    norm: what attention and feed-forward network read the stream through (None: they read it as it is)
    """

    query_key: Float[np.ndarray, "heads rows columns"]
    value_output: Float[np.ndarray, "heads columns dim"]
    layers: tuple[Layer, ...]
    constant: bool = False
    factors: AttentionFactors | None = None
    norm: Normalisation | None = None


@np.errstate(over="ignore", invalid="ignore")
def certify_transformer(
    target: Sequence[BlockWeights],
    source: Sequence[BlockWeights],
    radius: Real,
    *,
    evaluation: Evaluation = "exact",
    tokens: int = MAX_TOKENS,
    floors: Sequence[float] | None = None,
    final_norm: Normalisation | None = None,
) -> Certificate:
    """Bound ‖Tf_S − Tf_T‖ over ‖x_i‖ ≤ radius for blocks y = attn(norm(x)) + x, z = ff(norm(y)) + y.

    Without norms these are Theorems 11 and 14; neither Lemma 13 nor the assumption that a perturbed input
    stays in the ball is used.

    Args:
        target, source: as many blocks in both, with the same norms.
        radius: of the ball that inputs come from.
        evaluation: the arithmetic the bound holds for; "exact" is the network as mathematics.
        tokens: the longest context, for rounding.
        floors: for each norm in order (two per block that has norms, then the final one) the least length of
            what it reads in the source: for norms a bound holds where inputs keep to these. Default: 0.
        final_norm: a norm behind the last block.

    Returns:
        a Certificate; its terms: after each block the largest error and the radii of target and source.
    """
    checks.positive(radius=radius)
    if len(target) != len(source) or not target:
        raise StrongTicketError(
            f"{len(target)} target and {len(source)} source blocks: expected equally many, and at least one"
        )
    for number, blocks in enumerate(zip(target, source, strict=True), 1):
        _check_block(number, *blocks, evaluation)
    remaining = _Floors(
        floors, 2 * sum(block.norm is not None for block in target) + (final_norm is not None)
    )
    stream = ball(target[0].value_output.shape[2], float(radius))
    error, paper = Region(stream.dim), 0.0
    errors, reaches, source_reaches = [], [], []
    for number, (wanted, built) in enumerate(zip(target, source, strict=True), 1):
        error, stream = _block_step(wanted, built, stream, error, remaining, evaluation, tokens)
        largest = error.radius()
        # One ellipsoid each: the number of shapes must not grow from block to block.
        error = _compact(error)
        stream = _compact(stream)
        paper = _paper_step(paper, number, wanted, built, radius)
        errors.append(largest)
        reaches.append(stream.radius())
        source_reaches.append((reaches[-1] + largest) * INFLATE)
        if not np.isfinite(source_reaches[-1]):
            largest = np.inf
            break
    if final_norm is not None and np.isfinite(largest):
        error = final_norm.error(error, remaining.take(), source_reaches[-1])
        stream = final_norm.output(stream.dim)
        largest = error.radius()
    rounding = output_rounding(stream.radius() + largest, evaluation) if np.isfinite(largest) else 0.0
    return Certificate(
        kind="transformer",
        bound=(largest + rounding) * INFLATE,
        paper_bound=paper,
        radius=float(radius),
        terms={
            "error": tuple(errors),
            "radius": tuple(reaches),
            "source_radius": tuple(source_reaches),
            "output": (rounding,),
        },
        arithmetic=evaluation,
        floors=remaining.all or None,
    )


class _Floors:
    """The floors of all norms, taken one after the other."""

    def __init__(self, floors: Sequence[float] | None, count: int):
        self.all = tuple(float(floor) for floor in floors) if floors is not None else (0.0,) * count
        if len(self.all) != count:
            raise StrongTicketError(
                f"floors has {len(self.all)} entries, the network has {count} norms: expected one for each"
            )
        checks.not_negative(**{f"floors[{i}]": floor for i, floor in enumerate(self.all)})
        self._left = iter(self.all)

    def take(self) -> float:
        return next(self._left)


def _block_step(
    wanted: BlockWeights,
    built: BlockWeights,
    stream: Region,
    error: Region,
    floors: _Floors,
    evaluation: Evaluation,
    tokens: int,
) -> tuple[Region, Region]:
    """Error and target stream behind one block."""
    reads, read_error, together = _read(wanted.norm, stream, error, floors)
    rounding = _rounding(wanted, built, together.radius(), evaluation, tokens)
    own = attention_step(wanted, built, together, read_error, rounding)
    error = error + own
    stream = stream + attention_output(wanted, reads)

    if wanted.norm is None:
        step = relu_step(wanted.layers, built.layers, stream, error, residual=True, evaluation=evaluation)
        error, stream = step.error, step.output
    else:
        reads, read_error, _ = _read(wanted.norm, stream, error, floors)
        step = relu_step(wanted.layers, built.layers, reads, read_error, evaluation=evaluation)
        error, stream = error + step.error, stream + step.output
    if unit_of(evaluation):  # two sums in float64
        error = error + ball(stream.dim, 4 * unit_of("float64") * (stream.size + error.size))
    return error, stream


def _read(
    norm: Normalisation | None, stream: Region, error: Region, floors: _Floors
) -> tuple[Region, Region, Region]:
    """What a sublayer reads: where the target's lies, the source's error, and a region with both and all between."""
    if norm is None:
        return stream, error, stream + error
    longest = stream.size + error.size
    moved = norm.error(_compact(error), floors.take(), longest)
    outputs = norm.output(stream.dim)
    return outputs, moved, outputs


def _compact(region: Region) -> Region:
    if len(region.shapes) + bool(region.ball) <= 1:
        return region
    return Region(region.dim, (region.ellipsoid(),))


def _rounding(
    wanted: BlockWeights, built: BlockWeights, radius: float, evaluation: Evaluation, tokens: int
) -> AttentionRounding | None:
    if built.factors is None or not np.isfinite(radius):
        return None
    rounding = attention_rounding(
        built.factors, radius, constant=built.constant, evaluation=evaluation, tokens=tokens
    )
    if wanted.factors is not None:
        rounding += attention_rounding(wanted.factors, radius, constant=wanted.constant)
    return rounding


def _paper_step(before: float, number: int, wanted: BlockWeights, built: BlockWeights, radius: Real) -> float:
    """Theorem 14's chain on the same weights: Theorem 11 on block b at radius 2β_b, Lemma 13 as printed."""
    if wanted.norm is not None:
        return np.inf  # the paper has no theorem for it
    heads, d1 = wanted.query_key.shape[0], wanted.value_output.shape[2]
    log_beta = lemmas.block_radius_log(number, radius, heads, d1)
    if log_beta > 200 or not np.isfinite(before):
        return np.inf
    beta = float(np.exp(log_beta))
    here = beta if number == 1 else 2 * beta
    attention = paper_attention_bound(
        built.query_key - wanted.query_key,
        built.value_output - wanted.value_output,
        wanted.value_output,
        here,
        wanted.constant,
    )
    inner = lemmas.feed_forward_radius(here, heads, d1)
    forward = paper_relu_bound(wanted.layers, built.layers, inner)
    if not np.isfinite(attention + forward):
        return np.inf
    own = lemmas.block_error(attention, forward)
    return own + (lemmas.block_sensitivity(before, beta, heads, d1) if number > 1 else 0.0)


def _check_block(number: int, wanted: BlockWeights, built: BlockWeights, evaluation: Evaluation) -> None:
    if unit_of(evaluation) and built.factors is None:
        raise StrongTicketError(
            f"block {number} of the source has no factors: rounding in {evaluation} needs them",
            hint="Pass BlockWeights(factors=...) or evaluation='exact'.",
        )
    if wanted.norm != built.norm:
        raise StrongTicketError(
            f"block {number}: the target's norm is {wanted.norm}, the source's {built.norm}: expected the same"
        )
    arrays = check_attention(
        wanted.constant,
        target_qk=wanted.query_key,
        source_qk=built.query_key,
        target_vo=wanted.value_output,
        source_vo=built.value_output,
    )
    width = arrays[2].shape[2]
    _, rows, columns = arrays[0].shape
    if wanted.constant != built.constant or rows != columns or rows != width + wanted.constant:
        raise StrongTicketError(
            f"block {number}: query_key {wanted.query_key.shape} with constant={wanted.constant}, source "
            f"constant={built.constant}: expected self-attention on width {width}, constant the same in both"
        )
    layers = check_layers(f"block {number} layers", wanted.layers)
    if layers[0][0].shape[1] != width or layers[-1][0].shape[0] != width:
        raise StrongTicketError(
            f"block {number}: layers map {layers[0][0].shape[1]} to {layers[-1][0].shape[0]}: "
            f"expected width {width} at both ends, for the residual"
        )
    check_pairs(layers, check_layers(f"block {number} source layers", built.layers))
