"""The certificate in a ticket: numbers that a reader may format, and the network that they were computed for."""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from strongticket.errors import TicketError
from strongticket.files import JsonObject

NETWORK = "network"  # the entry with the checksum of the certified network; older files have none
_NUMBERS = ("bound", "paper_bound", "radius", "context_radius", "tokens")
_CHOICES = {"arithmetic": ("exact", "float64", "float32"), "form": ("any", "merged")}


def network_checksum(recipe: bytes, checksums: Mapping[str, str]) -> str:
    """Hash of the recipe and of every tensor's checksum: another mask, seed or law gives another one.

    Args:
        recipe: the first line of the file's index.
        checksums: tensor name -> checksum of the regenerated tensor.
    """
    digest = hashlib.sha256(hashlib.sha256(recipe).digest())
    for name in sorted(checksums):
        for text in (name.encode("utf-8", "surrogatepass"), checksums[name].encode("utf-8", "surrogatepass")):
            digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()[:32]


def check_certificate(certificate: Any) -> None:
    """TicketError unless the entries that are read have the types they should have; others may be anything."""
    if certificate is None:
        return
    if not isinstance(certificate, dict):
        raise TicketError(f"the certificate must be an object or null, got a {type(certificate).__name__}")
    for name in _NUMBERS:
        value = certificate.get(name)
        if value is not None and not _is_number(value):
            raise TicketError(
                f"the certificate's {name} must be a non-negative number or null, got {value!r:.60}"
            )
    for name, known in _CHOICES.items():
        if certificate.get(name, known[0]) not in known:
            raise TicketError(
                f"the certificate's {name} is {certificate[name]!r:.60}, expected one of {', '.join(known)}"
            )
    devices = certificate.get("devices")
    if devices is not None and not (isinstance(devices, list) and all(isinstance(d, str) for d in devices)):
        raise TicketError("the certificate's devices must be a list of names or null")
    floors = certificate.get("floors")
    if floors is not None and not (isinstance(floors, list) and all(map(_is_number, floors))):
        raise TicketError("the certificate's floors must be a list of non-negative numbers or null")


def certificate_line(certificate: JsonObject) -> str:
    """What a certificate says, for a person."""
    bound, radius = certificate.get("bound"), certificate.get("radius")
    if bound is None:
        return "no finite bound"
    inputs = "every input" if radius is None else f"every input with ‖x‖ ≤ {radius:.4g}"
    if certificate.get("floors"):
        inputs += " that respects the floors of its norms"
    exact = (arithmetic := certificate.get("arithmetic", "exact")) == "exact"
    text = f"at most {bound:.3g} for {inputs}"
    if certificate.get("kind") != "relu":
        limit = "any number of" if exact else f"up to {certificate.get('tokens') or 2**16:,}"
        text += f", {limit} tokens and every mask"
    if exact:
        return f"{text}, in exact arithmetic, which no network runs in"
    call = "network()" if arithmetic == "float32" else "network(dtype=torch.float64)"
    return f"{text}, of Ticket.{call} on {' or '.join(certificate.get('devices') or ['cpu', 'cuda'])}"


def check_binding(certificate: JsonObject | None, network: str) -> bool:
    """Whether the certificate says that it was computed for this network; TicketError if it names another.

    Args:
        certificate: of the ticket.
        network: the network_checksum of the ticket.
    """
    named = (certificate or {}).get(NETWORK)
    if named is None:
        return False
    if named != network:
        raise TicketError(
            "the certificate was computed for another network: masks, seed or laws were changed since",
            hint="Drop it (certificate=None) or certify the new network.",
        )
    return True


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]
