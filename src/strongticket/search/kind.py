"""Tickets of searched networks: from a searched model to a Ticket, and from a Ticket's settings to the model.

The scale of query and key weights is in the settings and is applied after the draw, so a ticket's checksums are
of the weights before scaling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from strongticket.data._generate import generate
from strongticket.data.tokenizers import from_json
from strongticket.errors import StrongTicketError
from strongticket.search.masking._attach import masked_tensors
from strongticket.search.masking._initialise import Attachment
from strongticket.search.masking.codes import code_shapes, decode
from strongticket.search.masking.frozen import ScaledSlice, scale_slices
from strongticket.search.masking.matrices import other_parameters, weight_matrices
from strongticket.search.models import build_model, config_json
from strongticket.search.task_kind import task_ticket
from strongticket.ticket import Description, Summary, Ticket

KIND = "search"


def to_ticket(model: nn.Module, attachment: Attachment, *, metadata: dict[str, Any] | None = None) -> Ticket:
    """The ticket of an attached model (or of a dense one, all floats), with the masks of its scores now.

    model: the searched model
    attachment: what `attach` or the search method returned
    metadata: stored with the ticket
    """
    if attachment.base is not None:
        return task_ticket(model, attachment, metadata=metadata)
    sources = masked_tensors(model) if attachment.masked else {}
    stored = {name: source.stored() for name, source in sources.items()}
    slices = {
        name: [[each.axis, each.start, each.stop, each.factor] for each in tensor.slices]
        for name, tensor in stored.items()
        if any(each.factor != 1 for each in tensor.slices)
    }
    codes = {name: tensor.code() for name, tensor in stored.items() if tensor.code()}
    tensors = {
        name: each for matrix, tensor in stored.items() for name, each in tensor.tensors(matrix).items()
    }
    matrices = attachment.frozen.keys()
    return Ticket(
        seed=next(iter(attachment.frozen.values())).seed,
        kind=KIND,
        settings={
            "config": config_json(model),
            "parts": slices,
            "trained": sorted(name for name in attachment.trained if name not in matrices),
        }
        | ({"codes": codes} if codes else {}),
        laws={name: law for name, (_, law) in tensors.items()},
        masks={name: mask for name, (mask, _) in tensors.items()},
        floats={
            name: parameter.detach().float().cpu().numpy() for name, parameter in attachment.trained.items()
        },
        metadata=metadata or {},
    )


def check_rebuilds(model: nn.Module, attachment: Attachment) -> None:
    """Raise an error unless a ticket of this model, made later, could be rebuilt: before any training.

    model: with the method attached
    attachment: what the method returned
    """
    ticket = to_ticket(model, attachment)
    expected = KINDS[KIND].shapes(ticket.settings)
    found = {name: tensor.shape for name, tensor in (ticket.masks | ticket.floats).items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise StrongTicketError(
                f"a ticket of this model could not be rebuilt: tensor {name!r} has shape {found.get(name)}, and "
                f"{expected.get(name)} in a model made from its config (None: no such tensor)",
                hint="Change the model through its config, not its modules.",
            )


class FoundNetwork(nn.Module):
    """A searched network. `model` is the transformers model; the state has only what a ticket holds."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.model = build_model(settings["config"])
        self._matrices = weight_matrices(self.model)
        names = {matrix.name for matrix in self._matrices}
        self._slices = {
            name: tuple(_slice(each) for each in slices) for name, slices in settings["parts"].items()
        }
        if odd := sorted(self._slices.keys() - names):
            raise StrongTicketError(f"parts names {odd[0]!r}, which is not a weight matrix of the model")
        rest = {
            name: (parameter, value)
            for name, parameter, value in other_parameters(self.model, self._matrices)
        }
        if odd := sorted(set(settings["trained"]) - rest.keys()):
            raise StrongTicketError(f"trained names {odd[0]!r}, which is not a parameter of the model")
        self._trained = {name: rest[name][0] for name in settings["trained"]}
        self._codes = settings.get("codes", {})
        self._code_shapes = code_shapes(self._codes, {matrix.name: matrix.shape for matrix in self._matrices})
        with torch.no_grad():
            for name, (parameter, value) in rest.items():
                if name not in self._trained:
                    parameter.fill_(math.nan if value is None else value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Weight matrices, tied ones once, and trained parameters; fixed biases and norms are left out."""
        matrices = {matrix.name: matrix.parameter.detach() for matrix in self._matrices}
        return matrices | {name: parameter.detach() for name, parameter in self._trained.items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the ticket's tensors: those of the state, and what codes add."""
        return {name: tuple(tensor.shape) for name, tensor in self.state_dict().items()} | self._code_shapes

    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> None:  # type: ignore[override]
        """Weights as a ticket draws them: they are decoded, and the query and key slices scaled, here."""
        own = self.state_dict()
        if odd := sorted((own.keys() | self._code_shapes.keys()) ^ state.keys()):
            raise StrongTicketError(f"tensor {odd[0]!r} is in the state or in the model, not in both")
        with torch.no_grad():
            for name, target in own.items():
                matrix, levels = decode(
                    self._codes.get(name, {}), name, lambda each: state[each].detach().numpy()
                )
                matrix = scale_slices(matrix.copy(), self._slices.get(name, ()))
                target.copy_(torch.from_numpy(matrix if levels is None else matrix * levels))


class SearchKind:
    """Tickets of searched transformers models."""

    def shapes(self, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        with torch.device("meta"):
            module = _found_network(settings)
        return module.shapes()

    def network(self, ticket: Ticket, *, threads: int | None = None) -> nn.Module:
        """The transformers model itself, of its own class."""
        module = _found_network(ticket.settings)
        names = ticket.masks.keys() | ticket.floats.keys()
        module.load_state_dict(
            {name: torch.from_numpy(ticket.weights(name, threads=threads)) for name in names}
        )
        return module.model.requires_grad_(False).eval()

    def describe(self, summary: Summary) -> Description:
        """Of the model its sizes, not the hundred other options of its config."""
        config, slices = summary.settings["config"], summary.settings["parts"]
        sizes = ", ".join(f"{key}={value}" for key, value in config.items() if type(value) is int)
        factors = {f"{stored[-1]:.3g}" for each in slices.values() for stored in each}
        scaled = f"; query and key weights × {', '.join(sorted(factors))}" if factors else ""
        return Description(
            (("network", summary.kind), ("settings", f"{config['model_type']}: {sizes}{scaled}"))
        )

    def generate(
        self, ticket: Ticket, prompt: str, *, tokenizer: str | None = None, **options: Any
    ) -> Iterator[str]:
        """tokenizer: folder or name of a named tokenizer, if it is no longer where it was."""
        if not prompt:
            raise StrongTicketError("prompt is empty", hint="Give at least one character to start from.")
        if "tokenizer" not in ticket.metadata:
            raise StrongTicketError(
                "the ticket does not name a tokenizer, so it cannot read text",
                hint="Use a ticket made by `strongticket search`.",
            )
        found = from_json(ticket.metadata["tokenizer"], name=tokenizer)
        context = int(ticket.metadata["context"])
        return generate(ticket.network(), found, prompt, context=context, slide=True, **options)


KINDS = {KIND: SearchKind()}


def _found_network(settings: Any) -> FoundNetwork:
    if not isinstance(settings, dict) or settings.keys() - {"codes"} != {
        "config",
        "parts",
        "trained",
    }:
        raise StrongTicketError("settings must have exactly config, parts and trained, and may have codes")
    return FoundNetwork(settings)


def _slice(stored: list[Any]) -> ScaledSlice:
    axis, start, stop, factor = stored
    if axis not in (0, 1) or not 0 <= start < stop or not math.isfinite(factor):
        raise StrongTicketError(f"slice {stored!r} must be axis 0 or 1, start < stop and a finite factor")
    return ScaledSlice(axis, int(start), int(stop), float(factor))
