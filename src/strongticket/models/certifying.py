"""Certificates of a ticket's attention layers that need no target: the spacing of its random weights says enough."""

import copy
from collections.abc import Iterator

import numpy as np
from torch import nn

from strongticket import choice
from strongticket.errors import StrongTicketError
from strongticket.models.attention.attention_map import array
from strongticket.models.attention.certify import LayerCertificate, certify_spacing
from strongticket.models.tensors import fill, tensor_named
from strongticket.ticket import Ticket


def certify_ticket(ticket: Ticket, network: nn.Module | None = None) -> list[LayerCertificate]:
    """One certificate for each attention layer, for every model that the ticket can have been built from.

    Args:
        ticket: of a whole model of a known family, by choice, neither calibrated nor at so low a rate that numbers are
            read times a factor.
        network: that it makes, if it has been made.
    """
    if ticket.settings.get("base") is not None or not ticket.choices:
        raise StrongTicketError(
            "only whole models built by choice can be certified by the spacing of their weights"
        )
    if ticket.metadata.get("shrunk") or ticket.metadata.get("calibrated_on"):
        raise StrongTicketError(
            "the numbers of this ticket can be further from the model's than the spacing of their random weights",
            hint="Compare it with the model: strongticket compare F.ticket MODEL.",
        )

    source = ticket.network() if network is None else network

    def differences() -> Iterator[tuple[str, np.ndarray]]:
        for name, choices in ticket.choices.items():
            found = choice.bounds(choices) + 2.0**-23 * np.abs(array(tensor_named(source, name)))
            yield name, np.nextafter(found.astype(np.float32), np.float32(np.inf))

    return certify_spacing(source, fill(copy.deepcopy(source), differences()))
