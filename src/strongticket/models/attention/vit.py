"""ViT: patches of an image instead of tokens, LayerNorm before each part."""

from typing import Any

from torch import nn

from strongticket.models.attention.attention_map import AttentionMap, Projections
from strongticket.models.attention.family import Family, find, prefix_of, projections
from strongticket.models.attention.products import Shape


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    at = prefix_of(model, "vit")
    layers = [f"{at}layers.{i}" for i in range(len(find(model, f"{at}layers")))]
    return [
        _layer(model, i, f"{layer}.attention", f"{layer}.layernorm_before") for i, layer in enumerate(layers)
    ]


def _layer(model: nn.Module, index: int, path: str, norm: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, path)
        linears = module.q_proj, module.k_proj, module.v_proj, module.o_proj
        return projections(shape, linears, module.scaling)

    shape = Shape(heads, heads, dim, query_bias=bool(config.qkv_bias), output_bias=True)
    return AttentionMap(path, index, shape, read, norm)


FAMILY = Family(("ViTForImageClassification", "ViTModel"), lambda config: None, attention)
