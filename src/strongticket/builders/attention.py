"""Multi-head attention from a pruned random one of the same shape but wider heads (Theorem 3/9).

Head h of the target is softmax(x W_QK x'ᵀ) x' W_VO. Both matrices are products of two random ones (Lemma
4/7): units of the side that is structured keep one input each, and the other side's masks choose. Lemma 7
structures the query and the value; the smaller side of the two needs fewer units for the same error. Heads that
share keys and values are structured on what they share, so that each head's own query and output stay free.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float64

from strongticket import checks
from strongticket.builders.options import BuildOptions, NetworkAssignment
from strongticket.builders.source import Builder, Part, certified, checked_target, finish
from strongticket.builders.width import build_sized
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets import MultiHeadAttention, merge
from strongticket.ticket import Ticket


def build_attention(target: object, options: BuildOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for a MultiHeadAttention: every head, any mask, biases by the constant coordinate.

    Args:
        target: a MultiHeadAttention.
        options: see BuildOptions; floors do not apply.
        changes: fields of BuildOptions, as keywords.

    >>> target = initialise(MultiHeadAttention(4, 4, 1, 2, 2), seed=1, normalised=True)
    >>> ticket = build_attention(target, epsilon=1e-2, radius=2.0)
    >>> x = torch.ones(5, 4)  # (tokens, dim_in), each ‖x_i‖ = 2
    >>> bool((ticket.network()(x) - target(x)).norm(dim=-1).max() <= ticket.certificate["bound"] <= 1e-2)
    True
    """
    chosen = BuildOptions.of(options, changes, unused=("floors",))
    builder = Builder(chosen)
    network = checked_target(target, (MultiHeadAttention,))
    merged = merge(network)
    query_key, value_output = merged.query_key.numpy(), merged.value_output.numpy()

    def build(widths: tuple[int, int]) -> Ticket:
        settings = attention_settings(network, widths)
        part = query_key_part(query_key, settings, builder, "", biased=network.bias)
        part.add(value_output_part(value_output, settings, builder, ""))
        return finish(network, settings, part, chosen)

    given = chosen.width
    widths = cast(tuple[int, int] | None, (given, given) if checks.is_whole(given) else given)
    return build_sized(
        build, lambda n: attention_widths(network, n, chosen.assignment), certified, chosen, widths
    )


def attention_widths(
    target: MultiHeadAttention, per_row: int, assignment: NetworkAssignment = "balanced"
) -> tuple[int, int]:
    """n_K and n_V that give each row of the structured side per_row units."""
    query_key = (target.dim_in + target.bias, target.context_dim)
    value_output = (target.context_dim + needs_constant(target), target.dim_out)
    if target.kv_heads < target.heads:  # what heads share is structured
        return per_row * query_key[1], per_row * value_output[0]
    if assignment != "balanced":
        return per_row * query_key[0], per_row * value_output[0]
    return per_row * min(query_key), per_row * min(value_output)


def attention_settings(target: MultiHeadAttention, widths: tuple[int, int]) -> JsonObject:
    """Settings of the source: the target's except for the widths; the value's bias row also makes the output bias."""
    if not isinstance(widths, Sequence) or len(widths) != 2:
        raise StrongTicketError(f"width={widths!r}: expected one number, or the two of n_K and n_V")
    checks.whole(**{"width of query and key": widths[0], "width of value and output": widths[1]})
    return target.settings() | dict(
        key_dim=widths[0], value_dim=widths[1], bias=needs_constant(target), output_bias=False
    )


def needs_constant(target: MultiHeadAttention) -> bool:
    return target.bias or target.output_bias is not None


def query_key_part(
    target: Float64[np.ndarray, "heads rows columns"],
    settings: JsonObject,
    builder: Builder,
    prefix: str,
    *,
    biased: bool,
) -> Part:
    """Masks of query and key; biased: the target's constant row is not zero."""
    heads, kv_heads, width = settings["heads"], settings["kv_heads"], settings["key_dim"]
    group = heads // kv_heads
    # The constant's column is zero (softmax does not see it), so the key's bias is pruned away whole.
    rows, columns = settings["dim_in"] + biased, settings["context_dim"]
    part = Part()
    query = _draw(part, builder, prefix, "query", settings)
    key = _draw(part, builder, prefix, "key", settings)
    query_mask, key_mask = np.zeros(query.shape, bool), np.zeros(key.shape, bool)
    product = np.zeros(target.shape)
    for g in range(kv_heads):
        ours = slice(g * group, (g + 1) * group)
        name = f"{prefix}query_key of " + (f"head {g}" if group == 1 else f"key head {g}")
        free = query[ours, :rows].reshape(group * rows, width)
        wanted = target[ours, :rows, :columns].reshape(group * rows, columns)
        query_side, key_side, pruned = builder.either_side(
            name,
            wanted,
            free,
            key[g, :columns],
            left_structured=builder.left_structured(rows, columns) if group == 1 else False,
            scale=width**-0.5,
        )
        query_mask[ours, :rows] = query_side.reshape(group, rows, width)
        key_mask[g, :columns] = key_side
        product[ours, :rows, :columns] = pruned.reshape(group, rows, columns)
    _store(part, prefix, "query", query_mask, settings)
    _store(part, prefix, "key", key_mask, settings)
    part.errors[f"{prefix}query_key"] = float(np.abs(product - target).max())
    return part


def value_output_part(
    target: Float64[np.ndarray, "heads rows dim_out"], settings: JsonObject, builder: Builder, prefix: str
) -> Part:
    """Masks of value and output."""
    heads, kv_heads, width = settings["heads"], settings["kv_heads"], settings["value_dim"]
    group, (rows, dim_out) = heads // kv_heads, target.shape[1:]
    part = Part()
    value = _draw(part, builder, prefix, "value", settings)
    shape = (heads, width, dim_out)
    output = part.draw(builder, f"{prefix}output", shape, builder.law(width, dim_out))
    value_mask, output_mask = np.zeros(value.shape, bool), np.zeros(shape, bool)
    product = np.zeros(target.shape)
    for g in range(kv_heads):
        ours = slice(g * group, (g + 1) * group)
        name = f"{prefix}value_output of " + (f"head {g}" if group == 1 else f"value head {g}")
        free = output[ours].transpose(0, 2, 1).reshape(group * dim_out, width)
        wanted = target[ours].transpose(1, 0, 2).reshape(rows, group * dim_out)
        value_mask[g], output_side, pruned = builder.either_side(
            name,
            wanted,
            value[g],
            free,
            left_structured=builder.left_structured(rows, dim_out) if group == 1 else True,
        )
        output_mask[ours] = output_side.reshape(group, dim_out, width).transpose(0, 2, 1)
        product[ours] = pruned.reshape(rows, group, dim_out).transpose(1, 0, 2)
    _store(part, prefix, "value", value_mask, settings)
    part.masks[f"{prefix}output"] = output_mask
    part.errors[f"{prefix}value_output"] = float(np.abs(product - target).max())
    return part


def _draw(part: Part, builder: Builder, prefix: str, name: str, settings: JsonObject) -> np.ndarray:
    """query, key or value of all heads (heads, dim', width), the bias as the constant's last row."""
    heads = settings["heads" if name == "query" else "kv_heads"]
    dim = settings["dim_in" if name == "query" else "context_dim"]
    width = settings["value_dim" if name == "value" else "key_dim"]
    law = builder.law(dim, width, key_width=None if name == "value" else width)
    weight = part.draw(builder, f"{prefix}{name}", (heads, dim, width), law)
    if not settings["bias"]:
        return weight
    bias = part.draw(builder, f"{prefix}{name}_bias", (heads, width), law)
    return np.concatenate([weight, bias[:, None]], 1)


def _store(part: Part, prefix: str, name: str, mask: np.ndarray, settings: JsonObject) -> None:
    """The reverse of `_draw`."""
    if settings["bias"]:
        part.masks[f"{prefix}{name}_bias"] = mask[:, -1].copy()
        mask = mask[:, :-1].copy()
    part.masks[f"{prefix}{name}"] = mask
