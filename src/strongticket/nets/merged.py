"""The same functions with their products merged: fewer operations, and the form that the theorems use.

They are made for running and measuring, so their weights take no gradient.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from strongticket.nets.attention import masked_softmax, prepare


class MergedAttention(nn.Module):
    """Σ_h softmax(x' QK_h y'ᵀ; mask) y' VO_h with x' = (x, 1) where biases need the constant coordinate.

    query_key: (heads, d1', dctx'), the 1/√key_dim inside; value_output: (heads, dctx', dim_out).
    The constant's column of query_key is zero: it moves all logits of a row alike, and softmax sees nothing.
    """

    def __init__(
        self,
        query_key: Float[Tensor, "heads rows columns"],
        value_output: Float[Tensor, "heads columns dim_out"],
        *,
        constant: bool,
    ):
        super().__init__()
        self.query_key = nn.Parameter(query_key, requires_grad=False)
        self.value_output = nn.Parameter(value_output, requires_grad=False)
        self.constant = constant
        self.heads, rows, columns = query_key.shape
        self.dim_in, self.context_dim = rows - constant, columns - constant
        self.dim_out = value_output.shape[-1]

    def forward(
        self,
        x: Float[Tensor, "*batch tokens dim_in"],
        context: Float[Tensor, "*same_batch context_tokens context_dim"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch tokens dim_out"]:
        """Attend as MultiHeadAttention does; the mask is True where a row attends."""
        x, context, mask, batched = prepare(self, x, context, mask)
        if self.constant:
            x, context = (torch.cat([t, torch.ones_like(t[..., :1])], -1) for t in (x, context))
        # In this order: certificates count its roundings.
        seen = torch.einsum("btd,hde->bhte", x, self.query_key)
        logits = seen @ context[:, None].transpose(-1, -2)
        averages = masked_softmax(logits, mask) @ context[:, None]
        y = torch.einsum("bhtd,hdo->bto", averages, self.value_output)
        return y if batched else y[0]


class MergedRelu(nn.Module):
    """Pairs of layers merged into positive·relu(x) + negative·relu(−x) + constant, a ReLU between pairs.

    pairs: positive (out, in), negative (out, in) and constant (out,) of each
    """

    def __init__(
        self, pairs: list[tuple[Float[Tensor, "out in"], Float[Tensor, "out in"], Float[Tensor, " out"]]]
    ):
        super().__init__()
        self.positive, self.negative, self.constant = (
            nn.ParameterList(nn.Parameter(part, requires_grad=False) for part in parts)
            for parts in zip(*pairs, strict=True)
        )
        self.dims = [pairs[0][0].shape[1], *(pair[0].shape[0] for pair in pairs)]

    def forward(self, x: Float[Tensor, "*batch dim_in"]) -> Float[Tensor, "*batch dim_out"]:
        """Apply one pair after the other."""
        for index, (up, down, one) in enumerate(
            zip(self.positive, self.negative, self.constant, strict=True)
        ):
            x = x if index == 0 else x.relu()
            x = x.relu() @ up.T + (-x).relu() @ down.T + one
        return x
