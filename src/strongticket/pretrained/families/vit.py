"""ViT: patches of an image instead of tokens, LayerNorm before each part."""

from typing import Any

from torch import Tensor, nn

from strongticket.pretrained.attention import Shape, SourceAttention
from strongticket.pretrained.attention_map import AttentionMap, Projections
from strongticket.pretrained.families.family import Family, check_activation, prefix_of
from strongticket.pretrained.maps import Map, NormMap, PatchMap, TableMap, linear, projections
from strongticket.pretrained.surgery import find, fold, heads_of, linear_weights


def check(config: Any) -> None:
    check_activation(config, "hidden_act")
    check_activation(config, "pooler_act")


def maps(model: nn.Module) -> list[Map]:
    config: Any = model.config
    at, dim = prefix_of(model, "vit"), config.hidden_size
    patches = find(model, f"{at}embeddings.patch_embeddings.projection")
    size, patch = patches.weight[0].numel(), tuple(patches.kernel_size)
    places = find(model, f"{at}embeddings.position_embeddings").shape[1]
    found: list[Map] = [
        PatchMap(
            "patches",
            "embedding",
            None,
            f"{at}embeddings.patch_embeddings.projection",
            size,
            dim,
            True,
            patch=patch,
        ),
        TableMap("class_token", "embedding", None, f"{at}embeddings.cls_token", 1, dim),
        TableMap("positions", "embedding", None, f"{at}embeddings.position_embeddings", places, dim),
    ]
    if find(model, f"{at}embeddings.mask_token") is not None:
        found.append(TableMap("mask_token", "embedding", None, f"{at}embeddings.mask_token", 1, dim))
    for i, layer in enumerate(blocks(model)):
        found.append(attention(model, i, f"{layer}.attention", f"{layer}.layernorm_before"))
        up, down, norm = (
            f"layers.{i}.feed_forward.up",
            f"layers.{i}.feed_forward.down",
            f"{layer}.layernorm_after",
        )
        found.append(linear(model, up, "feed-forward", i, f"{layer}.mlp.fc1", norm=norm))
        found.append(linear(model, down, "feed-forward", i, f"{layer}.mlp.fc2"))
    norm = f"{at}layernorm"
    classifier: Any = getattr(model, "classifier", None)
    if isinstance(classifier, nn.Linear):
        return [*found, linear(model, "head", "head", None, "classifier", norm=norm)]
    found.append(NormMap("head.norm", "head", None, norm, dim, shift=True))
    if getattr(find(model, at.rstrip(".")), "pooler", None) is not None:
        found.append(linear(model, "head.pooler", "head", None, f"{at}pooler.dense"))
    return found


def attention(model: nn.Module, index: int, path: str, norm: str) -> AttentionMap:
    config: Any = model.config
    heads, dim = config.num_attention_heads, config.hidden_size

    def read(model: nn.Module) -> Projections:
        module = find(model, path)
        (query, query_bias), (key, _), (value, value_bias) = (
            fold(*linear_weights(each), model, norm) for each in (module.q_proj, module.k_proj, module.v_proj)
        )
        output, output_bias = linear_weights(module.o_proj)
        assert query_bias is not None  # the norm has a shift
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
    before = dict.fromkeys((f"{path}.q_proj", f"{path}.k_proj", f"{path}.v_proj"), norm)
    return AttentionMap(
        f"layers.{index}.attention", "attention", index, path, shape, read, VitSlot, norm,
        projections=projections(model, index, {**before, f"{path}.o_proj": None}),
    )  # fmt: skip


class VitSlot(SourceAttention):
    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, Tensor]:
        return self.attend(hidden_states, hidden_states, hidden_states, attention_mask)


def blocks(model: nn.Module) -> list[str]:
    at = prefix_of(model, "vit")
    return [f"{at}layers.{i}" for i in range(len(find(model, f"{at}layers")))]


def options(model: Any) -> dict[str, Any]:
    """A bare model may have been made without its pooler, or with a mask token."""
    if hasattr(model, "vit"):
        return {}
    return {
        "add_pooling_layer": model.pooler is not None,
        "use_mask_token": model.embeddings.mask_token is not None,
    }


FAMILY = Family("vit", ("ViTForImageClassification", "ViTModel"), check, maps, blocks, options)
