"""From a ticket's kind and settings to the network they describe. Imported on demand: torch loads slowly."""

import importlib
from typing import TYPE_CHECKING, Any

from strongticket.errors import MissingDependency, TicketError

if TYPE_CHECKING:
    import torch

# A new kind: a module with `make(kind, settings)` that also runs on torch's meta device, and a line here.
MODULES = {
    "attention": "strongticket.nets",
    "relu": "strongticket.nets",
    "block": "strongticket.nets",
    "transformer": "strongticket.nets",
    "search": "strongticket.search.found",
    "pretrained": "strongticket.pretrained",
}


def check(kind: str) -> None:
    if not isinstance(kind, str) or kind not in MODULES:
        raise TicketError(f"kind={kind!r} is unknown: expected one of {', '.join(MODULES)}")


def make(kind: str, settings: dict[str, Any]) -> "torch.nn.Module":
    """The network with zero weights."""
    check(kind)
    try:
        return importlib.import_module(MODULES[kind]).make(kind, settings)
    except MissingDependency:
        raise
    except Exception as error:  # settings come from a file: whatever they break is the file's fault
        raise TicketError(f"settings make no network of kind {kind!r}: {error}") from error


def shapes(kind: str, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the network's tensors, found without allocating them."""
    import torch

    with torch.device("meta"):
        module = make(kind, settings)
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
