"""BERT and RoBERTa: LayerNorm after each part, so that the residual reads its gain and shift too."""

from typing import Any

from torch import nn

from strongticket.models.attention.attention_map import AttentionMap, Projections
from strongticket.models.attention.family import Family, find, projections, refuse
from strongticket.models.attention.products import Shape


def check(config: Any) -> None:
    """Refuse options that change what attention computes."""
    refuse(config, is_decoder=True)
    refuse(config, add_cross_attention=True)
    for positions in ("relative_key", "relative_key_query"):
        refuse(config, position_embedding_type=positions)


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    at = next((f"{name}." for name in ("bert", "roberta") if hasattr(model, name)), "")
    layers = [f"{at}encoder.layer.{i}" for i in range(len(find(model, f"{at}encoder.layer")))]
    before = [f"{at}embeddings.LayerNorm", *(f"{layer}.output.LayerNorm" for layer in layers)]
    return [_layer(model, i, f"{layer}.attention", before[i]) for i, layer in enumerate(layers)]


def _layer(model: nn.Module, index: int, path: str, before: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, f"{path}.self")
        linears = module.query, module.key, module.value, find(model, f"{path}.output.dense")
        return projections(shape, linears, module.scaling)

    shape = Shape(heads, heads, dim, query_bias=True, output_bias=True)
    return AttentionMap(f"{path}.self", index, shape, read, before)


FAMILY = Family(
    tuple(
        f"{name}{kind}"
        for name in ("Bert", "Roberta")
        for kind in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
    ),
    check,
    attention,
)
