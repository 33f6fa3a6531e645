"""Does `network(check=True)` refuse whatever its certificate does not name? For `benchmarks.theory`."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, get_args

import torch
from torch import nn

from benchmarks.harness import Row
from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.theory.rounding import Arithmetic
from strongticket.ticket import Form, Ticket

TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
RUNS = {torch.float32: "float32", torch.float64: "float64"}  # the arithmetics that certificates know
DIM, RADIUS = 4, 2.0
CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "as made": lambda network: network,
    ".half()": lambda network: network.half(),
    ".bfloat16()": lambda network: network.bfloat16(),
    ".float()": lambda network: network.float(),
    ".to('meta')": lambda network: network.to("meta"),
    "a weight added to": lambda network: next(network.parameters()).add_(1e-9),
}


def refusals() -> list[Row]:
    """One row for every network, arithmetic of its ticket and form: how often it ran, and wrongly so."""
    rows = []
    for name, target in _targets().items():
        nets.initialise(target, 0, normalised=True)
        for arithmetic in get_args(Arithmetic):
            ticket = build_network(target, per_row=8, seed=0, radius=RADIUS, arithmetic=arithmetic)
            for form in get_args(Form):
                tried = list(_tries(target, ticket, form))
                ran = [fits for fits in tried if fits is not None]
                row = {"network": name, "ticket": arithmetic, "form": form, "tried": len(tried)}
                rows.append(row | {"accepted": len(ran), "accepted_wrongly": ran.count(False)})
    return rows


def _targets() -> dict[str, Any]:
    def block() -> Block:
        return Block(MultiHeadAttention(DIM, DIM, 2, 2, 2), ReluNetwork([DIM, DIM]))

    return {
        "attention": MultiHeadAttention(DIM, DIM, 2, 2, 2),
        "relu": ReluNetwork([DIM, DIM]),
        "transformer": Transformer([block(), block()]),
    }


def _tries(target: nn.Module, ticket: Ticket, form: Form) -> Iterator[bool | None]:
    """For every type, change and type of input: None if it was refused, or did the certificate name and cover it?"""
    wanted = nets.Merged(target.double())
    certificate: Any = ticket.certificate
    for made, (change, do), given in product(TYPES, CHANGES.items(), TYPES):
        x = torch.randn(2, 3, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        x = (x / x.norm(dim=-1, keepdim=True) * RADIUS * 0.99).to(given)
        try:
            with torch.no_grad():
                network = ticket.network(form=form, dtype=made, check=True)
                do(network)
                error = float((network(x).double() - wanted(x.double())).norm(dim=-1).max())
        except StrongTicketError:
            yield None
            continue
        # What is added together runs in the longer of the two types.
        runs = made in RUNS and RUNS.get(torch.promote_types(made, given))
        named = form == "merged" and runs == certificate["arithmetic"] and change == "as made"
        yield named and error <= certificate["bound"]
