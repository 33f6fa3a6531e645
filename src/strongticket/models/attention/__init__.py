"""Where the matrices of attention are, one file for each family; docs/add-an-architecture.md.

Certificates of attention layers need it for every family, and attention made of products as in Theorem 3 for those
that have a ProductAttention.
"""

from collections.abc import Callable

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.attention import bert, gpt2, llama, vit
from strongticket.models.attention.attention_map import AttentionMap as AttentionMap

_FAMILIES: dict[str, Callable[[nn.Module], list[AttentionMap]]] = {
    name: family.attention for family in (llama, gpt2, bert, vit) for name in family.CLASSES
}


def attention_of(model: nn.Module) -> list[AttentionMap]:
    """The attention layers of a model; an error names a class that no family has, or an option of its config."""
    name = type(model).__name__
    if name not in _FAMILIES:
        raise StrongTicketError(
            f"the attention layers of a {name} are not supported",
            hint=f"Those of {', '.join(_FAMILIES)} are.",
        )
    try:
        layers = _FAMILIES[name](model)
        for path in (path for layer in layers for path in (*layer.linears, layer.reads)):
            model.get_submodule(path)
    except AttributeError as error:
        raise StrongTicketError(
            f"this version of transformers lays out a {name} differently: {error}",
            hint="Install transformers 5.",
        ) from error
    return layers


def product_attention_of(model: nn.Module) -> list[AttentionMap]:
    """The same, if attention can be made of products there."""
    found = attention_of(model)
    if any(layer.products_class is None for layer in found):
        raise StrongTicketError(
            f"attention='products' does not support a {type(model).__name__}",
            hint="Use attention='linear', which works for any model.",
        )
    return found
