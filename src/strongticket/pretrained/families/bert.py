"""BERT and RoBERTa: LayerNorm after each part, so that the residual reads its gain and shift too."""

from typing import Any

from torch import Tensor, nn

from strongticket.pretrained.families.attention_map import AttentionMap, Projections
from strongticket.pretrained.families.family import Family, refuse
from strongticket.pretrained.families.surgery import find, heads_of, linear_weights
from strongticket.pretrained.modules import Shape, SourceAttention


def check(config: Any) -> None:
    refuse(config, is_decoder=True)
    refuse(config, add_cross_attention=True)
    for positions in ("relative_key", "relative_key_query"):
        refuse(config, position_embedding_type=positions)


def attention(model: nn.Module) -> list[AttentionMap]:
    at = next((f"{name}." for name in ("bert", "roberta") if hasattr(model, name)), "")
    layers = [f"{at}encoder.layer.{i}" for i in range(len(find(model, f"{at}encoder.layer")))]
    before = [f"{at}embeddings.LayerNorm", *(f"{layer}.output.LayerNorm" for layer in layers)]
    return [_layer(model, i, f"{layer}.attention", before[i]) for i, layer in enumerate(layers)]


def _layer(model: nn.Module, index: int, path: str, before: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, f"{path}.self")
        (query, query_bias), (key, _), (value, value_bias) = (
            linear_weights(linear) for linear in (module.query, module.key, module.value)
        )
        output, output_bias = linear_weights(find(model, f"{path}.output.dense"))
        assert query_bias is not None
        assert value_bias is not None
        return Projections(
            heads_of(query.T, heads) * module.scaling,
            heads_of(key.T, heads),
            heads_of(value.T, heads),
            output.reshape(heads, -1, dim),
            query_bias=query_bias.reshape(heads, -1) * module.scaling,
            value_bias=value_bias.reshape(heads, -1),
            output_bias=output_bias,
        )

    shape = Shape(heads, heads, dim, dim, dim, dim, query_bias=True, output_bias=True)
    return AttentionMap(
        f"{path}.self", index, shape, read, BertSourceAttention, before, after=(f"{path}.output.dense",)
    )


class BertSourceAttention(SourceAttention):
    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, Tensor]:
        return self.attend(hidden_states, hidden_states, hidden_states, attention_mask)


FAMILY = Family(
    "bert",
    tuple(
        f"{name}{kind}"
        for name in ("Bert", "Roberta")
        for kind in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
    ),
    check,
    attention,
)
