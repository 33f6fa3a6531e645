"""A network that answers only where its certificate holds."""

from typing import Any

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets.certifying import ARITHMETIC, ROUNDED
from strongticket.nets.merging import answer_type
from strongticket.nets.norm import find_norms, watch_norms


class Checked(nn.Module):
    """A network that refuses inputs outside of its certificate's set, and to run in another form or arithmetic.

    Args:
        network: in the form and arithmetic that the certificate holds for, or this is an error.
        certificate: as a ticket stores it.
    """

    def __init__(self, network: nn.Module, certificate: JsonObject | None):
        super().__init__()
        certificate = certificate or {}
        self.radius: Any = certificate.get("radius")
        self.floors = certificate.get("floors") or []
        norms = len(find_norms(network))
        if certificate.get("bound") is None or self.radius is None or len(self.floors) != norms:
            raise StrongTicketError(
                "check=True, but the ticket has no certificate to check inputs by: its bound is "
                f"{certificate.get('bound')}, its radius {self.radius}, with {len(self.floors)} floors for "
                f"{norms} norms",
                hint="Build it with certificate=True, or run network(check=False).",
            )
        self.network = network
        # Certificates of older files name no form.
        self.holds_for = certificate.get("form", "merged"), certificate.get("arithmetic", "exact")
        self._check_arithmetic(answer_type(network))

    def forward(self, x: Tensor, *others: Any, **options: Any) -> Tensor:
        """Run the network on x and what else it takes; masks are True where a row attends."""
        self._check_arithmetic(x.dtype)
        for tensor in (x, *others, *options.values()):
            if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.numel():
                self._check_radius(tensor)
        with watch_norms(self.network, self._check_floor):
            y: Tensor = self.network(x, *others, **options)
        return y

    def _check_arithmetic(self, asked: torch.dtype) -> None:
        answer = answer_type(self.network)
        weights = next(self.network.parameters()).dtype
        form = getattr(self.network, "form", "factors")
        runs = ARITHMETIC.get(torch.promote_types(asked, answer))
        # What is merged runs in float64; weights rounded to a shorter type are those of another network.
        whole = weights == torch.float64 and answer in ARITHMETIC
        if not whole or (form, runs) != self.holds_for:
            form_held, arithmetic = self.holds_for
            raise StrongTicketError(
                f"the certificate holds for the {form_held} network in {arithmetic} arithmetic: this is the "
                f"{form} one with weights of {weights}, answers of {answer} and inputs of {asked}",
                hint="Run network(dtype=torch.float64) for a float64 certificate, network() for a float32 one (an "
                "exact one holds for no network that runs), or run network(check=False).",
            )

    def _check_radius(self, x: Tensor) -> None:
        longest = float(x.detach().double().norm(dim=-1).max())
        if not longest <= self.radius * ROUNDED:  # NaN is refused too
            raise StrongTicketError(
                f"an input token has norm {longest:.4g}: the certificate holds up to {self.radius:.4g}",
                hint="Scale the input, build with a larger radius, or run network(check=False).",
            )

    def _check_floor(self, number: int, lengths: Tensor) -> None:
        if lengths.numel() and not float(lengths.min()) >= self.floors[number]:
            raise StrongTicketError(
                f"a norm reads a token of length {float(lengths.min()):.4g}: the certificate holds from "
                f"{self.floors[number]:.4g} on",
                hint="Certify with lower floors, or run network(check=False).",
            )
