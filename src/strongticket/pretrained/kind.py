"""Tickets of trained models."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from strongticket.errors import StrongTicketError, TicketError
from strongticket.models.comparing import ticket_comparison
from strongticket.models.generation import generate
from strongticket.models.loading import OpenedModel
from strongticket.models.rebuilding import Architecture
from strongticket.models.tokenizers import FromFiles
from strongticket.pretrained._certify import LayerCertificate, certify_layers
from strongticket.pretrained.source import Source
from strongticket.ticket import CompareOptions, Description, Form, Summary, Ticket, TicketComparison

KIND = "pretrained"
_SLACK = 1.01  # the file states errors to three digits


class PretrainedKind:
    """Tickets of trained models: every tensor is a product of two pruned random matrices."""

    def shapes(self, settings: dict[str, Any], module: nn.Module | None = None) -> dict[str, tuple[int, ...]]:
        return Source(settings).shapes()

    def architecture(self, settings: dict[str, Any]) -> Architecture | None:
        if settings["library"] is None:
            return None
        return Architecture(settings["class"], settings["config"], settings["options"])

    def state(self, ticket: Ticket, base: object = None) -> Iterator[tuple[str, np.ndarray]]:
        return Source(ticket.settings).state(ticket)

    def network(
        self,
        ticket: Ticket,
        module: nn.Module | None = None,
        *,
        base: nn.Module | str | Path | None = None,
        form: Form = "merged",
        dtype: torch.dtype | None = None,
    ) -> nn.Module:
        """The model, made or filled; see Source.network."""
        made = Source(ticket.settings).network(ticket, module=module, base=base, form=form)
        return made if dtype is None else made.to(dtype)

    def describe(self, summary: Summary) -> Description:
        settings, metadata = summary.settings, summary.metadata
        source = Source(settings)
        numbers = sum(tensor.size for tensor in source.tensors.values())
        base, errors = settings["base"], metadata["errors"]
        network = summary.file_bytes - metadata.get("tokenizer_bytes", 0)
        facts = {
            "class": settings["class"],
            "whole": base is None,
            "base": base,
            "numbers": numbers,
            "bits_per_weight": 8 * network / numbers,
            **{name: metadata[name] for name in ("tolerance", "assignment", "relative_error", "errors")},
            "unreached": metadata.get("unreached", 0),
            "calibrated_on": metadata.get("calibrated_on"),
        }
        rows = [("network", f"{settings['class']}, {numbers:,} numbers of it as pruned random factors")]
        if base is None:
            rows.append(("whole", "every tensor is random and pruned; the ticket has no trained number"))
        else:
            rows.append(("partial", f"{len(source.tensors)} tensors; the rest is the trained model {base}"))
        rows.append(("bits per weight", f"{facts['bits_per_weight']:.2f}, tokenizer aside"))
        rows.append(("relative error", f"{metadata['relative_error']:.2g} (root mean square)"))
        if text := facts["calibrated_on"]:
            rows.append(("calibrated", f"on {text}: errors of linear layers cancel on inputs like its own"))
        if unreached := facts["unreached"]:
            rows.append(
                ("out of reach", f"{unreached:,} entries, larger than all that their units add up to")
            )
        worst = sorted(errors.items(), key=lambda item: -item[1][1])[:5]
        rows += [
            ("" if i else "largest errors", f"{name}: {largest:.2g} at most, {relative:.2g} relative")
            for i, (name, (largest, relative)) in enumerate(worst)
        ]
        return Description(tuple(rows), facts)

    def generate(
        self,
        ticket: Ticket,
        prompt: str,
        *,
        base: str | None = None,
        tokenizer: str | None = None,
        **sampling: Any,
    ) -> Iterator[str]:
        """As Ticket.generate says; base: the trained model of a partial ticket."""
        if tokenizer is not None:
            raise StrongTicketError(
                "tokenizer does not apply: a built ticket contains its own", hint="Leave it out."
            )
        files = ticket.metadata.get("tokenizer", {})
        model: Any = ticket.network(base=base)
        if not files or not hasattr(model, "generate"):
            raise StrongTicketError(
                f"a ticket of a {type(model).__name__}"
                + (" without a tokenizer" if hasattr(model, "generate") else "")
                + " cannot generate text",
                hint="Build one from the folder of a language model.",
            )
        return generate(model, FromFiles(files), prompt, **sampling)

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        """Also the error of the weights, which the file states."""
        options.refuse("only networks of strongticket.nets are certified as a whole", "epsilon")
        source, opened = Source(ticket.settings), OpenedModel(model)
        target = opened.load()
        source.check_target(target)
        network = ticket.network(base=None if source.whole else target)
        certificates = certify_layers(ticket, target)
        found = ticket_comparison(opened, target, network, options)
        error, stated = _weight_error(ticket, target, network)
        facts = {
            "relative_error": error,
            "stated_error": stated,
            "certificates": list(map(asdict, certificates)),
        }
        text = f"{error:.3g}" if stated is None else f"{error:.3g}; the file states {stated:.3g}"
        problems = []
        if stated is not None and error > stated * _SLACK:
            problems.append(
                f"the file states a relative error of {stated:.3g}, against {model} it is {error:.3g}"
            )
        return TicketComparison(
            found.facts | facts,
            (("relative error of the weights", text), *found.rows),
            _with_certificates(found.details, certificates),
            tuple(problems),
        )


KINDS = {KIND: PretrainedKind()}


def _with_certificates(
    details: tuple[tuple[str, ...], ...], certificates: list[LayerCertificate]
) -> tuple[tuple[str, ...], ...]:
    """The rows of layers, with a column for what their attention is certified to."""
    if not certificates:
        return details
    said = {
        str(each.layer): f"{each.bound:.3g}, for ‖x‖ ≤ {each.radius:.3g} in {each.arithmetic}"
        for each in certificates
    }
    head, *layers = details
    return (*head, "attention certified to"), *((*row, said.get(row[0], "")) for row in layers)


def _weight_error(ticket: Ticket, target: nn.Module, network: nn.Module) -> tuple[float, float | None]:
    """Root mean square error of the numbers that the ticket makes: measured, and as the file states it, if it does.

    Each tensor's is relative to its own numbers. Attention made of products has none of the target's parameters: its
    error is not included.
    """
    stated, made = _stated_errors(ticket), dict(network.named_parameters())
    numbers, measured_total, stated_total = 0, 0.0, 0.0
    for name, parameter in target.named_parameters():
        if name in made and (name in stated or not stated):
            with torch.no_grad():
                wrong = float((made[name].double() - parameter.double()).square().sum())
                whole = float(parameter.double().square().sum())
            numbers += parameter.numel()
            measured_total += parameter.numel() * (wrong / whole if whole else float(wrong > 0))
            stated_total += parameter.numel() * stated.get(name, 0.0) ** 2
    if not numbers:  # all of it is made of products
        return 0.0, None
    return (measured_total / numbers) ** 0.5, (stated_total / numbers) ** 0.5 if stated else None


def _stated_errors(ticket: Ticket) -> dict[str, float]:
    """Tensor -> its relative error, as the file states it."""
    try:
        return {name: float(relative) for name, (_, relative) in ticket.metadata.get("errors", {}).items()}
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise TicketError(
            f"the metadata states errors that cannot be read: {ticket.metadata['errors']!r:.80}"
        ) from None
