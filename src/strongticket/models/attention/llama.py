"""Llama, Mistral and Qwen2: RMSNorm before each part, rotary positions, grouped queries, SwiGLU."""

from typing import Any

import torch
from torch import Tensor, nn

from strongticket.models.attention.attention_map import AttentionMap, body_of, refuse, unsupported, within
from strongticket.models.attention.products import ProductAttention, Shape

CLASSES = tuple(
    f"{name}{kind}" for name in ("Llama", "Mistral", "Qwen2") for kind in ("ForCausalLM", "Model")
)
ROPE = ("default", "linear", "llama3")


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    config: Any = model.config
    _check(config)
    layers = [f"{body_of(model, 'model')}layers.{i}" for i in range(config.num_hidden_layers)]
    return [_layer(model, i, layer) for i, layer in enumerate(layers)]


def _check(config: Any) -> None:
    """Refuse options that change what attention computes."""
    rope = config.rope_parameters or {}
    window = getattr(config, "sliding_window", None)
    odd = {
        "rope_type": rope.get("rope_type", "default") not in ROPE,
        "partial_rotary_factor": rope.get("partial_rotary_factor", 1.0) != 1.0,
        "sliding_window": window is not None and window < config.max_position_embeddings,
    }
    for name, refused in odd.items():
        if refused:
            raise unsupported(f"{config.model_type} with {name}={rope.get(name, window)!r}")
    refuse(config, is_encoder_decoder=True)


def _layer(model: Any, index: int, layer: str) -> AttentionMap:
    path, config = f"{layer}.self_attn", model.config
    module: Any = model.get_submodule(path)
    shape = Shape(
        config.num_attention_heads,
        config.num_key_value_heads,
        config.hidden_size,
        pairs=module.head_dim // 2,
        query_bias=module.q_proj.bias is not None,
        key_bias=module.k_proj.bias is not None,
        output_bias=module.v_proj.bias is not None or module.o_proj.bias is not None,
    )
    linears = within(path, "q_proj", "k_proj", "v_proj", "o_proj")
    return AttentionMap(path, index, shape, linears, f"{layer}.input_layernorm", LlamaProductAttention)


class LlamaProductAttention(ProductAttention):
    """Products in the place of a LlamaAttention."""

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        pairs = self.shape.pairs
        # Both halves of cos and sin are the same; a batch may share one row of positions.
        both = torch.cat([waves[..., :pairs] for waves in position_embeddings], -1)
        both = both.expand(len(hidden_states), -1, -1)
        tokens, past = self.update_cache(past_key_values, hidden_states, both)
        here, there = both.split(pairs, -1), past.split(pairs, -1)
        return self.attend(hidden_states, tokens, attention_mask, (here, there))
