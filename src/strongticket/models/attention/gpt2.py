"""GPT-2: LayerNorm before each part, learned positions, query, key and value fused in one Conv1D."""

from typing import Any

import numpy as np
from torch import Tensor, nn

from strongticket.models.attention.attention_map import AttentionMap, Projections
from strongticket.models.attention.family import Family, find, heads_of, linear_weights, prefix_of, refuse
from strongticket.models.attention.products import ProductAttention, Shape


def check(config: Any) -> None:
    """Refuse options that change what attention computes."""
    refuse(config, add_cross_attention=True)
    refuse(config, reorder_and_upcast_attn=True)


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    at = prefix_of(model, "transformer")
    layers = [f"{at}h.{i}" for i in range(len(find(model, f"{at}h")))]
    return [_layer(model, i, f"{layer}.attn", f"{layer}.ln_1") for i, layer in enumerate(layers)]


def _layer(model: nn.Module, index: int, path: str, norm: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, path)
        weight, bias = linear_weights(module.c_attn)
        query, key, value = (heads_of(matrix.T, heads) for matrix in np.split(weight, 3, axis=1))
        assert bias is not None
        biases = [vector.reshape(heads, -1) for vector in np.split(bias, 3)]
        output, output_bias = linear_weights(module.c_proj)
        return Projections(
            query * module.scaling, key, value, output.reshape(heads, -1, dim),
            query_bias=biases[0] * module.scaling, value_bias=biases[2], output_bias=output_bias,
        )  # fmt: skip

    shape = Shape(heads, heads, dim, query_bias=True, output_bias=True)
    return AttentionMap(path, index, shape, read, norm, Gpt2ProductAttention, index)


class Gpt2ProductAttention(ProductAttention):
    """Products in the place of a GPT2Attention."""

    def forward(
        self,
        hidden_states: Tensor,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        tokens, _nothing = self.update_cache(past_key_values, hidden_states, None)
        return self.attend(hidden_states, tokens, attention_mask)


FAMILY = Family(("GPT2LMHeadModel", "GPT2Model"), check, attention)
