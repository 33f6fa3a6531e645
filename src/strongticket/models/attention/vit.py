"""ViT: patches of an image instead of tokens, LayerNorm before each part."""

from typing import Any

from torch import nn

from strongticket.models.attention.attention_map import AttentionMap, body_of, within
from strongticket.models.attention.products import Shape

CLASSES = ("ViTForImageClassification", "ViTModel")


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    config: Any = model.config
    heads = config.num_attention_heads
    shape = Shape(heads, heads, config.hidden_size, query_bias=bool(config.qkv_bias), output_bias=True)
    layers = [f"{body_of(model, 'vit')}layers.{i}" for i in range(config.num_hidden_layers)]
    return [
        AttentionMap(
            path := f"{layer}.attention",
            i,
            shape,
            within(path, "q_proj", "k_proj", "v_proj", "o_proj"),
            reads=f"{layer}.layernorm_before",
        )
        for i, layer in enumerate(layers)
    ]
