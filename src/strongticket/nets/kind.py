"""Tickets of the theorems' networks. torch is imported where a network is made: describing a ticket needs none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.ticket import CompareOptions, Description, Summary, Ticket, TicketComparison, kinds
from strongticket.ticket.certificate import certificate_line

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import nn

    from strongticket.nets import Comparison

_INPUTS = 1024  # random sequences that a network is compared on
_SLACK = 1 + 1e-9  # two computations of one bound may differ in their last digits
_ROUNDING = 1e-13  # of running both networks in float64


@dataclass(frozen=True)
class NetworkKind:
    """attention, relu, block or transformer: a network of this package, its tensors as they are drawn."""

    name: str

    def shapes(self, settings: JsonObject) -> dict[str, tuple[int, ...]]:
        from strongticket.nets.files import tensor_shapes

        return tensor_shapes(self.name, settings)

    def network(
        self,
        ticket: Ticket,
        *,
        form: kinds.Form = "merged",
        dtype: torch.dtype | None = None,
        check: bool = False,
    ) -> nn.Module:
        """Make the pruned network; it takes no gradients.

        Args:
            ticket: of this kind.
            form: "merged" runs the merged products in float64, as certificates assume (nets.Merged); "factors" is
                the network as it was pruned, run factor by factor in its own type.
            dtype: of weights and answers; None means float32.
            check: refuse inputs that the ticket's certificate does not cover, and to run in another form or
                arithmetic than it holds for (nets.Checked).
        """
        import torch

        from strongticket.nets import Checked, Merged
        from strongticket.nets.files import make_filled

        state = {name: torch.from_numpy(array) for name, array in ticket.state()}
        factors = make_filled(self.name, ticket.settings, state)
        factors.requires_grad_(False).to(dtype or torch.float32)
        network = Merged(factors) if form == "merged" else factors
        return (Checked(network, ticket.certificate) if check else network).eval()

    def state(self, ticket: Ticket, base: object = None) -> Iterator[tuple[str, np.ndarray]]:
        for name in ticket.shapes():
            yield name, ticket.weights(name)

    def describe(self, summary: Summary) -> Description:
        return Description((("network", self.name), ("settings", _line(summary.settings))))

    def generate(self, ticket: Ticket, prompt: str, **options: Any) -> Iterator[str]:
        raise StrongTicketError(
            f"a ticket of kind {self.name!r} is not a language model, so it cannot generate text",
            hint="Use a ticket built from a language model, or searched on text.",
        )

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        """The error of every matrix, the certificate computed again, and the error on random inputs."""
        import torch

        from strongticket import nets

        options.refuse("the network does not read text", "data", "prompts")
        stored, target = ticket.certificate or {}, nets.load(Path(model))
        arithmetic = stored.get("arithmetic", "exact")  # older files say nothing
        dtype = torch.float32 if arithmetic == "float32" else torch.float64
        try:
            found = nets.compare(
                target,
                ticket.network(dtype=dtype),
                radius=stored.get("radius"),
                inputs=_INPUTS if options.sequences is None else options.sequences,
                seed=options.seed,
                arithmetic=arithmetic,
                floors=stored.get("floors"),
            )
        except StrongTicketError as error:
            raise StrongTicketError(f"{model}: {error.what}", error.hint) from error
        facts = {
            "target": model,
            "matrices": [asdict(matrix) for matrix in found.matrices],
            "certificate": found.certificate.to_dict(),
            "measured_error": found.measured,
            "mean_error": found.mean,
            "mean_output": found.output,
            "relative": found.relative,
            "inputs": found.inputs,
        }
        problems = tuple(_problems(found, stored.get("bound"), options.epsilon, model))
        return TicketComparison(facts, _rows(found), _details(found), problems)


KINDS = {name: NetworkKind(name) for name, module in kinds.KINDS.items() if module == __name__}


def _line(settings: JsonObject) -> str:
    if "blocks" in settings:
        return f"{len(settings['blocks'])} blocks, the first: {_line(settings['blocks'][0])}"
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _problems(found: Comparison, stored: float | None, epsilon: float | None, model: str) -> Iterator[str]:
    """stored: the bound in the file, None if it has none."""
    bound = found.certificate.bound  # may be infinite
    if stored is not None and bound > stored * _SLACK:
        yield f"the file certifies an error of {stored:.3g}, against {model} it is {bound:.3g}"
    if found.measured > bound * _SLACK + _ROUNDING:
        yield f"the measured error {found.measured:.3g} exceeds the certified {bound:.3g}"
    if epsilon is not None and not bound <= epsilon:
        yield f"the certified error {bound:.3g} exceeds the requested epsilon {epsilon:g}"


def _rows(found: Comparison) -> tuple[tuple[str, str], ...]:
    relative = found.relative
    return (
        ("certified now", certificate_line(found.certificate.to_dict())),
        (
            "measured",
            f"{found.measured:.3g} at most, {found.mean:.3g} on average, on {found.inputs:,} random inputs",
        ),
        (
            "relative to the output",
            f"certified to {relative['bound']:.3g}, measured {relative['measured']:.3g} (mean output "
            f"{found.output:.3g})",
        ),
    )


def _details(found: Comparison) -> tuple[tuple[str, ...], ...]:
    rows = (
        (m.name, " × ".join(map(str, m.shape)), f"{m.largest:.3g}", f"{m.error:.3g}") for m in found.matrices
    )
    return ("matrix", "shape", "largest entry", "largest error"), *rows
