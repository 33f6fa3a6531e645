"""Fold a network's products: queries with keys, values with outputs, a ReLU pair's two layers."""

from typing import Any, TypeVar, overload

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.merged import MergedAttention, MergedRelu
from strongticket.nets.norm import find_norms
from strongticket.nets.relu import Linear, ReluNetwork
from strongticket.nets.transformer import Block, Transformer, norm_settings

Composite = TypeVar("Composite", Block, Transformer)


@overload
def merge(module: MultiHeadAttention, dtype: torch.dtype | None = None) -> MergedAttention: ...
@overload
def merge(module: ReluNetwork, dtype: torch.dtype | None = None) -> ReluNetwork | MergedRelu: ...
@overload
def merge(module: Block, dtype: torch.dtype | None = None) -> Block: ...
@overload
def merge(module: Transformer, dtype: torch.dtype | None = None) -> Transformer: ...
@overload
def merge(module: nn.Module, dtype: torch.dtype | None = None) -> Any: ...
def merge(module: nn.Module, dtype: torch.dtype | None = None) -> nn.Module:
    """Fold a `module` of strongticket.nets (products taken in float64, returned in `dtype` or the module's own).

    A ReluNetwork folds where that is exact: an even number of layers in which every unit of each pair's first
    layer keeps at most one input (as in a built source). Any other is returned as a copy.

    >>> merge(MultiHeadAttention(8, 6, heads=2, key_dim=4, value_dim=4)).query_key.shape  # (heads, dim_in, dim_in)
    torch.Size([2, 8, 8])
    """
    with torch.no_grad():
        if isinstance(module, MultiHeadAttention):
            return _merge_attention(module, dtype or module.query.dtype)
        if isinstance(module, ReluNetwork):
            return _merge_relu(module, dtype or next(module.parameters()).dtype)
        if isinstance(module, Block):
            attention: Any = merge(module.attention, dtype)
            feed_forward: Any = merge(module.feed_forward, dtype)
            return _like(module, Block(attention, feed_forward, **norm_settings(module.attention_norm)))
        if isinstance(module, Transformer):
            blocks = [merge(block, dtype) for block in module.blocks]
            return _like(module, Transformer(blocks, **norm_settings(module.norm)))
    raise StrongTicketError(
        f"cannot merge a {type(module).__name__}: "
        "expected MultiHeadAttention, ReluNetwork, Block or Transformer"
    )


def _like(module: Composite, merged: Composite) -> Composite:
    """The merged network runs as it is written, and its norms keep to the same floors."""
    merged.direct = True
    for norm, other in zip(find_norms(module), find_norms(merged), strict=True):
        other.floor = norm.floor
    return merged


def _merge_attention(module: MultiHeadAttention, dtype: torch.dtype) -> MergedAttention:
    group = module.heads // module.kv_heads
    constant = module.bias or module.output_bias is not None

    def with_bias(weight: Tensor, bias: Tensor | None) -> Tensor:
        weight = weight.detach().double()
        if not constant:
            return weight
        row = torch.zeros_like(weight[:, :1]) if bias is None else bias.detach().double()[:, None]
        return torch.cat([weight, row], 1)

    query = with_bias(module.query, module.query_bias)
    # The key bias is left out: see MergedAttention on the constant's column.
    key = with_bias(module.key, None).repeat_interleave(group, 0)
    value = with_bias(module.value, module.value_bias).repeat_interleave(group, 0)
    query_key = query @ key.transpose(1, 2) / module.key_dim**0.5
    value_output = value @ module.output.detach().double()
    if module.output_bias is not None:
        # Softmax rows sum to 1, so a constant row passes through unchanged; the heads share it.
        value_output[:, -1] += module.output_bias.detach().double() / module.heads
    return MergedAttention(query_key.to(dtype), value_output.to(dtype), constant=constant)


def _merge_relu(module: ReluNetwork, dtype: torch.dtype) -> ReluNetwork | MergedRelu:
    layers = list(module.layers)
    pairs = list(zip(layers[::2], layers[1::2], strict=False))
    if len(layers) % 2 or not all(_reads_at_most_one(first) for first, _ in pairs):
        copy = ReluNetwork(module.dims, bias=module.biases).to(dtype)
        copy.load_state_dict(module.state_dict())
        copy.direct = True
        return copy.requires_grad_(False)
    return MergedRelu([_fold_pair(first, second, dtype) for first, second in pairs])


def _reads_at_most_one(layer: Linear) -> bool:
    kept = layer.weight.count_nonzero(1)
    if layer.bias is not None:
        kept = kept + layer.bias.ne(0)
    return bool((kept <= 1).all())


def _fold_pair(first: Linear, second: Linear, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    inner, outer = first.weight.double(), second.weight.double()
    constant = outer.new_zeros(len(outer))
    if first.bias is not None:
        constant = constant + outer @ first.bias.double().relu()
    if second.bias is not None:
        constant = constant + second.bias.double()
    return (outer @ inner.relu()).to(dtype), (outer @ (-inner).relu()).to(dtype), constant.to(dtype)
