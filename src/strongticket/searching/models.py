"""The models a search can train and a ticket can rebuild: transformers' own classes, listed by family.

No code and no class name is read from a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from strongticket import limits
from strongticket.data.configs import clean_config, transformers
from strongticket.data.folder import CONFIG, ModelFolder
from strongticket.errors import StrongTicketError, first_line
from strongticket.searching.config import SearchConfig

# model_type -> transformers' config class, then its model classes by head; the first one is the default
FAMILIES = {
    "gpt2": ("GPT2Config", {"": "GPT2LMHeadModel", "classification": "GPT2ForSequenceClassification"}),
    "llama": ("LlamaConfig", {"": "LlamaForCausalLM", "classification": "LlamaForSequenceClassification"}),
    "mistral": (
        "MistralConfig",
        {"": "MistralForCausalLM", "classification": "MistralForSequenceClassification"},
    ),
    "qwen2": ("Qwen2Config", {"": "Qwen2ForCausalLM", "classification": "Qwen2ForSequenceClassification"}),
    "bert": ("BertConfig", {"": "BertForMaskedLM", "classification": "BertForSequenceClassification"}),
    "vit": ("ViTConfig", {"": "ViTForImageClassification"}),
    "resnet": ("ResNetConfig", {"": "ResNetForImageClassification"}),
}
_IMAGE_FAMILIES = ("vit", "resnet")
_NOT_STORED = ("transformers_version", "architectures", "dtype", "id2label", "label2id")


def build_model(config: dict[str, Any], head: str = "") -> nn.Module:
    """A transformers model of a known family. Its weights have no meaning yet.

    config: its config as JSON, with `model_type`; of a classifier also `num_labels`
    head: "" for the family's own, or "classification"
    """
    hf = transformers()
    family = config.get("model_type")
    if family not in FAMILIES:
        raise StrongTicketError(f"model_type must be one of {', '.join(FAMILIES)}, got {family!r}")
    config_name, heads = FAMILIES[family]
    if head not in heads:
        raise StrongTicketError(f"a {family} model has no head {head!r}")
    config_class, model_class = getattr(hf, config_name), getattr(hf, heads[head])
    known = config_class().to_dict().keys() | {"num_labels"}
    if odd := sorted(config.keys() - known):
        raise StrongTicketError(f"config has an entry {odd[0]!r} that a {family} model does not know")
    labels = config.get("num_labels", 2)
    if type(labels) is not int or not 0 < labels <= limits.layers():
        raise StrongTicketError(f"num_labels must be from 1 to {limits.layers()}, got {labels!r}")
    entries = {name: value for name, value in clean_config(config).items() if name != "model_type"}
    try:
        with torch.random.fork_rng(devices=[]):  # transformers draws weights that are never used
            model: nn.Module = model_class(config_class(**entries))
    except StrongTicketError:
        raise
    except Exception as error:  # every class checks its own entries, in its own way
        raise StrongTicketError(
            f"its config does not describe a {family} model: {first_line(error)}"
        ) from error
    return model


def is_known(model: nn.Module) -> bool:
    """Whether a ticket can rebuild the model by itself."""
    return _head(model) is not None


def head_of(model: nn.Module) -> str:
    """The head that build_model needs to make the same model."""
    return _head(model) or ""


def _head(model: nn.Module) -> str | None:
    family = getattr(getattr(model, "config", None), "model_type", None)
    if family not in FAMILIES:
        return None
    names = {class_name: head for head, class_name in FAMILIES[family][1].items()}
    return names.get(type(model).__name__)


def config_json(model: nn.Module) -> dict[str, Any]:
    """The config that build_model needs to make the same model."""
    config: Any = model.config
    known = type(config)().to_dict().keys() - set(_NOT_STORED)  # Trainer adds use_cache to any config
    stored = {name: value for name, value in config.to_diff_dict().items() if name in known}
    classifies = type(model).__name__.endswith("Classification")
    return stored | ({"num_labels": config.num_labels} if classifies else {})


def make_model(
    config: SearchConfig, vocabulary: int = 0, *, classes: int = 0, channels: int = 0, image_size: int = 0
) -> nn.Module:
    """The model of the settings: of the chosen architecture and size, or that of a folder's config.json.

    vocabulary, classes, channels, image_size: what the data has, as far as the task has it
    """
    classifies = config.task.task == "classification"
    head = "classification" if classifies else ""
    tokens = vocabulary + 2 if classifies else vocabulary  # padding, and a first token for the whole text
    sizes: dict[str, Any] = {"num_labels": classes} if classes else {}
    if config.task.task == "images":
        sizes |= {"num_channels": channels} | ({"image_size": image_size} if not config.model.model else {})
    else:
        sizes |= {"vocab_size": tokens} | ({"pad_token_id": vocabulary} if classifies else {})
    if not config.model.model:
        return build_model(_ARCHITECTURES[config.model.architecture](config) | sizes, head)
    stored = _stored_config(config)
    family = stored.get("model_type")
    if config.task.task == "language" and family == "bert":
        raise StrongTicketError(
            "model is a BERT, which does not predict the next token",
            hint="Search trains causal models; --task classification takes encoders.",
        )
    if (config.task.task == "images") != (family in _IMAGE_FAMILIES):
        raise StrongTicketError(f"a {family} model does not fit task {config.task.task!r}")
    if family == "vit":
        sizes |= {"image_size": image_size}
    model = build_model(stored | sizes, head)
    described: Any = model.config
    if config.task.task == "images":
        return model
    # learned positions end; rotary ones do not
    positions = getattr(described, "n_positions", None)
    if family == "bert":
        positions = described.max_position_embeddings
    if positions is not None and positions < config.model.context:
        raise StrongTicketError(
            f"model={config.model.model!r} has {positions} positions, fewer than context={config.model.context}",
            hint="Choose a smaller context.",
        )
    return model


def _stored_config(config: SearchConfig) -> dict[str, Any]:
    stored = ModelFolder(Path(config.model.model)).json(CONFIG)
    if stored is None:
        raise StrongTicketError(
            f"model={config.model.model!r} has no {CONFIG}", hint="Give a folder with a config.json."
        )
    drop = (*_NOT_STORED, "torch_dtype", "_name_or_path")
    return {name: value for name, value in stored.items() if name not in drop}


def _gpt2(config: SearchConfig) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "n_positions": config.model.context,
        "n_embd": config.model.dim,
        "n_inner": config.model.inner or None,
        "n_layer": config.model.layers,
        "n_head": config.model.heads,
        "activation_function": config.model.activation,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _llama(config: SearchConfig) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "max_position_embeddings": config.model.context,
        "hidden_size": config.model.dim,
        # three matrices of 8/3 dim have the weights of GPT-2's two of 4 dim; a multiple of eight
        "intermediate_size": config.model.inner or -(-8 * config.model.dim // 24) * 8,
        "num_hidden_layers": config.model.layers,
        "num_attention_heads": config.model.heads,
        "num_key_value_heads": config.model.heads,
        "hidden_act": config.model.activation,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _encoder(config: SearchConfig) -> dict[str, Any]:
    """What BERT and ViT name alike."""
    return {
        "hidden_size": config.model.dim,
        "intermediate_size": config.model.inner or 4 * config.model.dim,
        "num_hidden_layers": config.model.layers,
        "num_attention_heads": config.model.heads,
        "hidden_act": config.model.activation,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _bert(config: SearchConfig) -> dict[str, Any]:
    return _encoder(config) | {
        "model_type": "bert", "max_position_embeddings": config.model.context, "type_vocab_size": 1
    }  # fmt: skip


def _vit(config: SearchConfig) -> dict[str, Any]:
    return _encoder(config) | {"model_type": "vit", "patch_size": config.model.patch}


_ARCHITECTURES = {"gpt2": _gpt2, "llama": _llama, "bert": _bert, "vit": _vit}
