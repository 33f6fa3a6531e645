"""The two networks that `compare` and `verify --against` look at, whatever the kind of ticket."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strongticket.cli.frame import fail, step
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from torch import nn

    from strongticket.ticket import Ticket


def is_of_nets(ticket: Ticket) -> bool:
    """Whether it is one of the theorems' networks, whose target is a file of `strongticket.nets`."""
    return ticket.kind in ("attention", "relu", "block", "transformer")


def compare_nets(ticket: Ticket, against: Path, *, inputs: int, seed: int) -> JsonObject:
    """Error of every matrix, certificate, and the error measured on random inputs."""
    from strongticket import nets

    stored = ticket.certificate or {}
    found = nets.compare(
        nets.load(against),
        ticket.network(),
        radius=stored.get("radius"),
        inputs=inputs,
        seed=seed,
        evaluation=stored.get("arithmetic", "exact"),  # older files say nothing
        floors=stored.get("floors"),
    )
    return {
        "target": str(against),
        "matrices": [asdict(matrix) for matrix in found.matrices],
        "certificate": found.certificate.to_dict(),
        "measured_error": found.measured,
        "mean_error": found.mean,
        "mean_output": found.output,
        "relative": found.relative,
        "inputs": found.inputs,
    }


def model_pair(ticket: Ticket, against: str, *, faithful: bool = False) -> tuple[nn.Module, nn.Module]:
    """(the target, the ticket's network) for a ticket of a model; of a task mask the base without and with it."""
    from strongticket import pretrained

    if ticket.kind == "task":
        from strongticket.searching.task_kind import load_base, make_model

        with step(f"loading {against}"):
            base = load_base(against)
        return make_model(ticket, base).requires_grad_(False).eval(), ticket.network(base=base)
    with step(f"loading {against}"):
        target = pretrained.load_target(against)
    with step("making the ticket's network"):
        options: dict[str, Any] = {}
        if ticket.kind == "pretrained":
            rest = None if ticket.settings["base"] is None else target
            options = {"base": rest, "faithful": faithful}
        source = ticket.network(**options)
    if type(target) is not type(source) and not faithful:
        fail(
            f"{against} is a {type(target).__name__}, the ticket belongs to a {type(source).__name__}.",
            "Compare it with the model that it was built from.",
        )
    return target, source


def relative_errors(target: nn.Module, source: nn.Module) -> dict[str, tuple[int, float]]:
    """For each parameter that both have: its size, and the mean square of its difference over that of the target's.

    Attention made of products has none of the target's parameters: its error is not included.
    """
    import torch

    found, pruned = {}, dict(source.named_parameters())
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            if name in pruned:
                wrong = float((pruned[name].double() - parameter.double()).square().sum())
                whole = float(parameter.double().square().sum())
                found[name] = parameter.numel(), wrong / whole if whole else float(wrong > 0)
    return found
