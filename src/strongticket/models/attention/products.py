"""Attention run from products alone: queries with keys, values with outputs, as Theorem 3 has it."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn


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
        """Query heads of each key head."""
        return self.heads // self.kv_heads

    @property
    def frequencies(self) -> int:
        """How many matrices the logits of a key head are the sum of."""
        return max(self.pairs, 1)

    def products(self) -> dict[str, tuple[int, int]]:
        """Name -> (rows, columns) of every product.

        Of each key head and frequency tokens with tokens, the query's bias and the key's; of each key head W_VO of its
        query heads side by side; what is added to the output.
        """
        found, columns = {}, self.group * (2 if self.pairs else 1)
        for g in range(self.kv_heads):
            for f in range(self.frequencies):
                found[f"query_key_{f}_{g}"] = self.dim, columns * self.dim
                if self.query_bias:
                    found[f"query_bias_{f}_{g}"] = self.dim, columns
                if self.key_bias:
                    found[f"key_bias_{f}_{g}"] = 1, columns * (self.dim + self.query_bias)
        found |= {f"value_output_{g}": (self.dim, self.group * self.dim) for g in range(self.kv_heads)}
        return found | ({"output_bias": (1, self.dim)} if self.output_bias else {})


Rotation = tuple[Float[Tensor, "batch _ pairs"], Float[Tensor, "batch _ pairs"]]  # cos, sin of all


class ProductAttention(nn.Module):
    """Softmax attention whose parameters are products; a family's subclass has its forward.

    Args:
        shape: of the layer; its products become parameters, all zero.
        layer: its number in transformers' cache.
    """

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.shape, self.layer_idx = shape, layer
        for name, sizes in shape.products().items():
            self.register_parameter(name, nn.Parameter(torch.zeros(sizes), requires_grad=False))

    def attend(
        self,
        x: Float[Tensor, "batch tokens dim"],
        y: Float[Tensor, "batch context_tokens dim"],
        mask: Tensor | None,
        rotations: tuple[Rotation, Rotation] | None = None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], Float[Tensor, "batch heads tokens context_tokens"]]:
        """Run it on the tokens x of the queries and y of keys and values.

        The mask is added to the logits, or is bool (True attends); rotations are those of x and y.
        """
        logits: Any = 0
        for f in range(self.shape.frequencies):
            angles = rotations and [[wave[..., f] for wave in rotation] for rotation in rotations]
            logits = logits + self._logits(f, x, y, angles)
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
        weights = logits.softmax(-1, dtype=torch.float32).to(x.dtype)
        # (batch, key heads, group, tokens, dim): tokens as each head mixes them.
        mixed = weights.unflatten(1, (-1, self.shape.group)) @ y[:, None, None]
        values = self._stacked("value_output").unflatten(-1, (self.shape.group, -1))
        out = torch.einsum("bkgtd,kdgo->bto", mixed, values)
        if self.shape.output_bias:
            bias: Any = self.output_bias  # a parameter, or random factors in its place
            out = out + bias[0]
        return out, weights

    def _logits(self, f: int, x: Tensor, y: Tensor, angles: Any) -> Tensor:
        """One frequency of every head, (batch, heads, tokens, context_tokens), biases included."""
        s, one = self.shape, torch.ones_like(x[:1, :1, :1])
        logits = self._term(f"query_key_{f}", x, y, angles)
        if s.query_bias:
            logits = logits + self._term(f"query_bias_{f}", one, y, angles)
        if s.key_bias:
            query = torch.cat([x, torch.ones_like(x[..., :1])], -1) if s.query_bias else x
            logits = logits + self._term(f"key_bias_{f}", query, torch.ones_like(y[..., :1]), angles)
        return logits.flatten(1, 2)

    def _term(self, name: str, x: Tensor, y: Tensor, angles: Any) -> Tensor:
        """(batch, key heads, group, tokens, context_tokens).

        With RoPE the first half of a matrix goes with the cosine of the difference of positions, the second with the
        sine: cos(m − n) = cos m cos n + sin m sin n.
        """
        matrix = self._stacked(name).unflatten(-1, (self.shape.group, 2 if angles else 1, -1))
        q = torch.einsum("btd,kughd->hbkgtu", x, matrix)
        k = y[:, None, None]
        if angles is None:
            plain: Tensor = q[0] @ k.transpose(-1, -2)
            return plain
        (cos_q, sin_q), (cos_k, sin_k) = ([a[:, None, None, :, None] for a in waves] for waves in angles)
        cosine: Tensor = (q[0] * cos_q - q[1] * sin_q) @ (k * cos_k).transpose(-1, -2)
        sine: Tensor = (q[1] * cos_q + q[0] * sin_q) @ (k * sin_k).transpose(-1, -2)
        return cosine + sine

    def _stacked(self, name: str) -> Float[Tensor, "key_heads rows columns"]:
        return torch.stack([getattr(self, f"{name}_{head}") for head in range(self.shape.kv_heads)])

    def update_cache(self, cache: Any, y: Tensor, rotation: Tensor | None) -> tuple[Tensor, Tensor]:
        """Past and present tokens from a transformers cache: it keeps what attention reads, not what it makes.

        The rotation (batch, tokens, any) is the cosines and sines of the tokens' positions.
        """
        kept = y[..., :0] if rotation is None else rotation
        if cache is None:
            return y, kept
        past_y, past_kept = cache.update(y[:, None], kept[:, None], self.layer_idx)
        return past_y[:, 0], past_kept[:, 0]
