"""Blocks with residuals (Theorem 11) and B of them in a row (Theorem 14), with or without normalisation."""

from collections.abc import Sequence
from typing import cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.merged import MergedAttention, MergedRelu
from strongticket.nets.norm import norm_or_identity
from strongticket.nets.relu import ReluNetwork
from strongticket.theory.normalisation import Normalisation, NormKind


class Block(nn.Module):
    """y = attention(norm(x)) + x, then feed_forward(norm(y)) + y; its parts may be merged ones.

    Args:
        attention: self-attention that reads and writes the block's width.
        feed_forward: of that width at both ends.
        norm: "layer" or "rms" for a pre-norm block; None, as in the paper, reads the stream as it is.
        norm_epsilon: what the norm adds to the mean square.

    >>> block = Block(MultiHeadAttention(4, 4, 2, 2, 2), ReluNetwork([4, 8, 4]), norm="rms")
    >>> block(torch.ones(5, 4)).shape
    torch.Size([5, 4])
    """

    kind = "block"

    def __init__(
        self,
        attention: MultiHeadAttention | MergedAttention,
        feed_forward: ReluNetwork | MergedRelu,
        *,
        norm: NormKind | None = None,
        norm_epsilon: float = 1e-5,
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
        self.rule = None if norm is None else Normalisation(norm, norm_epsilon)
        self.attention_norm = norm_or_identity(self.rule)
        self.attention = attention
        self.feed_forward_norm = norm_or_identity(self.rule)
        self.feed_forward = feed_forward

    def settings(self) -> JsonObject:
        """Return what `make` needs to make a block of this shape."""
        if isinstance(self.attention, MergedAttention) or isinstance(self.feed_forward, MergedRelu):
            raise StrongTicketError("a merged block has no settings: ask the block it was merged from")
        parts = dict(attention=self.attention.settings(), feed_forward=self.feed_forward.settings())
        return parts | norm_settings(self.rule)

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        """Run on (batch, tokens, dim) or (tokens, dim); the mask is True where a row attends, as in its attention."""
        y = self.attention(self.attention_norm(x), mask=mask) + x
        z: Tensor = self.feed_forward(self.feed_forward_norm(y)) + y
        return z


class Transformer(nn.Module):
    """B blocks, all under the same attention mask.

    Args:
        blocks: of one width.
        norm: "layer" or "rms" for a norm behind the last block, as pre-norm transformers have it; None for none.
        norm_epsilon: what that norm adds to the mean square.

    >>> block = Block(MultiHeadAttention(4, 4, 2, 2, 2), ReluNetwork([4, 4]))
    >>> Transformer([block])(torch.ones(3, 5, 4), mask=causal_mask(5)).shape
    torch.Size([3, 5, 4])
    """

    kind = "transformer"

    def __init__(self, blocks: Sequence[Block], *, norm: NormKind | None = None, norm_epsilon: float = 1e-5):
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
        self.blocks = cast(Sequence[Block], nn.ModuleList(blocks))
        self.rule = None if norm is None else Normalisation(norm, norm_epsilon)
        self.norm = norm_or_identity(self.rule)

    def settings(self) -> JsonObject:
        """Return what `make` needs to make a transformer of this shape."""
        return dict(blocks=[block.settings() for block in self.blocks]) | norm_settings(self.rule)

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        """Run on (batch, tokens, dim) or (tokens, dim); the mask is True where a row attends, as in its attention."""
        for block in self.blocks:
            x = block(x, mask)
        y: Tensor = self.norm(x)
        return y


def norm_settings(rule: Normalisation | None) -> JsonObject:
    """Return norm and norm_epsilon as the constructors take them; nothing for no norm, as older files have it."""
    return {} if rule is None else dict(norm=rule.kind, norm_epsilon=rule.epsilon)
