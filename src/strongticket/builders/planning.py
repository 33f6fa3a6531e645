"""Before a build: how wide the source must be, what error to expect, how large the ticket gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from strongticket import checks, theory
from strongticket.builders.planned import Architecture, PerRow, PlannedSource
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT


@dataclass(frozen=True)
class NetworkPlan:
    """Three answers to how wide a source must be.

    Attributes:
        theorem: which one.
        lines: the measured slope a and offset b of products and of ReLU pairs, for the worst targets known.
        architecture: what is planned.
        by_theorem: as wide as the theorem asks for, with a·log(…) + b for its C·log(…); it promises an output error of
            at most epsilon with probability 1 − epsilon.
        in_practice: the narrowest source expected to reach epsilon, judging by measured errors of random targets;
            if none is, the widest with exact sums (see its error).
        failure: the largest probability with which the theorem fails; None where its radius is too small to say.
        lower_bound: units of values and outputs below which no source can do it, by counting masks; None for
            blocks, where attention and feed-forward network may stand in for each other.
    """

    theorem: str
    lines: dict[str, dict[str, float]]
    architecture: Architecture
    by_theorem: PlannedSource
    in_practice: PlannedSource
    failure: float | None
    lower_bound: float | None


def plan_network(
    epsilon: float,
    dim: int,
    *,
    dim_out: int | None = None,
    heads: int = 1,
    blocks: int = 0,
    layers: int = 1,
    radius: float | None = None,
    norm_floor: float | None = None,
    rank: int | None = None,
) -> NetworkPlan:
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
        rank: of W_QK and W_VO of each head, so d_K and d_V; by default full. For one attention.
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
    if rank is not None and blocks:
        raise StrongTicketError("rank is for one attention", hint="Leave blocks out.")
    radius = math.sqrt(max(dim, dim_out)) if radius is None else radius
    checks.positive(radius=radius)
    architecture = Architecture(dim, dim_out, heads, blocks, layers, radius, norm_floor, rank)
    theorem, per_row, failure = _by_theorem(epsilon, architecture)
    for n in range(2, MAX_EXACT + 1):
        # A ReLU pair splits its units between the signs.
        in_practice = architecture.source([(n, n, 2 * n)] * max(blocks, 1))
        if in_practice.error <= epsilon:
            break
    return NetworkPlan(
        theorem,
        theory.measurements()["lines"],
        architecture,
        architecture.source(per_row),
        in_practice,
        failure,
        None if blocks else _lower_bound(epsilon, architecture),
    )


def _lower_bound(epsilon: float, a: Architecture) -> float:
    bound = theory.value_lower_bound(epsilon, a.dim, a.dim_out, a.heads, a.radius, rank=a.rank)
    if a.rank is None or not a.is_narrow(a.dim_out):
        return bound
    ends = a.dim + a.dim_out  # weights of a unit; through factors a unit has one end and the rank
    return max(1.0, bound * ends / (ends / 2 + a.rank))


def _by_theorem(epsilon: float, a: Architecture) -> tuple[str, PerRow, float | None]:
    """Name, units for each row, and probability of failure."""
    if not a.blocks:
        sizes = epsilon, a.dim, a.dim_out, a.heads, a.radius
        theorem, whole = "Theorem 3", theory.attention_widths(*sizes, smaller_side=True)
        key, value, failure = whole.n_K, whole.n_V, whole.failure
        if a.rank is not None and a.is_narrow(a.dim):
            theorem, narrow = "Theorem 3 through factors", theory.factor_widths(*sizes, a.rank)
            key, failure = narrow.n_K, failure + narrow.failure
            value = narrow.n_V if a.is_narrow(a.dim_out) else value
        failure = epsilon if whole.assumption else failure
        return theorem, [(key.per_row, value.per_row, 0)], failure if failure < 1 else None
    if a.norm_floor is not None:
        theorem = "Theorem N"
        found = theory.prenorm_widths(epsilon, a.dim, a.heads, a.norm_floor, a.layers, a.blocks)
    else:
        theorem = "Theorem 11" if a.blocks == 1 else "Theorem 14"
        found = theory.transformer_widths(epsilon, a.dim, a.heads, a.radius, a.layers, a.blocks)
    per_row = [(block.n_MHA.per_row, block.n_MHA.per_row, block.n_FC.per_row) for block in found]
    return theorem, per_row, epsilon if all(block.assumption for block in found) else None
