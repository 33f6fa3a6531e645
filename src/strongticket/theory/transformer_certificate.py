"""B blocks with residuals: where streams and errors may lie, carried from block to block."""

from collections.abc import Iterator, Sequence

import numpy as np

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory.attention_step import attention_output, attention_step
from strongticket.theory.certificate import Certificate
from strongticket.theory.normalisation import Normalisation
from strongticket.theory.paper_bounds import paper_block_bound
from strongticket.theory.region import Region, ball
from strongticket.theory.relu_certificate import relu_step
from strongticket.theory.rounding import (
    INFLATE,
    Arithmetic,
    output_rounding,
    unit_of,
)
from strongticket.theory.weights import BlockWeights, both_roundings, check_blocks


@np.errstate(over="ignore", invalid="ignore")
def certify_transformer(
    target: Sequence[BlockWeights],
    source: Sequence[BlockWeights],
    radius: Real,
    *,
    arithmetic: Arithmetic = "exact",
    floors: Sequence[float] | None = None,
    final_norm: Normalisation | None = None,
) -> Certificate:
    """Bound ‖Tf_S − Tf_T‖ over ‖x_i‖ ≤ radius for blocks y = attn(norm(x)) + x, z = ff(norm(y)) + y.

    Without norms these are Theorems 11 and 14; neither Lemma 13 nor the assumption that a perturbed input
    stays in the ball is used.

    Args:
        target: its blocks.
        source: as many blocks, with the same norms.
        radius: of the ball that inputs come from.
        arithmetic: the arithmetic the bound holds for; "exact" is the network as mathematics.
        floors: for each norm in order (two per block that has norms, then the final one) the least length of
            what it reads in the source; the bound holds for inputs that respect these. Default: 0.
        final_norm: a norm behind the last block.

    Returns:
        a Certificate; its terms: after each block the largest error and the radii of target and source.
    """
    checks.positive(radius=radius)
    check_blocks(target, source)
    kept = _norm_floors(
        floors, 2 * sum(block.norm is not None for block in target) + (final_norm is not None)
    )
    remaining = iter(kept)
    stream = ball(target[0].value_output.shape[2], float(radius))
    error, paper = Region(stream.dim), 0.0
    errors, reaches, source_reaches = [], [], []
    for number, (wanted, built) in enumerate(zip(target, source, strict=True), 1):
        error, stream = _block_step(wanted, built, stream, error, remaining, arithmetic)
        largest = error.radius()
        # One ellipsoid each: the number of shapes must not grow from block to block.
        error = _compact(error)
        stream = _compact(stream)
        paper = paper_block_bound(paper, number, wanted, built, radius)
        errors.append(largest)
        reaches.append(stream.radius())
        source_reaches.append((reaches[-1] + largest) * INFLATE)
        if not np.isfinite(source_reaches[-1]):
            largest = np.inf
            break
    if final_norm is not None and np.isfinite(largest):
        error = final_norm.error(error, next(remaining), source_reaches[-1])
        stream = final_norm.output(stream.dim)
        largest = error.radius()
    rounding = 0.0
    if np.isfinite(largest):
        rounding = output_rounding(stream.radius() + largest, stream.dim, arithmetic)
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
        arithmetic=arithmetic,
        floors=kept or None,
    )


def _norm_floors(floors: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """One floor for each of the network's `count` norms."""
    if floors is None:
        return (0.0,) * count
    if len(floors) != count:
        raise StrongTicketError(
            f"floors has {len(floors)} entries, the network has {count} norms: expected one for each"
        )
    checks.not_negative(**{f"floors[{i}]": floor for i, floor in enumerate(floors)})
    return tuple(map(float, floors))


def _block_step(
    wanted: BlockWeights,
    built: BlockWeights,
    stream: Region,
    error: Region,
    floors: Iterator[float],
    arithmetic: Arithmetic,
) -> tuple[Region, Region]:
    """Error and target stream behind one block."""
    reads, read_error, together = _read(wanted.norm, stream, error, floors)
    rounding = both_roundings(wanted, built, together.radius(), arithmetic)
    own = attention_step(wanted, built, together, read_error, rounding)
    error = error + own
    stream = stream + attention_output(wanted, reads)

    if wanted.norm is None:
        step = relu_step(wanted.layers, built.layers, stream, error, residual=True, arithmetic=arithmetic)
        error, stream = step.error, step.output
    else:
        reads, read_error, _ = _read(wanted.norm, stream, error, floors)
        step = relu_step(wanted.layers, built.layers, reads, read_error, arithmetic=arithmetic)
        error, stream = error + step.error, stream + step.output
    if unit_of(arithmetic):  # two sums in float64
        error = error + ball(stream.dim, 4 * unit_of("float64") * (stream.size + error.size))
    return error, stream


def _read(
    norm: Normalisation | None, stream: Region, error: Region, floors: Iterator[float]
) -> tuple[Region, Region, Region]:
    """What a sublayer reads: where the target's lies, the source's error, and a region with both and all between."""
    if norm is None:
        return stream, error, stream + error
    longest = stream.size + error.size
    moved = norm.error(_compact(error), next(floors), longest)
    outputs = norm.output(stream.dim)
    return outputs, moved, outputs


def _compact(region: Region) -> Region:
    if len(region.shapes) + bool(region.ball) <= 1:
        return region
    return Region(region.dim, (region.ellipsoid(),))
