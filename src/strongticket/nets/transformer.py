"""Blocks with residuals and no normalisation (Theorem 11), and B of them in a row (Theorem 14)."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.merged import MergedAttention, MergedRelu
from strongticket.nets.relu import ReluNetwork


class Block(nn.Module):
    """y = attention(x) + x, then feed_forward(y) + y; its parts may be merged ones.

    x: (batch, tokens, dim) or (tokens, dim)

    >>> block = Block(MultiHeadAttention(4, 4, 2, 2, 2), ReluNetwork([4, 8, 4]))
    >>> block(torch.ones(5, 4)).shape
    torch.Size([5, 4])
    """

    kind = "block"

    def __init__(
        self, attention: MultiHeadAttention | MergedAttention, feed_forward: ReluNetwork | MergedRelu
    ):
        super().__init__()
        width = attention.dim_in
        found = (attention.context_dim, attention.dim_out, feed_forward.dims[0], feed_forward.dims[-1])
        if any(size != width for size in found):
            raise StrongTicketError(
                f"residuals need one width: attention reads {width} (context {found[0]}) and writes "
                f"{found[1]}, feed_forward reads {found[2]} and writes {found[3]}",
                hint="Make all of them equal.",
            )
        self.width = width
        self.attention, self.feed_forward = attention, feed_forward

    def settings(self) -> dict[str, Any]:
        if not isinstance(self.attention, MultiHeadAttention) or not isinstance(
            self.feed_forward, ReluNetwork
        ):
            raise StrongTicketError("a merged block has no settings: ask the block it was merged from")
        return dict(attention=self.attention.settings(), feed_forward=self.feed_forward.settings())

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        y = self.attention(x, mask=mask) + x
        return self.feed_forward(y) + y


class Transformer(nn.Module):
    """B blocks, all under the same attention mask.

    x: (batch, tokens, dim) or (tokens, dim)

    >>> block = Block(MultiHeadAttention(4, 4, 2, 2, 2), ReluNetwork([4, 4]))
    >>> Transformer([block])(torch.ones(3, 5, 4), mask=causal_mask(5)).shape
    torch.Size([3, 5, 4])
    """

    kind = "transformer"

    def __init__(self, blocks: Sequence[Block]):
        super().__init__()
        if not blocks:
            raise StrongTicketError("blocks is empty: expected at least one Block")
        widths = [block.width for block in blocks]
        for index, width in enumerate(widths):
            if width != widths[0]:
                raise StrongTicketError(
                    f"blocks[{index}] has width {width}, blocks[0] has {widths[0]}: make them all equal"
                )
        self.width = widths[0]
        self.blocks = nn.ModuleList(blocks)

    def settings(self) -> dict[str, Any]:
        blocks: list[Any] = list(self.blocks)
        return dict(blocks=[block.settings() for block in blocks])

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        for block in self.blocks:
            x = block(x, mask)
        return x
