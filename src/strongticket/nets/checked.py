"""A network that answers only where its certificate holds."""

from typing import Any

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets.certifying import ARITHMETIC, ROUNDED
from strongticket.nets.merging import answer_type
from strongticket.nets.norm import find_norms, watch_norms
from strongticket.theory.rounding import DEVICES, MAX_TOKENS


class Checked(nn.Module):
    """A network that refuses inputs its certificate does not cover, and to run as anything else than what it names.

    Args:
        network: in the form, in the arithmetic and on a device that the certificate holds for, or this is an error.
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
        # Certificates of older files do not name all of this.
        self.holds_for = certificate.get("form", "merged"), certificate.get("arithmetic", "exact")
        self.devices = certificate.get("devices") or DEVICES
        any_length = certificate.get("kind") == "relu"
        self.tokens = certificate.get("tokens", None if any_length else MAX_TOKENS)
        self.weights = _fingerprint(network)
        self._check_run(answer_type(network))

    def forward(self, x: Tensor, *others: Any, **options: Any) -> Tensor:
        """Run the network on x and what else it takes; masks are True where a row attends."""
        self._check_run(x.dtype)
        for tensor in (x, *others, *options.values()):
            if isinstance(tensor, Tensor) and tensor.dtype != torch.bool:
                self._check_input(tensor)
        with watch_norms(self.network, self._check_floor):
            y: Tensor = self.network(x, *others, **options)
        return y

    def _check_run(self, asked: torch.dtype) -> None:
        """Refuse another form, arithmetic or device than the certificate's, and weights that changed."""
        answer, form = answer_type(self.network), getattr(self.network, "form", "factors")
        runs = ARITHMETIC.get(torch.promote_types(asked, answer)) if asked.is_floating_point else None
        weights = next(self.network.parameters())
        # What is merged runs in float64; weights rounded to a shorter type are those of another network.
        whole = weights.dtype == torch.float64 and answer in ARITHMETIC
        if not whole or (form, runs) != self.holds_for:
            form_held, arithmetic = self.holds_for
            raise StrongTicketError(
                f"the certificate holds for the {form_held} network in {arithmetic} arithmetic: this is the "
                f"{form} one with weights of {weights.dtype}, answers of {answer} and inputs of {asked}",
                hint="Run network(dtype=torch.float64) for a float64 certificate, network() for a float32 one (an "
                "exact one holds for no network that runs), or run network(check=False).",
            )
        if weights.device.type not in self.devices or float(torch.tensor(2.0**-149) * 1) == 0:
            raise StrongTicketError(
                f"the certificate holds on {' and '.join(self.devices)} with subnormal numbers: this network is on "
                f"{weights.device.type}, or the process rounds such numbers to zero",
                hint="Move the network, call torch.set_flush_denormal(False), or run network(check=False).",
            )
        if _fingerprint(self.network) != self.weights:
            raise StrongTicketError(
                "the network's weights have changed since it was made: its certificate is that of other weights",
                hint="Make it again with Ticket.network(check=True).",
            )

    def _check_input(self, x: Tensor) -> None:
        if self.tokens is not None and x.ndim > 1 and x.shape[-2] > self.tokens:
            raise StrongTicketError(
                f"an input has {x.shape[-2]:,} tokens: the certificate holds up to {self.tokens:,}",
                hint="Pass fewer tokens at once, or run network(check=False).",
            )
        lengths = (x.detach().double() / self.radius).norm(dim=-1)
        if lengths.numel() and not float(lengths.max()) <= ROUNDED:  # NaN is refused too
            raise StrongTicketError(
                f"an input token has norm {float(lengths.max()) * self.radius:.4g}: the certificate holds up to "
                f"{self.radius:.4g}",
                hint="Scale the input, build with a larger radius, or run network(check=False).",
            )

    def _check_floor(self, number: int, lengths: Tensor) -> None:
        if lengths.numel() and not float(lengths.min()) >= self.floors[number]:
            raise StrongTicketError(
                f"a norm reads a token of length {float(lengths.min()):.4g}: the certificate holds from "
                f"{self.floors[number]:.4g} on",
                hint="Certify with lower floors, or run network(check=False).",
            )


def _fingerprint(network: nn.Module) -> int | None:
    """The bits of all weights added up, in float64: a slip changes it. None where there is nothing to read."""
    if any(weight.device.type == "meta" for weight in network.parameters()):
        return None
    return sum(int(weight.detach().double().view(torch.int64).sum()) for weight in network.parameters())
