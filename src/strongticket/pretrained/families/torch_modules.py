"""torch's own nn.MultiheadAttention and nn.TransformerEncoderLayer."""

from typing import Any

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.pretrained.families.attention_map import AttentionMap, Projections
from strongticket.pretrained.families.family import Family, unsupported
from strongticket.pretrained.families.surgery import array, find, heads_of, linear_weights
from strongticket.pretrained.modules import Shape, SourceAttention


def attention(model: nn.Module) -> list[AttentionMap]:
    if isinstance(model, nn.MultiheadAttention):
        return [_layer(model, "", None)]
    layer: Any = model
    return [_layer(model, "self_attn", "norm1" if layer.norm_first else None)]


def _layer(model: nn.Module, path: str, norm: str | None) -> AttentionMap:
    module = find(model, path)
    heads, dim, same = module.num_heads, module.embed_dim, module._qkv_same_embed_dim
    biased = module.in_proj_bias is not None
    for option, has in (("add_bias_kv", module.bias_k is not None), ("add_zero_attn", module.add_zero_attn)):
        if has:
            raise unsupported(f"MultiheadAttention with {option}=True")

    def read(model: nn.Module) -> Projections:
        module = find(model, path)
        weights = (
            module.in_proj_weight.chunk(3)
            if same
            else (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        )
        given = module.in_proj_bias
        biases = [None] * 3 if given is None else [array(vector) for vector in given.chunk(3)]
        (query, query_bias), (key, _), (value, value_bias) = (
            (array(weight).T, bias) for weight, bias in zip(weights, biases, strict=True)
        )
        output, output_bias = linear_weights(module.out_proj)
        scale = (dim // heads) ** -0.5
        return Projections(
            heads_of(query.T, heads) * scale,
            heads_of(key.T, heads),
            heads_of(value.T, heads),
            output.reshape(heads, -1, dim),
            query_bias=None if query_bias is None else query_bias.reshape(heads, -1) * scale,
            value_bias=None if value_bias is None else value_bias.reshape(heads, -1),
            output_bias=output_bias,
        )

    shape = Shape(heads, heads, dim, module.kdim, module.vdim, dim, query_bias=biased, output_bias=biased)
    options = {"batch_first": module.batch_first}
    return AttentionMap(path, 0, shape, read, TorchSourceAttention, norm, options=options)


class TorchSourceAttention(SourceAttention):
    """Takes what nn.MultiheadAttention takes and gives what it gives."""

    in_proj_bias = None  # keeps torch's encoder layer from reading weights past this module
    _qkv_same_embed_dim = False

    def __init__(self, *parts: Any, batch_first: bool) -> None:
        super().__init__(*parts)
        self.batch_first, self.num_heads = batch_first, self.shape.heads

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if is_causal and attn_mask is None:
            raise StrongTicketError("is_causal is a hint about attn_mask: pass attn_mask too")
        batched = query.ndim == 3
        inputs = [query, key, value]
        if not batched:
            inputs = [x[None] for x in inputs]
        elif not self.batch_first:
            inputs = [x.transpose(0, 1) for x in inputs]
        mask = additive(attn_mask, query.dtype)
        if mask is not None and mask.ndim == 3:
            mask = mask.unflatten(0, (-1, self.num_heads))
        padding = additive(key_padding_mask, query.dtype)
        if padding is not None:
            padding = (padding if batched else padding[None])[:, None, None]
            mask = padding if mask is None else mask + padding
        y, weights = self.attend(inputs[0], inputs[1], inputs[2], mask)
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            y, weights = y[0], weights[0]
        elif not self.batch_first:
            y = y.transpose(0, 1)
        return y, weights if need_weights else None


def additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """torch's bool masks are True where attention is forbidden."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)


FAMILY = Family("torch", ("MultiheadAttention", "TransformerEncoderLayer"), lambda config: None, attention)
