"""GPT-2: LayerNorm before each part, learned positions, query, key and value fused in one Conv1D."""

from typing import Any

from torch import Tensor, nn

from strongticket.models.attention.attention_map import AttentionMap, body_of, refuse, within
from strongticket.models.attention.products import ProductAttention, Shape

CLASSES = ("GPT2LMHeadModel", "GPT2Model")


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    config: Any = model.config
    refuse(config, add_cross_attention=True, reorder_and_upcast_attn=True)
    heads = config.num_attention_heads
    shape = Shape(heads, heads, config.hidden_size, query_bias=True, output_bias=True)
    layers = [f"{body_of(model, 'transformer')}h.{i}" for i in range(config.num_hidden_layers)]
    return [
        AttentionMap(
            path := f"{layer}.attn",
            i,
            shape,
            within(path, "c_attn", "c_proj"),
            reads=f"{layer}.ln_1",
            products_class=Gpt2ProductAttention,
        )
        for i, layer in enumerate(layers)
    ]


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
