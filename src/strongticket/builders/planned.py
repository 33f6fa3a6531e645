"""The products that a source must make, and what to expect of them: error, weights, bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strongticket import theory
from strongticket.builders.factors import needs_fewer_units
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
        return self.entries * self.signs

    @property
    def values(self) -> int:
        """Values of one subset-sum problem: no row gets more than can be solved exactly."""
        return max(1, min(self.per_row // self.signs, MAX_EXACT))

    @property
    def weights(self) -> int:
        return self.heads * self.width * (self.rows + self.columns)

    @property
    def _expected(self) -> theory.PredictedError:
        dim = min(self.rows, self.columns)
        return theory.predicted_error(self.values * self.signs, dim=dim, construction=self.construction)

    @property
    def relative_error(self) -> float:
        """Expected root mean square error of a matrix of norm 1, its few largest errors aside."""
        return 1.48 * self._expected.median * (math.sqrt(self.rows) + math.sqrt(self.columns))

    @property
    def error_norm(self) -> float:
        """Expected spectral norm of the error: many small entries, or one large one."""
        return max(self._expected.maximum, self.relative_error)

    @property
    def entries(self) -> int:
        """Of the matrices that are made."""
        return self.heads * self.rows * self.columns

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
    def bits(self) -> float:
        """Of the masks, for each entry of the matrices that are made."""
        return sum(layer.mask_bits for layer in self.layers) / sum(layer.entries for layer in self.layers)

    @property
    def least_bits(self) -> float:
        """What any ticket needs for matrices of normal numbers at these errors."""
        least = sum(layer.entries * theory.least_bits(layer.relative_error) for layer in self.layers)
        return least / sum(layer.entries for layer in self.layers)

    @property
    def file_bytes(self) -> int:
        return FILE_OVERHEAD + math.ceil(sum(layer.mask_bits for layer in self.layers) / 8)


@dataclass(frozen=True)
class Architecture:
    """One attention layer (blocks = 0), or blocks of attention and a feed-forward network of `layers` layers.

    Attributes:
        radius: largest norm of an input.
        norm_floor: in pre-norm blocks, the least length of what a norm reads; None for blocks without norms.
        rank: of W_QK and W_VO of each head; None for full rank. Narrow heads are built through their factors.
    """

    dim: int
    dim_out: int
    heads: int
    blocks: int
    layers: int
    radius: float
    norm_floor: float | None = None
    rank: int | None = None

    def is_narrow(self, columns: int) -> bool:
        """Whether the product of dim × columns of each head is built through its factors."""
        return self.rank is not None and needs_fewer_units(self.rank, self.dim, columns)

    def source(self, per_row: PerRow) -> PlannedSource:
        """The source with these units for each row.

        Its error is the certificate's formula applied to expected errors, for matrices of norm 1: logits move by δ,
        so softmax by 2·tanh(δ/2). In blocks every part reads inputs within the radius, and errors add up.
        """
        dim, products, error = self.dim, [], 0.0
        # The largest norm of what a sublayer reads: behind a norm always √d.
        reads = self.radius if self.norm_floor is None else math.sqrt(self.dim)
        for block, (key, value, forward) in enumerate(per_row):
            prefix = f"blocks.{block}." if self.blocks else ""
            query_key, value_output = self._attention(
                f"{prefix}attention." if self.blocks else "", key, value
            )
            error += self.heads * reads * 2 * math.tanh(reads * reads * _error_norm(query_key) / 2)
            error += self.heads * reads * _error_norm(value_output)
            products += query_key + value_output
            for i in range(self.layers if self.blocks else 0):
                name = f"{prefix}feed_forward.layers.{i}"
                products.append(PlannedProduct(name, "relu", 1, dim, dim, forward))
                error += reads * products[-1].error_norm
        return PlannedSource(tuple(products), error)

    def _attention(
        self, prefix: str, key: int, value: int
    ) -> tuple[list[PlannedProduct], list[PlannedProduct]]:
        """What W_QK and W_VO are made of: one product of each head, or its two factors, each a product."""

        def product(name: str, rows: int, columns: int, per_row: int) -> PlannedProduct:
            return PlannedProduct(f"{prefix}{name}", "product", self.heads, rows, columns, per_row)

        dim, dim_out, rank = self.dim, self.dim_out, self.rank or 0
        rows, columns = sorted((dim, dim_out))  # units keep one weight on the smaller side
        query_key = [product("query_key", dim, dim, key)]
        value_output = [product("value_output", rows, columns, value)]
        if self.is_narrow(dim):
            query_key = [product(name, rank, dim, key) for name in ("query", "key")]
        if self.is_narrow(dim_out):
            value_output = [product("value", rank, dim, value), product("output", rank, dim_out, value)]
        return query_key, value_output


def _error_norm(factors: Sequence[PlannedProduct]) -> float:
    """Of their product, the factors' norms being 1."""
    return math.prod(1 + factor.error_norm for factor in factors) - 1
