"""The models a search can train and a ticket can rebuild: transformers' own classes, listed by family.

No code and no class name is read from a file.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from strongticket import limits
from strongticket.data.configs import clean_config, transformers
from strongticket.errors import StrongTicketError, first_line

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
