"""Before a build: how wide the source must be, what error to expect, how large the ticket gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strongticket import checks, theory
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT
from strongticket.theory.constants import Construction
from strongticket.ticket import mask_codec

FILE_OVERHEAD = 1000  # bytes of a ticket besides its masks
PerRow = Sequence[tuple[int, int, int]]  # of W_QK, W_VO and the feed-forward network, for each block


@dataclass(frozen=True)
class PlannedProduct:
    """`heads` products of rows × columns that a source must make, with `per_row` units for each row."""

    name: str
    construction: Construction
    heads: int
    rows: int
    columns: int
    per_row: int

    @property
    def signs(self) -> int:
        """A ReLU pair makes each entry twice, and half of its units serve each sign."""
        return 2 if self.construction == "relu" else 1

    @property
    def width(self) -> int:
        return self.rows * self.per_row

    @property
    def problems(self) -> int:
        return self.heads * self.rows * self.columns * self.signs

    @property
    def values(self) -> int:
        """Values of one subset-sum problem: no row gets more than can be solved exactly."""
        return max(1, min(self.per_row // self.signs, MAX_EXACT))

    @property
    def weights(self) -> int:
        return self.heads * self.width * (self.rows + self.columns)

    @property
    def error_norm(self) -> float:
        """Expected spectral norm of the error: many small entries, or one large one."""
        dim = min(self.rows, self.columns)
        expected = theory.predicted_error(self.values * self.signs, dim=dim, construction=self.construction)
        spread = 1.48 * expected.median * (math.sqrt(self.rows) + math.sqrt(self.columns))
        return max(expected.maximum, spread)

    @property
    def mask_bits(self) -> float:
        """A unit keeps one of `rows` weights, and about half of its `columns` others."""
        return self.heads * self.width * (mask_codec.entropy(self.rows, 1) + self.columns)


@dataclass(frozen=True)
class PlannedSource:
    """All products of a source, and the error to expect at its output: the blocks' own errors added up."""

    layers: tuple[PlannedProduct, ...]
    error: float

    @property
    def problems(self) -> int:
        return sum(layer.problems for layer in self.layers)

    @property
    def weights(self) -> int:
        return sum(layer.weights for layer in self.layers)

    @property
    def file_bytes(self) -> int:
        return FILE_OVERHEAD + math.ceil(sum(layer.mask_bits for layer in self.layers) / 8)


@dataclass(frozen=True)
class Architecture:
    """One attention layer (blocks = 0), or blocks of attention and a feed-forward network of `layers` layers.

    Attributes:
        radius: largest norm of an input.
        norm_floor: in pre-norm blocks, the least length of what a norm reads; None for blocks without norms.
    """

    dim: int
    dim_out: int
    heads: int
    blocks: int
    layers: int
    radius: float
    norm_floor: float | None = None

    def source(self, per_row: PerRow) -> PlannedSource:
        """The source with these units for each row.

        Its error is the certificate's formula applied to expected errors, for matrices of norm 1: logits move by δ,
        so softmax by 2·tanh(δ/2). In blocks every part reads inputs within the radius, and errors add up.
        """
        dim, products = self.dim, []
        rows, columns = sorted((dim, self.dim_out))  # units keep one weight on the smaller side
        for block, (key, value, forward) in enumerate(per_row):
            prefix = f"blocks.{block}." if self.blocks else ""
            attention = f"{prefix}attention." if self.blocks else ""
            products += [
                PlannedProduct(f"{attention}query_key", "product", self.heads, dim, dim, key),
                PlannedProduct(f"{attention}value_output", "product", self.heads, rows, columns, value),
            ]
            for i in range(self.layers if self.blocks else 0):
                name = f"{prefix}feed_forward.layers.{i}"
                products.append(PlannedProduct(name, "relu", 1, dim, dim, forward))
        # The largest norm of what a sublayer reads: behind a norm always √d.
        reads = self.radius if self.norm_floor is None else math.sqrt(self.dim)
        error = 0.0
        for product in products:
            own = reads * product.error_norm
            if product.name.endswith("query_key"):
                own = reads * 2 * math.tanh(reads * own / 2)
            error += product.heads * own
        return PlannedSource(tuple(products), error)


@dataclass(frozen=True)
class NetworkPlan:
    """Three answers to how wide a source must be.

    Attributes:
        theorem: which one.
        constants: the measured C of products and of ReLU pairs, for the worst targets known.
        architecture: what is planned.
        by_theorem: as wide as the theorem asks for with the measured C; it promises an output error of at most
            epsilon with probability 1 − epsilon.
        in_practice: the narrowest source expected to reach epsilon, judging by measured errors of random targets;
            if none is, the widest with exact sums (see its error).
        lower_bound: the width n_V of value and output below which no source can do it, by counting masks; None
            for blocks, where attention and feed-forward network may stand in for each other.
    """

    theorem: str
    constants: dict[str, float]
    architecture: Architecture
    by_theorem: PlannedSource
    in_practice: PlannedSource
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
    theorem, per_row = _by_theorem(epsilon, architecture)
    for n in range(2, MAX_EXACT + 1):
        # A ReLU pair splits its units between the signs.
        in_practice = architecture.source([(n, n, 2 * n)] * max(blocks, 1))
        if in_practice.error <= epsilon:
            break
    return NetworkPlan(
        theorem,
        {"product": theory.measured_constant("product"), "relu": theory.measured_constant("relu")},
        architecture,
        architecture.source(per_row),
        in_practice,
        None if blocks else theory.value_lower_bound(epsilon, dim, dim_out, heads, radius),
    )


def _by_theorem(epsilon: float, a: Architecture) -> tuple[str, PerRow]:
    if not a.blocks:
        widths = theory.attention_widths(epsilon, a.dim, a.dim_out, a.heads, a.radius, smaller_side=True)
        return "Theorem 3", [(widths.n_K.per_row, widths.n_V.per_row, 0)]
    if a.norm_floor is not None:
        theorem = "Theorem N"
        found = theory.prenorm_widths(epsilon, a.dim, a.heads, a.norm_floor, a.layers, a.blocks)
    else:
        theorem = "Theorem 11" if a.blocks == 1 else "Theorem 14"
        found = theory.transformer_widths(epsilon, a.dim, a.heads, a.radius, a.layers, a.blocks)
    return theorem, [(block.n_MHA.per_row, block.n_MHA.per_row, block.n_FC.per_row) for block in found]
