"""Families of models, one file each; docs/add-an-architecture.md tells how to add the next."""

from importlib import import_module
from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.pretrained.families.family import Family

_FAMILIES = ("llama", "gpt2", "bert", "vit", "torch_modules")

# What other models are known for, so that a refusal can say why.
_KNOWN = {
    "bloom": "ALiBi positions",
    "mpt": "ALiBi positions",
    "falcon": "ALiBi or parallel attention",
    "mixtral": "a mixture of experts",
    "qwen2_moe": "a mixture of experts",
    "qwen3_moe": "a mixture of experts",
    "deepseek_v3": "a mixture of experts",
    "gpt_oss": "a mixture of experts",
    "gemma2": "sliding windows and capped logits",
    "gemma3_text": "sliding windows and query norms",
    "qwen3": "query and key norms",
    "t5": "relative position biases",
    "deberta-v2": "relative positions",
    "swin": "shifted windows",
    "mamba": "no attention",
}


def every() -> list[Family]:
    return [import_module(f"{__name__}.{name}").FAMILY for name in _FAMILIES]


def family_of(class_name: str, model_type: str | None = None) -> Family:
    """The family of a model class; refuses others by name."""
    for family in every():
        if class_name in family.classes:
            return family
    reason = f" (it has {_KNOWN[model_type]})" if model_type in _KNOWN else ""
    known = ", ".join(name for family in every() for name in family.classes)
    what = f"{class_name} of model type {model_type!r}" if model_type else class_name
    raise StrongTicketError(f"{what} is not supported{reason}", hint=f"Supported are {known}.")


def check(class_name: str, config: Any) -> Family:
    """The family, once every option of the config is one that it handles."""
    family = family_of(class_name, getattr(config, "model_type", None))
    family.check(config)
    return family
