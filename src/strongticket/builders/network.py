"""Any of strongticket.nets' networks, by its kind."""

from typing import Any

from torch import nn

from strongticket.builders.attention import build_attention
from strongticket.builders.options import BuildOptions
from strongticket.builders.relu import build_relu
from strongticket.builders.transformer import build_transformer
from strongticket.errors import StrongTicketError
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.ticket import Ticket


def products_of(target: nn.Module) -> int:
    """How many products `build_network` makes of `target`, one of strongticket.nets' networks."""
    if isinstance(target, MultiHeadAttention):
        return 2 * target.kv_heads
    if isinstance(target, ReluNetwork):
        return len(target.layers)
    if isinstance(target, Block):
        return products_of(target.attention) + products_of(target.feed_forward)
    assert isinstance(target, Transformer)
    return sum(products_of(block) for block in target.blocks)


def build_network(target: object, options: BuildOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for any of strongticket.nets' networks.

    Args:
        target: a MultiHeadAttention, ReluNetwork, Block or Transformer.
        options: see BuildOptions.
        changes: fields of BuildOptions, as keywords.
    """
    builders = dict(
        attention=build_attention, relu=build_relu, block=build_transformer, transformer=build_transformer
    )
    kind = getattr(target, "kind", "")
    if kind not in builders:
        raise StrongTicketError(
            f"target is a {type(target).__name__}: expected one of strongticket.nets' networks "
            f"({', '.join(builders)})"
        )
    return builders[kind](target, options, **changes)
