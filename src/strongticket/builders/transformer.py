"""Blocks (Theorem 11) and transformers (Theorem 14), with or without norms: every attention, every layer."""

from collections.abc import Sequence
from typing import Any, cast

from strongticket.builders.attention import (
    attention_settings,
    attention_widths,
    query_key_part,
    value_output_part,
)
from strongticket.builders.options import BuildOptions
from strongticket.builders.relu import relu_part, relu_settings, relu_widths
from strongticket.builders.source import Builder, Part, certified, checked_target, finish
from strongticket.builders.width import build_sized
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer, merge
from strongticket.nets.transformer import norm_settings
from strongticket.ticket import Ticket

BlockWidth = tuple[tuple[int, int], Sequence[int]]  # (n_K, n_V) and one hidden width per feed-forward layer


def build_transformer(target: object, options: BuildOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for a Block or Transformer in a random one whose feed-forward networks are twice as deep.

    Norms have no trained parameters, so the source has the same ones.

    Args:
        target: a Block or Transformer.
        options: see BuildOptions.
        changes: fields of BuildOptions, as keywords.

    >>> block = Block(MultiHeadAttention(4, 4, 1, 2, 2), ReluNetwork([4, 4]))
    >>> target = initialise(Transformer([block]), seed=1, normalised=True)
    >>> ticket = build_transformer(target, per_row=24)
    >>> x = torch.ones(5, 4) / 2  # (tokens, dim)
    >>> bool((ticket.network()(x) - target(x)).norm(dim=-1).max() < 1e-2)
    True
    """
    chosen = BuildOptions.of(options, changes)
    builder = Builder(chosen)
    network = cast(Transformer | Block, checked_target(target, (Transformer, Block)))
    blocks = list(network.blocks) if isinstance(network, Transformer) else [network]

    def build(widths: Sequence[BlockWidth]) -> Ticket:
        whole, settings = Part(), []
        for index, (block, (attention, feed_forward)) in enumerate(zip(blocks, widths, strict=True)):
            prefix = f"blocks.{index}." if isinstance(network, Transformer) else ""
            settings.append(
                dict(
                    attention=attention_settings(_attention(block), attention),
                    feed_forward=relu_settings(_feed_forward(block), feed_forward),
                )
                | norm_settings(block.rule)
            )
            whole.add(block_part(block, settings[-1], builder, prefix))
        described: JsonObject = settings[0]
        if isinstance(network, Transformer):
            described = dict(blocks=settings) | norm_settings(network.rule)
        return finish(network, described, whole, chosen)

    def widths_of(per_row: int) -> list[BlockWidth]:
        return [
            (
                attention_widths(_attention(block), per_row, chosen.assignment),
                relu_widths(_feed_forward(block), per_row),
            )
            for block in blocks
        ]

    given = None if chosen.width is None else _per_block(chosen.width, blocks)
    return build_sized(build, widths_of, certified, chosen, given)


def block_part(block: Block, settings: JsonObject, builder: Builder, prefix: str) -> Part:
    """Masks of one block."""
    target = _attention(block)
    merged, attention = merge(target), settings["attention"]
    where = f"{prefix}attention."
    whole = query_key_part(merged.query_key.numpy(), attention, builder, where, biased=target.bias)
    whole.add(value_output_part(merged.value_output.numpy(), attention, builder, where))
    widths = settings["feed_forward"]["dims"][1::2]
    whole.add(relu_part(_feed_forward(block), widths, builder, f"{prefix}feed_forward."))
    return whole


def _attention(block: Block) -> MultiHeadAttention:
    assert isinstance(block.attention, MultiHeadAttention)  # a target is never merged
    return block.attention


def _feed_forward(block: Block) -> ReluNetwork:
    assert isinstance(block.feed_forward, ReluNetwork)
    return block.feed_forward


def _per_block(width: Any, blocks: list[Block]) -> list[BlockWidth]:
    if isinstance(width, int):
        width = (width, width)
    pairs = [width] * len(blocks) if isinstance(width, tuple) else width
    if not isinstance(pairs, Sequence) or len(pairs) != len(blocks) or any(len(pair) != 2 for pair in pairs):
        raise StrongTicketError(
            f"width={width!r}: expected one number, the two of n_MHA and n_FC, or a list of the two for each "
            f"of the {len(blocks)} blocks"
        )
    return [
        ((attention, attention), [hidden] * len(_feed_forward(block).biases))
        for (attention, hidden), block in zip(pairs, blocks, strict=True)
    ]
