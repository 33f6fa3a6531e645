"""What an adapter gives, and the checks that adapters share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.pretrained.families.attention_map import AttentionMap


@dataclass(frozen=True)
class Family:
    """classes: names of the model classes; check: refuses options of a config by name; attention: the layers."""

    name: str
    classes: tuple[str, ...]
    check: Callable[[Any], None]
    attention: Callable[[nn.Module], list[AttentionMap]]


def refuse(config: Any, **wrong: Any) -> None:
    """Raise if an option has one of the values given: `refuse(config, add_cross_attention=True)`."""
    for name, value in wrong.items():
        if getattr(config, name, None) == value:
            raise unsupported(f"{config.model_type} with {name}={value!r}")


def unsupported(model: str) -> StrongTicketError:
    """The error for a model, described in words, whose attention cannot be built from products."""
    return StrongTicketError(
        f"attention='products' does not support {model}",
        hint="Use attention='linear', which works for any model.",
    )


def prefix_of(model: nn.Module, name: str) -> str:
    """Where the body of the model is: under `name` in one with a head, the model itself otherwise."""
    return f"{name}." if hasattr(model, name) else ""
