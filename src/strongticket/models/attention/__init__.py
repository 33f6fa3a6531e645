"""Where the matrices of attention are, one file for each family; docs/add-an-architecture.md.

Certificates of attention layers need it for every family, and attention made of products as in Theorem 3 for those
that have a ProductAttention.
"""

from importlib import import_module

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.attention.attention_map import AttentionMap as AttentionMap
from strongticket.models.attention.attention_map import Product as Product
from strongticket.models.attention.family import Family
from strongticket.models.attention.family import norm_weights as norm_weights

_FAMILIES = ("llama", "gpt2", "bert", "vit")


def every() -> list[Family]:
    """All families."""
    return [import_module(f"{__name__}.{name}").FAMILY for name in _FAMILIES]


def attention_of(model: nn.Module) -> list[AttentionMap]:
    """The attention layers of a model; an error names a class that no family has, or an option of its config."""
    name = type(model).__name__
    for family in every():
        if name in family.classes:
            family.check(model.config)
            return family.attention(model)
    known = ", ".join(name for family in every() for name in family.classes)
    raise StrongTicketError(
        f"where the attention of a {name} has its matrices is not known", hint=f"Known are {known}."
    )


def product_attention_of(model: nn.Module) -> list[AttentionMap]:
    """The same, if attention can be made of products there."""
    found = attention_of(model)
    if any(layer.products_class is None for layer in found):
        raise StrongTicketError(
            f"attention='products' does not support a {type(model).__name__}",
            hint="Use attention='linear', which works for any model.",
        )
    return found
