"""Tickets of the theorems' networks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.nets import files
from strongticket.ticket import Description, Summary, Ticket


@dataclass(frozen=True)
class NetworkKind:
    """attention, relu, block or transformer: a network of this room, its tensors as they are drawn."""

    name: str

    def shapes(self, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        with torch.device("meta"):
            module = files.make(self.name, settings)
        return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}

    def network(self, ticket: Ticket, *, threads: int | None = None) -> nn.Module:
        with torch.device("meta"):
            module = files.make(self.name, ticket.settings)
        names = ticket.masks.keys() | ticket.floats.keys()
        state = {name: torch.from_numpy(ticket.weights(name, threads=threads)) for name in names}
        module.load_state_dict(state, assign=True)
        return module.requires_grad_(False).eval()

    def describe(self, summary: Summary) -> Description:
        return Description((("network", self.name), ("settings", _line(summary.settings))))

    def generate(self, ticket: Ticket, prompt: str, **options: Any) -> Iterator[str]:
        raise StrongTicketError(
            f"a ticket of kind {self.name!r} is not a language model, so it cannot generate text",
            hint="Use a ticket built from a language model, or searched on text.",
        )


KINDS = {name: NetworkKind(name) for name in ("attention", "relu", "block", "transformer")}


def _line(settings: dict[str, Any]) -> str:
    if "blocks" in settings:
        return f"{len(settings['blocks'])} blocks, the first: {_line(settings['blocks'][0])}"
    return ", ".join(f"{name}={value}" for name, value in settings.items())
