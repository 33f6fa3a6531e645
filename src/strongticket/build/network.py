"""Any of strongticket.nets' networks, by its kind."""

from typing import Any

from strongticket.build.attention import build_attention
from strongticket.build.options import BuildOptions
from strongticket.build.relu import build_relu
from strongticket.build.transformer import build_transformer
from strongticket.errors import StrongTicketError
from strongticket.nets import MultiHeadAttention, ReluNetwork, Transformer
from strongticket.ticket import Ticket


def products_of(target: Any) -> int:
    """How many products `build_network` makes of one of strongticket.nets' networks."""
    if isinstance(target, MultiHeadAttention):
        return 2 * target.kv_heads
    if isinstance(target, ReluNetwork):
        return len(target.layers)
    parts = target.blocks if isinstance(target, Transformer) else (target.attention, target.feed_forward)
    return sum(products_of(part) for part in parts)


def build_network(target: Any, options: BuildOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for any of strongticket.nets' networks.

    Args:
        target: a MultiHeadAttention, ReluNetwork, Block or Transformer.
        options: see BuildOptions.
        changes: fields of BuildOptions, as keywords.
    """
    builders = dict(
        attention=build_attention, relu=build_relu, block=build_transformer, transformer=build_transformer
    )
    kind = getattr(target, "kind", None)
    if kind not in builders:
        raise StrongTicketError(
            f"target is a {type(target).__name__}: expected one of strongticket.nets' networks "
            f"({', '.join(builders)})"
        )
    return builders[kind](target, options, **changes)
