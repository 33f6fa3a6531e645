"""What a plan is about: the products a source must make, their widths, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strongticket import theory
from strongticket.subset_sum import MAX_EXACT
from strongticket.theory.constants import Construction
from strongticket.ticket import masks

FILE_OVERHEAD = 1000  # bytes of a ticket besides its masks


@dataclass(frozen=True)
class Layer:
    """One product (`heads` of them) that a source must make: rows × columns, n = rows·per_row hidden units."""

    name: str
    construction: Construction
    heads: int
    rows: int
    columns: int
    per_row: int

    @property
    def width(self) -> int:
        return self.rows * self.per_row

    @property
    def problems(self) -> int:
        signs = 2 if self.construction == "relu" else 1
        return self.heads * self.rows * self.columns * signs

    @property
    def values(self) -> int:
        """Values of one subset-sum problem: no row gets more than can be solved exactly. Half of a ReLU pair's
        units serve each sign.
        """
        return max(1, min(self.per_row // (2 if self.construction == "relu" else 1), MAX_EXACT))

    @property
    def weights(self) -> int:
        return self.heads * self.width * (self.rows + self.columns)

    @property
    def error_norm(self) -> float:
        """Expected spectral norm of the error: many small entries, or one large one."""
        signs = 2 if self.construction == "relu" else 1
        dim = min(self.rows, self.columns)
        expected = theory.predicted_error(self.values * signs, dim=dim, construction=self.construction)
        spread = 1.48 * expected.median * (math.sqrt(self.rows) + math.sqrt(self.columns))
        return max(expected.maximum, spread)

    @property
    def mask_bits(self) -> float:
        """A unit keeps one of `rows` weights, and about half of its `columns` others."""
        return self.heads * self.width * (masks.entropy(self.rows, 1) + self.columns)


@dataclass(frozen=True)
class Size:
    """A source. error: expected at the output, the sum of the blocks' own errors."""

    layers: tuple[Layer, ...]
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

    norm_floor: in pre-norm blocks, the least length of what a norm reads; None for blocks without norms
    """

    dim: int
    dim_out: int
    heads: int
    blocks: int
    layers: int
    radius: float
    norm_floor: float | None = None

    @property
    def reads(self) -> float:
        """The largest norm of what a sublayer reads: behind a norm always √d."""
        return self.radius if self.norm_floor is None else math.sqrt(self.dim)

    def source(self, per_row: Sequence[tuple[int, int]]) -> tuple[Layer, ...]:
        """per_row: of query-key and value-output; in blocks, one pair each, of attention and feed-forward."""
        if not self.blocks:
            key, value = per_row[0]
            return self._attention("", key, value)
        found: list[Layer] = []
        for block, (attention, forward) in enumerate(per_row):
            found += self._attention(f"blocks.{block}.attention.", attention, attention)
            names = [f"blocks.{block}.feed_forward.layers.{i}" for i in range(self.layers)]
            found += [Layer(name, "relu", 1, self.dim, self.dim, forward) for name in names]
        return tuple(found)

    def error(self, source: Sequence[Layer]) -> float:
        """The certificate's formula applied to expected errors, for matrices of norm 1: logits move by δ, so
        softmax by 2·tanh(δ/2). In blocks every part reads inputs within the radius, and errors add up.
        """
        total = 0.0
        for layer in source:
            own = self.reads * layer.error_norm
            if layer.name.endswith("query_key"):
                own = self.reads * 2 * math.tanh(self.reads * own / 2)
            total += layer.heads * own
        return total

    def _attention(self, prefix: str, key: int, value: int) -> tuple[Layer, Layer]:
        return (
            Layer(f"{prefix}query_key", "product", self.heads, self.dim, self.dim, key),
            Layer(
                f"{prefix}value_output",
                "product",
                self.heads,
                min(self.dim, self.dim_out),  # the smaller side is structured
                max(self.dim, self.dim_out),
                value,
            ),
        )
