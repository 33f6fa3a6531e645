"""What a kind of ticket answers. A new kind follows this and has a line in `kinds.KINDS`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from strongticket.files import JsonObject
from strongticket.ticket._ticket import Ticket
from strongticket.ticket.kinds import CompareOptions, Description, TicketComparison
from strongticket.ticket.summary import Summary

if TYPE_CHECKING:
    import torch


class Kind(Protocol):
    """One kind of ticket. settings: of the file; whatever is wrong with them is an error."""

    def shapes(
        self, settings: JsonObject, module: "torch.nn.Module | None" = None
    ) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the ticket's tensors, found without allocating them.

        module: that is to be filled; None for the network that the settings describe
        """

    def state(self, ticket: Ticket, base: Any = None) -> Iterator[tuple[str, np.ndarray]]:
        """See Ticket.state."""

    def network(self, ticket: Ticket, **options: Any) -> "torch.nn.Module":
        """The pruned network, ready to run. options: those of Ticket.network that this kind takes."""

    def describe(self, summary: Summary) -> Description:
        """What the ticket is, from its index (summary) alone."""

    def generate(self, ticket: Ticket, prompt: str, **options: Any) -> Iterator[str]:
        """The prompt's continuation, piece by piece, if the network is a language model; see Ticket.generate."""

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        """Measure the network beside the model at that path or hub name, and check what the file states.

        A model of another class or size is an error.
        """
