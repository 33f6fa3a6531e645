"""BERT and RoBERTa: LayerNorm after each part, so that the residual reads its gain and shift too."""

from typing import Any

from torch import Tensor, nn

from strongticket.pretrained.attention import Shape, SourceAttention
from strongticket.pretrained.attention_map import AttentionMap, Projections
from strongticket.pretrained.families.family import Family, check_activation, refuse
from strongticket.pretrained.maps import LinearMap, Map, NormMap, TableMap, linear, projections
from strongticket.pretrained.surgery import find, heads_of, linear_weights

# Linear maps and norms after the layers, where a class has them, in their order.
HEAD = {
    "pooler": "pooler.dense",
    "transform": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "output": "cls.predictions.decoder",
    "dense": "lm_head.dense",
    "layer_norm": "lm_head.layer_norm",
    "decoder": "lm_head.decoder",
    "classifier": "classifier",
    "classifier_dense": "classifier.dense",
    "classifier_out": "classifier.out_proj",
}


def check(config: Any) -> None:
    check_activation(config, "hidden_act")
    refuse(config, is_decoder=True)
    refuse(config, add_cross_attention=True)
    for positions in ("relative_key", "relative_key_query"):
        refuse(config, position_embedding_type=positions)


def maps(model: nn.Module) -> list[Map]:
    config: Any = model.config
    at, dim = body(model), config.hidden_size
    tables = {
        "embedding": ("word_embeddings", config.vocab_size),
        "positions": ("position_embeddings", config.max_position_embeddings),
        "types": ("token_type_embeddings", config.type_vocab_size),
    }
    found: list[Map] = [
        TableMap(name, "embedding", None, f"{at}embeddings.{path}", entries, dim)
        for name, (path, entries) in tables.items()
    ]
    found.append(NormMap("embedding_norm", "embedding", None, f"{at}embeddings.LayerNorm", dim, shift=True))
    for i, layer in enumerate(blocks(model)):
        name = f"layers.{i}"
        up, down = f"{name}.feed_forward.up", f"{name}.feed_forward.down"
        before = f"{blocks(model)[i - 1]}.output.LayerNorm" if i else f"{at}embeddings.LayerNorm"
        found.append(attention(model, i, f"{layer}.attention", before))
        norm = f"{layer}.attention.output.LayerNorm"
        found.append(NormMap(f"{name}.attention.norm", "attention", i, norm, dim, shift=True))
        found.append(linear(model, up, "feed-forward", i, f"{layer}.intermediate.dense"))
        found.append(linear(model, down, "feed-forward", i, f"{layer}.output.dense"))
        norm = f"{layer}.output.LayerNorm"
        found.append(NormMap(f"{name}.feed_forward.norm", "feed-forward", i, norm, dim, shift=True))
    return found + head(model, at)


def head(model: nn.Module, at: str) -> list[Map]:
    found: list[Map] = []
    for name, path in HEAD.items():
        path = at + path if name == "pooler" else path
        module = model
        for step in path.split("."):
            module = getattr(module, step, None)  # type: ignore[assignment]
        if isinstance(module, nn.LayerNorm):
            found.append(NormMap(f"head.{name}", "head", None, path, module.normalized_shape[0], shift=True))
        elif isinstance(module, nn.Linear):
            each = linear(model, f"head.{name}", "head", None, path)
            parent = path.rpartition(".")[0]
            # Masked language models keep the decoder's bias a second time, beside it.
            tied = (f"{parent}.bias",) if hasattr(find(model, parent), "bias") and parent else ()
            found.append(LinearMap(**(each.__dict__ | {"drop": tied})))
    return found


def attention(model: nn.Module, index: int, path: str, before: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, f"{path}.self")
        (query, query_bias), (key, _), (value, value_bias) = (
            linear_weights(each) for each in (module.query, module.key, module.value)
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
    name = f"layers.{index}.attention"
    after = (f"{path}.output.dense",)
    slot = f"{path}.self"
    four = (f"{slot}.query", f"{slot}.key", f"{slot}.value", *after)
    return AttentionMap(
        name, "attention", index, slot, shape, read, BertSlot,
        reads=before,
        after=after,
        projections=projections(model, index, dict.fromkeys(four)),
    )  # fmt: skip


class BertSlot(SourceAttention):
    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, Tensor]:
        return self.attend(hidden_states, hidden_states, hidden_states, attention_mask)


def body(model: nn.Module) -> str:
    return next((f"{name}." for name in ("bert", "roberta") if hasattr(model, name)), "")


def blocks(model: nn.Module) -> list[str]:
    at = body(model)
    return [f"{at}encoder.layer.{i}" for i in range(len(find(model, f"{at}encoder.layer")))]


def options(model: Any) -> dict[str, Any]:
    """A bare model may have been made without its pooler."""
    return {} if body(model) else {"add_pooling_layer": model.pooler is not None}


FAMILY = Family(
    "bert",
    tuple(
        f"{name}{kind}"
        for name in ("Bert", "Roberta")
        for kind in ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
    ),
    check,
    maps,
    blocks,
    options,
)
