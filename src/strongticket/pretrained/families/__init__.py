"""Families whose attention can be made of products as in Theorem 3, one file each; docs/add-an-architecture.md."""

from importlib import import_module

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.pretrained.families.attention_map import AttentionMap as AttentionMap
from strongticket.pretrained.families.attention_map import Product as Product
from strongticket.pretrained.families.family import Family
from strongticket.pretrained.families.family import norm_weights as norm_weights

_FAMILIES = ("llama", "gpt2", "bert", "vit")


def every() -> list[Family]:
    return [import_module(f"{__name__}.{name}").FAMILY for name in _FAMILIES]


def attention_of(model: nn.Module) -> list[AttentionMap]:
    """The attention layers of a model; refuses by name what no adapter handles."""
    name = type(model).__name__
    for family in every():
        if name in family.classes:
            family.check(model.config)
            return family.attention(model)
    known = ", ".join(name for family in every() for name in family.classes)
    raise StrongTicketError(
        f"attention='products' has no adapter for a {name}",
        hint=f"Use attention='linear', which works for any model. Adapters: {known}.",
    )
