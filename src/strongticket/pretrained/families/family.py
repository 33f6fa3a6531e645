"""What an adapter gives, and the checks that adapters share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.pretrained.maps import Map

PARTS = ("attention", "feed-forward", "embedding", "head")
# Activations that have no trained number, by transformers' names for them.
ACTIVATIONS = {"gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh", "quick_gelu"} | {
    "relu", "relu2", "silu", "swish", "tanh", "sigmoid", "mish", "linear",
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """classes: names of the model classes; check: refuses options by name; maps: everything trained, in order;
    blocks: paths of the layers, to compare them one by one; options: what the constructor takes besides the config.
    """

    name: str
    classes: tuple[str, ...]
    check: Callable[[Any], None]
    maps: Callable[[nn.Module], list[Map]]
    blocks: Callable[[nn.Module], list[str]]
    options: Callable[[nn.Module], dict[str, Any]] = lambda model: {}


def refuse(config: Any, **wrong: Any) -> None:
    """Raise if an option has one of the values given: `refuse(config, add_cross_attention=True)`."""
    for name, value in wrong.items():
        if getattr(config, name, None) == value:
            raise StrongTicketError(
                f"{config.model_type} with {name}={value!r} is not supported",
                hint="Choose a model without it.",
            )


def check_activation(config: Any, name: str) -> None:
    found = getattr(config, name)
    if found not in ACTIVATIONS:
        raise StrongTicketError(
            f"{config.model_type} with {name}={found!r} is not supported",
            hint=f"Expected one of {', '.join(sorted(ACTIVATIONS))}, which have no trained number.",
        )


def prefix_of(model: nn.Module, name: str) -> str:
    """Where the body of the model is: under `name` in one with a head, the model itself otherwise."""
    return f"{name}." if hasattr(model, name) else ""
