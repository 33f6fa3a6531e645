"""Tickets of trained models."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from strongticket.errors import StrongTicketError, TicketError
from strongticket.files import JsonObject
from strongticket.models.attention.certify import LayerCertificate, certify_layers
from strongticket.models.built import BuiltModel
from strongticket.models.certifying import certify_ticket
from strongticket.models.comparing import ticket_comparison
from strongticket.models.generation import generate
from strongticket.models.loading import OpenedModel
from strongticket.models.rebuilding import Architecture
from strongticket.models.rounding import rounded_model
from strongticket.models.tensors import fill
from strongticket.models.tokenizers import FromFiles
from strongticket.ticket import CompareOptions, Description, Form, Summary, Ticket, TicketComparison

_SLACK = 1.01  # the file states errors to three digits
_ROUNDED = (8, 6, 4)  # bits that a ticket is compared with


class ModelKind:
    """Tickets of trained models: each number is a random weight that was kept, or a sum of random products."""

    def shapes(self, settings: JsonObject, module: nn.Module | None = None) -> dict[str, tuple[int, ...]]:
        return BuiltModel(settings).shapes()

    def architecture(self, settings: JsonObject) -> Architecture | None:
        return BuiltModel(settings).architecture

    def state(self, ticket: Ticket, base: object = None) -> Iterator[tuple[str, np.ndarray]]:
        return BuiltModel(ticket.settings).state(ticket)

    def network(
        self,
        ticket: Ticket,
        module: nn.Module | None = None,
        *,
        base: nn.Module | str | Path | None = None,
        form: Form = "merged",
        dtype: torch.dtype | None = None,
    ) -> nn.Module:
        """The model with its own parameters. As factors, it runs the random weights and masks themselves."""
        built = BuiltModel(ticket.settings)
        network = fill(built.empty_network(module, base), built.state(ticket))
        if form == "factors":
            built.show_factors(network, ticket)
        return network if dtype is None else network.to(dtype)

    def describe(self, summary: Summary) -> Description:
        settings, metadata = summary.settings, summary.metadata
        built = BuiltModel(settings)
        numbers = sum(map(math.prod, built.tensors.values()))
        base, network = settings["base"], summary.file_bytes - metadata.get("tokenizer_bytes", 0)
        facts: JsonObject = {
            "class": settings["class"],
            "whole": base is None,
            "base": base,
            "numbers": numbers,
            "bits_per_weight": 8 * network / numbers,
            "relative_error": metadata["relative_error"],
            "calibrated_on": metadata.get("calibrated_on"),
            "model_tensors": list(_by_tensor(summary, built)),
        }
        how = "as pruned random factors, by subset sums"
        if settings["by"] == "choice":
            how = "by choice: one of many random weights kept for each"
        elif settings["attention"] == "products":
            how += "; attention as W_QK and W_VO"
        stored = "choices, a scale for each row and a table for each tensor" if summary.chosen else "masks"
        whole = ("whole", f"no trained number is stored, but {stored}")
        count = f"{len(built.tensors)} tensor{'s' * (len(built.tensors) > 1)}"
        partial = ("partial", f"{count}; the rest is the trained model {base}")
        if bound := _bound(metadata):
            facts["bound"] = bound
        rows = (
            ("network", f"{settings['class']}, {numbers:,} numbers of it {how}"),
            whole if base is None else partial,
            ("bits per weight", f"{facts['bits_per_weight']:.2f}, tokenizer aside"),
            ("relative error", f"{metadata['relative_error']:.2g} (root mean square)"),
            ("every number", bound),
            ("calibrated on", str(metadata.get("calibrated_on") or "")),
            ("loss", str(metadata.get("loss_against_base") or "")),
        )
        shown = tuple((label, text) for label, text in rows if text)
        return Description(shown, facts, _tensor_table(facts["model_tensors"]))

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
            without = " without a tokenizer" if hasattr(model, "generate") else ""
            raise StrongTicketError(
                f"a ticket of a {type(model).__name__}{without} cannot generate text",
                hint="Build one from the folder of a language model.",
            )
        return generate(model, FromFiles(files), prompt, **sampling)

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        """Also the error of the weights, which the file states, and the same model rounded to nearest."""
        options.refuse("only networks of strongticket.nets are certified as a whole", "epsilon")
        built, opened = BuiltModel(ticket.settings), OpenedModel(model)
        target = opened.load()
        built.check_target(target)
        network = ticket.network(base=None if built.whole else target)
        certificates, why_none = _certificates(lambda: certify_layers(target, network))
        any_target, _ = _certificates(lambda: certify_ticket(ticket, network))
        only = None if built.whole else built.tensors.keys()
        rivals = {f"int{bits}": rounded_model(target, bits, only) for bits in _ROUNDED}
        found = ticket_comparison(opened, target, network, options, rivals)
        relative, stated = _weight_error(ticket, target, network)
        size = len(ticket.to_bytes()) - ticket.metadata.get("tokenizer_bytes", 0)
        bits = 8 * size / sum(map(math.prod, built.tensors.values()))
        facts = {
            "bits_per_weight": bits,
            "relative_error": relative,
            "stated_error": stated,
            "certificates": list(map(asdict, certificates)),
            "certificates_for_any_target": list(map(asdict, any_target)),
            "no_certificates": why_none,
        }
        text = f"{relative:.3g}" if stated is None else f"{relative:.3g}; the file states {stated:.3g}"
        problems = []
        if stated is not None and relative > stated * _SLACK:
            problems.append(
                f"the file states a relative error of {stated:.3g}, against {model} it is {relative:.3g}"
            )
        rows = [
            ("bits per weight", f"{bits:.2f}, tokenizer aside"),
            ("relative error of the weights", text),
            *found.rows,
        ]
        if why_none:
            rows.append(("attention certified to", f"no layer: {why_none}"))
        head, *layers = found.details
        # The second holds for whatever model the ticket was built from: it needs the spacing of its weights alone.
        for heading, column in (("attention certified to", certificates), ("for any target", any_target)):
            if column:
                said = {
                    str(each.layer): f"{each.bound:.3g}, for ‖x‖ ≤ {each.radius:.3g} in {each.arithmetic}"
                    for each in column
                }
                head = (*head, heading)
                layers = [(*row, said.get(row[0], "")) for row in layers]
        return TicketComparison(found.facts | facts, tuple(rows), (head, *layers), tuple(problems))


KINDS = {"model": ModelKind()}


def _certificates(certify: Callable[[], list[LayerCertificate]]) -> tuple[list[LayerCertificate], str]:
    """Those of the attention layers, or why there are none."""
    try:
        return certify(), ""
    except StrongTicketError as error:
        return [], error.what


def _bound(metadata: JsonObject) -> str:
    """How far a number can be from the target's, by the choices alone."""
    states = metadata.get("states")
    if states is None or metadata.get("calibrated_on"):
        return ""
    bound = "Δ/2" if states == 1 else "Δ"
    spacing = "Δ the spacing of its random weights" + ("" if states == 1 else " that may be kept")
    if metadata.get("shrunk"):
        bound += " + (1 − a)·|w|"
        spacing += ", w the number kept, and both before w is multiplied by the factor a < 1 of low rates"
    return f"within {bound} (+ 2⁻²³ of its size) of the target's, for any target: {spacing}"


def _by_tensor(summary: Summary, built: BuiltModel) -> Iterator[JsonObject]:
    """Bits, error and distance from the rate-distortion limit of every tensor of the model."""
    sizes = {tensor.name: tensor.bytes for tensor in summary.tensors}
    for name, shape in built.tensors.items():
        stored = [name] if name in sizes else [part for pair in built.pairs[name] for part in pair.shapes]
        bits = 8 * sum(sizes[part] for part in stored) / math.prod(shape)
        largest, relative = summary.metadata["errors"][name]
        yield {
            "name": name,
            "shape": list(shape),
            "bits": bits,
            "largest_error": largest,
            "relative_error": relative,
            "above_limit": bits + math.log2(relative) if relative > 0 else None,
        }


def _tensor_table(tensors: list[JsonObject]) -> tuple[tuple[str, ...], ...]:
    """Headings, and a row for each tensor."""
    rows = [
        (
            t["name"],
            " × ".join(map(str, t["shape"])),
            f"{t['bits']:.2f}",
            f"{t['relative_error']:.2g}",
            "" if t["above_limit"] is None else f"{t['above_limit']:+.2f}",
        )
        for t in tensors
    ]
    return ("tensor", "shape", "bits", "relative error", "bits above the limit"), *rows


def _weight_error(ticket: Ticket, target: nn.Module, network: nn.Module) -> tuple[float, float | None]:
    """Root mean square error of the numbers that the ticket makes: measured, and as the file states it, if it does.

    Each tensor's is relative to its own numbers. Attention made of products has none of the target's parameters: its
    error is not included.
    """
    errors = ticket.metadata.get("errors", {})
    try:
        stated = {name: float(relative) for name, (_, relative) in errors.items()}
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise TicketError(f"the metadata states errors that cannot be read: {errors!r:.80}") from None
    made = dict(network.named_parameters())
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
