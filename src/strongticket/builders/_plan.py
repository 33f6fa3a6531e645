"""Before a build: how wide the source must be, what error to expect, how large the ticket gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from strongticket import checks, theory
from strongticket.builders.architecture import Architecture, Size
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT


@dataclass(frozen=True)
class Plan:
    """Three answers to how wide a source must be.

    theorem: which one
    constants: the measured C of products and of ReLU pairs, for the worst targets known
    architecture: what is planned
    by_theorem: the widths that the theorem asks for with the measured C; it promises an output error of at most
        epsilon with probability 1 − epsilon
    in_practice: the narrowest source expected to reach epsilon, judging by measured errors of random targets;
        if none is, the widest with exact sums (see its error)
    lower_bound: the width n_V of value and output below which no source can do it, by counting masks; None
        for blocks, where attention and feed-forward network may stand in for each other
    """

    theorem: str
    constants: dict[str, float]
    architecture: Architecture
    by_theorem: Size
    in_practice: Size
    lower_bound: float | None


def plan(
    epsilon: float,
    dim: int,
    *,
    dim_out: int | None = None,
    heads: int = 1,
    blocks: int = 0,
    layers: int = 1,
    radius: float | None = None,
    norm_floor: float | None = None,
) -> Plan:
    """Widths and sizes for one attention layer (blocks=0: Theorem 3) or a transformer (Theorems 11 and 14).

    Args:
        epsilon: the output error wanted, between 0 and 1.
        dim: width d₁ of the input.
        dim_out: width d₂ of one attention's output; by default dim.
        heads: attention heads H.
        blocks: transformer blocks B; 0 for one attention alone.
        layers: of each block's feed-forward network.
        radius: largest ‖x_i‖; by default √dim.
        norm_floor: for pre-norm blocks: the least length of what a norm reads.
    """
    dim_out = dim if dim_out is None else dim_out
    checks.whole(dim=dim, dim_out=dim_out)
    if blocks and dim_out != dim:
        raise StrongTicketError(
            f"dim_out={dim_out} but dim={dim}: a block's output is as wide as its input",
            hint="Leave dim_out out.",
        )
    if norm_floor is not None and not blocks:
        raise StrongTicketError("norm_floor is for blocks with norms", hint="Give blocks too.")
    radius = math.sqrt(max(dim, dim_out)) if radius is None else radius
    checks.positive(radius=radius)
    architecture = Architecture(dim, dim_out, heads, blocks, layers, radius, norm_floor)
    constants: dict[str, float] = {
        "product": theory.measured_constant("product"),
        "relu": theory.measured_constant("relu"),
    }
    theorem, per_row = _by_theorem(epsilon, architecture, constants)
    return Plan(
        theorem,
        constants,
        architecture,
        _size(architecture, per_row),
        _size(architecture, _in_practice(epsilon, architecture)),
        None if blocks else theory.value_lower_bound(epsilon, dim, dim_out, heads, radius),
    )


def _by_theorem(
    epsilon: float, a: Architecture, constants: dict[str, float]
) -> tuple[str, list[tuple[int, int]]]:
    if not a.blocks:
        found = theory.attention_widths(
            epsilon,
            a.dim,
            a.dim_out,
            a.heads,
            a.radius,
            constant=constants["product"],
            smaller_side=True,
        )
        return "Theorem 3", [(found.n_K.per_row, found.n_V.per_row)]
    if a.norm_floor is not None:
        attention, forward = (
            theory.prenorm_widths(
                epsilon, a.dim, a.heads, a.norm_floor, a.layers, a.blocks, constant=constants[c]
            )
            for c in ("product", "relu")
        )
        return "Theorem N", [
            (x.n_MHA.per_row, y.n_FC.per_row) for x, y in zip(attention, forward, strict=True)
        ]
    attention, forward = (
        theory.transformer_widths(
            epsilon, a.dim, a.heads, a.radius, a.layers, a.blocks, constant=constants[c]
        )
        for c in ("product", "relu")
    )
    pairs = [(x.n_MHA.per_row, y.n_FC.per_row) for x, y in zip(attention, forward, strict=True)]
    return "Theorem 11" if a.blocks == 1 else "Theorem 14", pairs


def _in_practice(epsilon: float, a: Architecture) -> list[tuple[int, int]]:
    for n in range(2, MAX_EXACT + 1):
        # A ReLU pair splits its units between the signs.
        per_row = [(n, 2 * n if a.blocks else n)] * max(a.blocks, 1)
        if a.error(a.source(per_row)) <= epsilon:
            break
    return per_row


def _size(architecture: Architecture, per_row: list[tuple[int, int]]) -> Size:
    source = architecture.source(per_row)
    return Size(source, architecture.error(source))
