"""Attention from products: queries with keys, values with outputs, as Theorem 3 has it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from strongticket.pretrained.modules.matrix import Matrix, Merged


class Shape(NamedTuple):
    """Sizes of an attention layer. pairs: frequencies of RoPE, 0 without; query_bias, key_bias: seen by softmax."""

    heads: int
    kv_heads: int
    dim: int
    pairs: int = 0
    query_bias: bool = False
    key_bias: bool = False
    output_bias: bool = False

    @property
    def group(self) -> int:
        return self.heads // self.kv_heads


Angles = tuple[Float[Tensor, "batch tokens"], Float[Tensor, "batch tokens"]]  # cos, sin at one frequency
Rotation = tuple[Float[Tensor, "batch tokens pairs"], Float[Tensor, "batch tokens pairs"]]


class Logits(nn.Module):
    """One frequency of every key head. Keys keep one input per unit; the queries of the head's group choose.

    With RoPE a unit is a pair: its key keeps the first half alone, its queries both, so that the first makes
    the cosine's matrix and the second the sine's.
    """

    def __init__(
        self,
        shape: Shape,
        tokens: Sequence[Matrix],
        query_bias: Sequence[Matrix],
        key_bias: Sequence[Matrix],
    ) -> None:
        super().__init__()
        self.shape = shape
        self.tokens, self.query_bias, self.key_bias = stacked(tokens), stacked(query_bias), stacked(key_bias)

    def forward(
        self,
        x: Float[Tensor, "batch tokens dim"],
        y: Float[Tensor, "batch context_tokens dim"],
        angles: tuple[Angles, Angles] | None,
    ) -> Float[Tensor, "batch heads tokens context_tokens"]:
        logits = self._term(self.tokens, x, y, angles)
        if self.shape.query_bias:
            logits = logits + self._term(self.query_bias, torch.ones_like(x[:1, :1, :1]), y, angles)
        if self.shape.key_bias:
            query = torch.cat([x, torch.ones_like(x[..., :1])], -1) if self.shape.query_bias else x
            logits = logits + self._term(self.key_bias, query, torch.ones_like(y[..., :1]), angles)
        return logits.flatten(1, 2)

    def _term(self, matrices: Any, x: Tensor, y: Tensor, angles: Any) -> Tensor:
        """(batch, key heads, group, tokens, context_tokens)"""
        heads = []
        for matrix in matrices:
            total: Any = 0
            for pair in matrix.factor_pairs(x):
                outer = by_head(pair.spread(matrix.columns)).unflatten(
                    2, (self.shape.group, 2 if angles else 1, -1)
                )
                q = torch.einsum("btd,gujhd->hbgjtu", x, outer)
                k = pair.hidden(y)[:, None, None]  # (batch, 1, 1, context_tokens, units)
                if angles is None:
                    total = total + q[0] @ k.transpose(-1, -2)
                    continue
                (cos_q, sin_q), (cos_k, sin_k) = (
                    [a[:, None, None, :, None] for a in rotation] for rotation in angles
                )
                total = total + (q[0] * cos_q - q[1] * sin_q) @ (k * cos_k).transpose(-1, -2)
                total = total + (q[1] * cos_q + q[0] * sin_q) @ (k * sin_k).transpose(-1, -2)
            heads.append(total)
        return torch.cat(heads, 1)


class SourceAttention(nn.Module):
    """Softmax attention whose logits and outputs are products; a family's subclass has its forward.

    layer: its number in transformers' cache, if the model has one
    """

    def __init__(
        self,
        shape: Shape,
        frequencies: Sequence[Logits],
        values: Sequence[Matrix],
        bias: Matrix | None,
        layer: int | None = None,
    ) -> None:
        super().__init__()
        self.layer_idx = layer
        self.shape = shape
        self.frequencies = nn.ModuleList(frequencies)
        self.values = stacked(values)
        self.output_bias = bias

    def attend(
        self,
        x: Float[Tensor, "batch tokens dim"],
        y: Float[Tensor, "batch context_tokens dim"],
        mask: Tensor | None,
        rotations: tuple[Rotation, Rotation] | None = None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch heads tokens context_tokens"]]:
        """x: of the queries; y: of keys and values; mask: added to the logits, or bool (True attends)."""
        logits: Any = 0
        for f, frequency in enumerate(self.frequencies):
            angles = (
                None
                if rotations is None
                else tuple(tuple(r[..., f] for r in rotation) for rotation in rotations)
            )
            logits = logits + frequency(x, y, angles)
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
        weights = logits.softmax(-1, dtype=torch.float32).to(x.dtype)
        out: Any = 0
        # (batch, key heads, group, tokens, context_tokens)
        grouped = weights.unflatten(1, (-1, self.shape.group))
        for matrix, mine in zip(self.values, grouped.chunk(len(self.values), 1), strict=True):
            for pair in matrix.factor_pairs(x):  # type: ignore[operator]
                mixed = mine @ pair.hidden(y)[:, None, None]
                outer = by_head(pair.spread(matrix.columns)).unflatten(2, (self.shape.group, -1))
                out = out + torch.einsum("bgjtu,gujo->bto", mixed, outer)
        return (out if self.output_bias is None else out + self.output_bias.constant()), weights

    def remember(self, cache: Any, y: Tensor, rotation: Tensor | None) -> tuple[Tensor, Tensor]:
        """Past and present tokens from a transformers cache: it keeps what attention reads, not what it makes.

        rotation: (batch, tokens, any), cosines and sines of the tokens' positions.
        """
        kept = y[..., :0] if rotation is None else rotation
        if cache is None:
            return y, kept
        past_y, past_kept = cache.update(y[:, None], kept[:, None], self.layer_idx)
        return past_y[:, 0], past_kept[:, 0]


def stacked(matrices: Sequence[Matrix]) -> nn.ModuleList:
    """Merged matrices of all key heads read the same coordinates: one matrix with the heads in front."""
    if matrices and all(isinstance(matrix, Merged) for matrix in matrices):
        return nn.ModuleList([Merged(torch.stack([matrix.weight.data for matrix in matrices]))])
    return nn.ModuleList(matrices)


def by_head(outer: Tensor) -> Float[Tensor, "key_heads units columns"]:
    return outer if outer.ndim == 3 else outer[None]
