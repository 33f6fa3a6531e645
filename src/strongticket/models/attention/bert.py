"""BERT and RoBERTa: LayerNorm after each part, so that the residual reads its gain and shift too."""

from typing import Any

from torch import nn

from strongticket.models.attention.attention_map import AttentionMap, body_of, refuse, within
from strongticket.models.attention.products import Shape

CLASSES = tuple(
    f"{name}{kind}"
    for name in ("Bert", "Roberta")
    for kind in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
)


def attention(model: nn.Module) -> list[AttentionMap]:
    """All layers."""
    config: Any = model.config
    refuse(config, is_decoder=True, add_cross_attention=True)
    for positions in ("relative_key", "relative_key_query"):
        refuse(config, position_embedding_type=positions)
    heads = config.num_attention_heads
    shape = Shape(heads, heads, config.hidden_size, query_bias=True, output_bias=True)
    at = body_of(model, "bert", "roberta")
    layers = [f"{at}encoder.layer.{i}" for i in range(config.num_hidden_layers)]
    norms = [f"{at}embeddings.LayerNorm", *(f"{layer}.output.LayerNorm" for layer in layers)]
    return [
        AttentionMap(
            f"{layer}.attention.self",
            i,
            shape,
            within(f"{layer}.attention", "self.query", "self.key", "self.value", "output.dense"),
            reads=norms[i],
        )
        for i, layer in enumerate(layers)
    ]
