"""GPT-2: LayerNorm before each part, learned positions, query, key and value fused in one Conv1D."""

from typing import Any

import numpy as np
from torch import Tensor, nn

from strongticket.pretrained.attention import Shape, SourceAttention
from strongticket.pretrained.attention_map import AttentionMap, Projections
from strongticket.pretrained.families.family import (
    Family,
    check_activation,
    prefix_of,
    refuse,
)
from strongticket.pretrained.maps import Map, NormMap, TableMap, linear, projections
from strongticket.pretrained.surgery import find, fold, heads_of, linear_weights


def check(config: Any) -> None:
    check_activation(config, "activation_function")
    refuse(config, add_cross_attention=True)
    refuse(config, reorder_and_upcast_attn=True)


def maps(model: nn.Module) -> list[Map]:
    config: Any = model.config
    at, dim = prefix_of(model, "transformer"), config.hidden_size
    found: list[Map] = [
        TableMap("embedding", "embedding", None, f"{at}wte", config.vocab_size, dim),
        TableMap("positions", "embedding", None, f"{at}wpe", config.max_position_embeddings, dim),
    ]
    for i, layer in enumerate(blocks(model)):
        found.append(attention(model, i, f"{layer}.attn", f"{layer}.ln_1"))
        up, down = f"layers.{i}.feed_forward.up", f"layers.{i}.feed_forward.down"
        found.append(linear(model, up, "feed-forward", i, f"{layer}.mlp.c_fc", norm=f"{layer}.ln_2"))
        found.append(linear(model, down, "feed-forward", i, f"{layer}.mlp.c_proj"))
    if hasattr(model, "lm_head"):
        found.append(linear(model, "head", "head", None, "lm_head", norm=f"{at}ln_f"))
    else:
        found.append(NormMap("head.norm", "head", None, f"{at}ln_f", dim, shift=True))
    return found


def attention(model: nn.Module, index: int, path: str, norm: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, path)
        weight, bias = fold(*linear_weights(module.c_attn), model, norm)
        query, key, value = (heads_of(each.T, heads) for each in np.split(weight, 3, axis=1))
        assert bias is not None
        biases = [each.reshape(heads, -1) for each in np.split(bias, 3)]
        output, output_bias = linear_weights(module.c_proj)
        return Projections(
            query * module.scaling, key, value, output.reshape(heads, -1, dim),
            query_bias=biases[0] * module.scaling, value_bias=biases[2], output_bias=output_bias,
        )  # fmt: skip

    shape = Shape(heads, heads, dim, dim, dim, dim, query_bias=True, output_bias=True)
    name = f"layers.{index}.attention"
    return AttentionMap(
        name, "attention", index, path, shape, read, Gpt2Slot, norm,
        options={"layer": index},
        projections=projections(model, index, {f"{path}.c_attn": norm, f"{path}.c_proj": None}),
    )  # fmt: skip


class Gpt2Slot(SourceAttention):
    def __init__(self, *parts: Any, layer: int) -> None:
        super().__init__(*parts)
        self.layer_idx = layer

    def forward(
        self,
        hidden_states: Tensor,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        tokens, _nothing = self.remember(past_key_values, self.layer_idx, hidden_states, None)
        return self.attend(hidden_states, tokens, tokens, attention_mask)


def blocks(model: nn.Module) -> list[str]:
    at = prefix_of(model, "transformer")
    return [f"{at}h.{i}" for i in range(len(find(model, f"{at}h")))]


FAMILY = Family("gpt2", ("GPT2LMHeadModel", "GPT2Model"), check, maps, blocks)
