"""How the file of a family checks and reads a model."""

from typing import Any

from torch import nn

from strongticket.errors import StrongTicketError


def refuse(config: Any, **wrong: Any) -> None:
    """Raise if an option has the value given: `refuse(config, add_cross_attention=True)`."""
    for name, value in wrong.items():
        if getattr(config, name, None) == value:
            raise unsupported(f"{config.model_type} with {name}={value!r}")


def unsupported(model: str) -> StrongTicketError:
    """The error for a model, described in words, whose attention is not known as products."""
    return StrongTicketError(
        f"the attention of {model} is not known as products of its matrices",
        hint="Use attention='linear', which works for any model.",
    )


def body_of(model: nn.Module, *names: str) -> str:
    """Where the body of the model is: under one of the names in one with a head, the model itself otherwise."""
    return next((f"{name}." for name in names if hasattr(model, name)), "")


def within(path: str, *names: str) -> tuple[str, ...]:
    """Paths of parts of the module there."""
    return tuple(f"{path}.{name}" for name in names)
