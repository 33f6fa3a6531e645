"""Blocks (Theorem 11) and transformers (Theorem 14), with or without norms, which have no trained parameters."""

from strongticket.builders.attention import prune_attention
from strongticket.builders.relu import prune_relu
from strongticket.builders.source import Size, Source
from strongticket.files import JsonObject
from strongticket.theory.weights import BlockWeights, TransformerWeights


def prune_block(
    target: BlockWeights, settings: JsonObject, size: Size, source: Source, prefix: str = ""
) -> JsonObject:
    """Draw and prune a block, whose feed-forward network gets twice as deep; size: n_MHA and n_FC."""
    attention_size = forward_size = size
    if size.per_row is None:
        attention, forward = size.widths
        attention_size = Size(None, (attention, attention))
        forward_size = Size(None, (forward,) * len(target.layers))
    return settings | dict(
        attention=prune_attention(
            target, settings["attention"], attention_size, source, f"{prefix}attention."
        ),
        feed_forward=prune_relu(
            target, settings["feed_forward"], forward_size, source, f"{prefix}feed_forward."
        ),
    )


def prune_transformer(
    target: TransformerWeights, settings: JsonObject, size: Size, source: Source
) -> JsonObject:
    """Draw and prune all blocks, each of the same size."""
    blocks = zip(target.blocks, settings["blocks"], strict=True)
    return settings | dict(
        blocks=[
            prune_block(block, its_settings, size, source, f"blocks.{index}.")
            for index, (block, its_settings) in enumerate(blocks)
        ]
    )
