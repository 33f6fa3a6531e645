"""Blocks (Theorem 11) and transformers (Theorem 14), with or without norms: every attention, every layer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from strongticket.builders.attention import (
    attention_settings,
    attention_widths,
    query_key_part,
    value_output_part,
)
from strongticket.builders.options import BuildOptions
from strongticket.builders.probe import Probe, check_fit
from strongticket.builders.relu import Stream, relu, relu_part, relu_settings, relu_widths
from strongticket.builders.source import Builder, Part, certified, checked_target, finish
from strongticket.builders.width import build_sized
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets import Block, MergedAttention, MultiHeadAttention, ReluNetwork, Transformer, merge
from strongticket.nets.transformer import norm_settings
from strongticket.ticket import Ticket

BlockWidth = tuple[tuple[int, int], Sequence[int]]  # (n_K, n_V) and one hidden width per feed-forward layer


def build_transformer(target: object, options: BuildOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for a Block or Transformer in a random one whose feed-forward networks are twice as deep.

    Norms have no trained parameters, so the source has the same ones.

    Args:
        target: a Block or Transformer.
        options: see BuildOptions. The certificate covers all inputs alike; fit="composition" serves inputs
            like the probe's.
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
    check_fit(chosen.fit, chosen.probe)
    if chosen.mask is not None and chosen.probe is None:
        raise StrongTicketError(
            "mask is that of the probe inputs (a ticket holds for any mask)", hint="Pass probe= too."
        )
    blocks = list(network.blocks) if isinstance(network, Transformer) else [network]
    start = None if chosen.probe is None else _start(chosen.probe, chosen.mask, network.width)

    def build(widths: Sequence[BlockWidth]) -> Ticket:
        whole, tokens, settings = Part(), start, []
        for index, (block, (attention, feed_forward)) in enumerate(zip(blocks, widths, strict=True)):
            prefix = f"blocks.{index}." if isinstance(network, Transformer) else ""
            settings.append(
                dict(
                    attention=attention_settings(_attention(block), attention),
                    feed_forward=relu_settings(_feed_forward(block), feed_forward),
                )
                | norm_settings(block.attention_norm)
            )
            part, tokens = block_part(block, settings[-1], builder, prefix, tokens)
            whole.add(part)
        described: JsonObject = settings[0]
        if isinstance(network, Transformer):
            described = dict(blocks=settings) | norm_settings(network.norm)
        return finish(network, described, whole, chosen, fit=chosen.fit)

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


@dataclass(frozen=True)
class Tokens:
    """The same sequences as the target's blocks and as the source's blocks have left them."""

    target: Float64[Tensor, "batch tokens dim"]
    source: Float64[Tensor, "batch tokens dim"]
    mask: Bool[Tensor, "..."] | None

    def rows(self, tensor: Float64[Tensor, "batch tokens width"]) -> Float64[np.ndarray, "samples width"]:
        return tensor.reshape(-1, tensor.shape[-1]).numpy()

    @property
    def held_out(self) -> Bool[np.ndarray, " samples"]:
        """Every second sequence, token by token."""
        batch, tokens, _ = self.source.shape
        return np.repeat(np.arange(batch) % 2 == 1, tokens)


def block_part(
    block: Block, settings: JsonObject, builder: Builder, prefix: str, tokens: Tokens | None
) -> tuple[Part, Tokens | None]:
    """Masks of one block; tokens given, they are fitted to and taken through it."""
    target_attention, target_forward = _attention(block), _feed_forward(block)
    merged = merge(target_attention)
    attention, feed_forward = settings["attention"], settings["feed_forward"]
    query_key, value_output = merged.query_key.numpy(), merged.value_output.numpy()
    where = f"{prefix}attention."
    whole, pruned_query_key = query_key_part(
        query_key, attention, builder, where, biased=target_attention.bias
    )
    if tokens is None:
        whole.add(value_output_part(value_output, attention, builder, where)[0])
        whole.add(
            relu_part(target_forward, feed_forward["dims"][1::2], builder, f"{prefix}feed_forward.", None)[0]
        )
        return whole, None

    # What the pruned queries and keys mix out of the tokens that the source really has.
    mixer = MergedAttention(torch.from_numpy(pruned_query_key), merged.value_output, constant=merged.constant)
    with torch.no_grad():
        after_target = block.attention(block.attention_norm(tokens.target), mask=tokens.mask) + tokens.target
        read_target = block.feed_forward_norm(after_target)
        out_target = block.feed_forward(read_target) + after_target
        read = block.attention_norm(tokens.source)
        mixed = mixer.mix(read, read, tokens.mask)
    features = tokens.rows(mixed.transpose(1, 2).flatten(2))
    source = tokens.rows(tokens.source)

    def build(weight: np.ndarray) -> tuple[Part, np.ndarray]:
        return value_output_part(weight.reshape(value_output.shape), attention, builder, where)

    part, pruned_value_output = Probe(features, tokens.rows(after_target) - source, tokens.held_out).choose(
        value_output.reshape(-1, value_output.shape[-1]),
        build,
        lambda built, x: x @ built[1].reshape(x.shape[1], -1),
    )
    whole.add(part)
    after_source = features @ pruned_value_output.reshape(features.shape[1], -1) + source
    read_source = block.feed_forward_norm(torch.from_numpy(after_source)).numpy()
    stream = Stream(
        source=read_source,
        target=tokens.rows(read_target),
        wanted=tokens.rows(out_target) - after_source,  # this corrects the residual's error too
        held_out=tokens.held_out,
    )
    part, pairs = relu_part(
        target_forward, feed_forward["dims"][1::2], builder, f"{prefix}feed_forward.", stream
    )
    whole.add(part)
    x = read_source
    for pair in pairs:
        x = pair(x if pair is pairs[0] else relu(x))
    out_source = torch.from_numpy(x + after_source).reshape(tokens.source.shape)
    return whole, replace(tokens, target=out_target, source=out_source)


def _attention(block: Block) -> MultiHeadAttention:
    assert isinstance(block.attention, MultiHeadAttention)  # a target is never merged
    return block.attention


def _feed_forward(block: Block) -> ReluNetwork:
    assert isinstance(block.feed_forward, ReluNetwork)
    return block.feed_forward


def _start(probe: Tensor, mask: Tensor | None, width: int) -> Tokens:
    if probe.ndim != 3 or probe.shape[-1] != width:
        raise StrongTicketError(f"probe has shape {tuple(probe.shape)}: expected (batch, tokens, {width})")
    x = probe.detach().double()
    return Tokens(x, x, mask)


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
