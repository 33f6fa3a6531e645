"""ViT: patches of an image instead of tokens, LayerNorm before each part."""

from typing import Any

from torch import Tensor, nn

from strongticket.pretrained.families.attention_map import AttentionMap, Projections
from strongticket.pretrained.families.family import Family, prefix_of
from strongticket.pretrained.families.surgery import find, heads_of, linear_weights
from strongticket.pretrained.modules import Shape, SourceAttention


def attention(model: nn.Module) -> list[AttentionMap]:
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
        (query, query_bias), (key, _), (value, value_bias) = (
            linear_weights(linear) for linear in (module.q_proj, module.k_proj, module.v_proj)
        )
        output, output_bias = linear_weights(module.o_proj)
        return Projections(
            heads_of(query.T, heads) * module.scaling,
            heads_of(key.T, heads),
            heads_of(value.T, heads),
            output.reshape(heads, -1, dim),
            query_bias=None if query_bias is None else query_bias.reshape(heads, -1) * module.scaling,
            value_bias=None if value_bias is None else value_bias.reshape(heads, -1),
            output_bias=output_bias,
        )

    biased = bool(config.qkv_bias)
    shape = Shape(heads, heads, dim, dim, dim, dim, query_bias=biased, output_bias=True)
    return AttentionMap(path, index, shape, read, VitSourceAttention, norm)


class VitSourceAttention(SourceAttention):
    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, Tensor]:
        return self.attend(hidden_states, hidden_states, hidden_states, attention_mask)


FAMILY = Family("vit", ("ViTForImageClassification", "ViTModel"), lambda config: None, attention)
