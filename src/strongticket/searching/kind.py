"""Tickets of searched networks: from a searched model to a Ticket, and from a Ticket's settings to the model.

The scale of query and key weights is in the settings and is applied after the draw, so a ticket's checksums are
of the weights before scaling. Models of known families are rebuilt from their config; any other module is made by
its owner and filled: `Ticket.load(file).network(MyModule())`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from strongticket.errors import StrongTicketError, TicketError
from strongticket.models.comparing import ticket_comparison
from strongticket.models.configs import make_config, usual_class
from strongticket.models.generation import generate
from strongticket.models.loading import OpenedModel
from strongticket.models.rebuilding import Architecture, describe
from strongticket.models.tensors import check_same_shapes, fill
from strongticket.models.tokenizers import from_json
from strongticket.searching.masking.codes import StoredTensor, code_shapes, decode
from strongticket.searching.masking.matrices import (
    clean_name,
    other_parameters,
    stored_buffers,
    weight_matrices,
)
from strongticket.searching.masking.parameters import Attachment, attachment_of
from strongticket.searching.masking.source import ScaledSlice, scale_slices
from strongticket.searching.task_masks import TASK, task_settings
from strongticket.ticket import CompareOptions, Description, Summary, Ticket, TicketComparison

KIND = "search"


def to_ticket(
    model: nn.Module, attachment: Attachment | None = None, *, metadata: dict[str, Any] | None = None
) -> Ticket:
    """The ticket of an attached model (or of a dense one, all floats), with the masks of its scores now.

    model: the searched model, of any class
    attachment: what `attach` or the search method returned; None means that of the last `attach`
    metadata: stored with the ticket
    """
    attachment = attachment or attachment_of(model)
    stored = attachment.stored()
    tensors = {
        name: each for matrix, tensor in stored.items() for name, each in tensor.tensors(matrix).items()
    }
    masks = {name: mask for name, (mask, _) in tensors.items()}
    of_task = attachment.base is not None
    floats = attachment.trained if of_task else attachment.trained | stored_buffers(model)
    shapes = {name: tuple(tensor.shape) for name, tensor in (masks | floats).items()}
    return Ticket(
        seed=attachment.seed,
        kind=TASK if of_task else KIND,
        settings=task_settings(model, attachment)
        if of_task
        else _settings(model, attachment, stored, shapes),
        laws={name: law for name, (_, law) in tensors.items()},
        masks=masks,
        floats={name: tensor.detach().float().cpu().numpy() for name, tensor in floats.items()},
        metadata=metadata or {},
    )


def _settings(
    model: nn.Module,
    attachment: Attachment,
    stored: dict[str, StoredTensor],
    shapes: dict[str, tuple[int, ...]],
) -> dict[str, Any]:
    slices = {
        name: [[each.axis, each.start, each.stop, each.factor] for each in tensor.slices]
        for name, tensor in stored.items()
        if any(part.factor != 1 for part in tensor.slices)
    }
    trained = sorted(name for name in attachment.trained if name not in attachment.sources)
    codes = {name: code for name, tensor in stored.items() if (code := tensor.code())}
    settings = _architecture(model, shapes) | {"parts": slices, "trained": trained}
    return settings | ({"codes": codes} if codes else {})


def _architecture(model: nn.Module, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """The settings that say what the network is: class and config, or names and shapes of a module of one's own."""
    described = describe(model)
    if described is None:
        # torch gives a module with masks of its own a class Parametrized...
        own = type(model).__mro__[1 if parametrize.is_parametrized(model) else 0]
        return {
            "module": own.__name__,
            "shapes": {name: list(shape) for name, shape in sorted(shapes.items())},
        }
    # Trainer adds use_cache to any config; of the labels only their number matters.
    config: Any = model.config
    known = type(config)().to_dict().keys() - {"id2label", "label2id"}
    stored = {name: value for name, value in described.config.items() if name in known}
    if described.name.endswith("Classification"):
        stored["num_labels"] = config.num_labels
    settings: dict[str, Any] = {"config": stored}
    if described.name != usual_class(config):
        settings["class"] = described.name
    return settings | ({"options": described.options} if described.options else {})


class SearchKind:
    """Tickets of searched models."""

    def architecture(self, settings: dict[str, Any]) -> Architecture | None:
        """What rebuilds the model; older files say `head` where newer ones name the class."""
        _check(settings)
        if "config" not in settings:
            return None
        config = settings["config"]
        name = settings.get("class") or usual_class(make_config(config), bool(settings.get("head")))
        return Architecture(name, config, settings.get("options", {}))

    def shapes(self, settings: dict[str, Any], module: nn.Module | None = None) -> dict[str, tuple[int, ...]]:
        architecture = self.architecture(settings)
        if architecture is not None:
            model = architecture.empty()
            if module is not None:
                check_same_shapes(module, model, named=clean_name)
        elif module is not None:
            model = module
        else:
            return {name: tuple(int(size) for size in shape) for name, shape in settings["shapes"].items()}
        matrices = weight_matrices(model)
        found = {matrix.name: matrix.shape for matrix in matrices}
        if odd := sorted(_slices(settings).keys() - found.keys()):
            raise StrongTicketError(f"parts names {odd[0]!r}, which is not a weight matrix of the model")
        trained, buffers = set(settings["trained"]), stored_buffers(model)
        codes = code_shapes(settings.get("codes", {}), found)
        for name, parameter, value in other_parameters(model, matrices):
            if name in trained:
                found[name] = tuple(parameter.shape)
            elif value is None:
                raise StrongTicketError(f"the ticket has no value for parameter {name!r} of the model")
        if odd := sorted(trained - found.keys()):
            raise StrongTicketError(f"trained names {odd[0]!r}, which is not a parameter of the model")
        return found | {name: tuple(buffer.shape) for name, buffer in buffers.items()} | codes

    def state(self, ticket: Ticket, base: object = None) -> Iterator[tuple[str, np.ndarray]]:
        """Codes are read and query and key slices scaled; untrained biases and norms are not in the ticket."""
        _check(ticket.settings)
        slices, codes = _slices(ticket.settings), ticket.settings.get("codes", {})
        stored = ticket.shapes()
        parts = code_shapes(codes, {name: stored[name] for name in codes if name in stored})
        for name in sorted(stored.keys() - parts.keys()):
            matrix, levels = decode(codes.get(name, {}), name, ticket.weights)
            matrix = scale_slices(matrix, slices.get(name, ()))
            yield name, matrix if levels is None else matrix * levels

    def network(
        self, ticket: Ticket, module: nn.Module | None = None, *, dtype: torch.dtype | None = None
    ) -> nn.Module:
        """The model itself, of its own class.

        module: filled and returned, in evaluation mode; needed for a class that is not one of transformers'
        """
        if module is None:
            architecture = self.architecture(ticket.settings)
            if architecture is None:
                name = ticket.settings["module"]
                raise StrongTicketError(
                    f"the ticket is of a {name}, and a ticket file never holds code",
                    hint=f"Pass a module of that class to be filled: ticket.network({name}()).",
                )
            module = architecture.make()
        with torch.no_grad():
            for name, parameter, value in other_parameters(module, []):
                if name not in ticket.shapes() and value is not None:
                    parameter.fill_(value)
        filled = fill(module, ticket.state(), named=clean_name)
        return filled if dtype is None else filled.to(dtype)

    def describe(self, summary: Summary) -> Description:
        """Describe the ticket; of the model's config only the sizes are listed, not its hundred other options."""
        slices = summary.settings["parts"]
        config = summary.settings.get(
            "config", {"model_type": f"own module {summary.settings.get('module')}"}
        )
        sizes = ", ".join(f"{key}={value}" for key, value in config.items() if type(value) is int)
        factors = {f"{stored[-1]:.3g}" for parts in slices.values() for stored in parts}
        scaled = f"; query and key weights × {', '.join(sorted(factors))}" if factors else ""
        return Description(
            (("network", summary.kind), ("settings", f"{config['model_type']}: {sizes}{scaled}"))
        )

    def generate(
        self,
        ticket: Ticket,
        prompt: str,
        *,
        tokenizer: str | None = None,
        base: str | None = None,
        **sampling: Any,
    ) -> Iterator[str]:
        """As Ticket.generate says."""
        if base is not None:
            raise StrongTicketError(
                "base does not apply: a searched ticket has no trained model", hint="Leave it out."
            )
        if not prompt:
            raise StrongTicketError("prompt is empty", hint="Give at least one character to start from.")
        if "tokenizer" not in ticket.metadata:
            raise StrongTicketError(
                "the ticket does not name a tokenizer, so it cannot read text",
                hint="Use a ticket that was searched on text.",
            )
        found = from_json(ticket.metadata["tokenizer"], name=tokenizer)
        context = ticket.metadata.get("context")
        if type(context) is not int:
            raise TicketError(
                f"the ticket does not say how many tokens it reads: its context is {context!r:.80}"
            )
        return generate(ticket.network(), found, prompt, context=context, **sampling)

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        options.refuse("only networks of strongticket.nets are certified as a whole", "epsilon")
        opened, source = OpenedModel(model), ticket.network()
        target = opened.load()
        if type(target) is not type(source):
            raise StrongTicketError(
                f"{model} is a {type(target).__name__}, the ticket belongs to a {type(source).__name__}",
                hint="Compare it with a model of the same class.",
            )
        check_same_shapes(target, source)
        return ticket_comparison(opened, target, source, options)


KINDS = {KIND: SearchKind()}


def _check(settings: Any) -> None:
    names = settings.keys() if isinstance(settings, dict) else set()
    of_transformers = names - {"class", "options", "head", "codes"} == {"config", "parts", "trained"}
    if not of_transformers and names - {"codes"} != {"module", "shapes", "parts", "trained"}:
        raise StrongTicketError(
            "settings must have exactly config, parts and trained, and may have class, options and codes; of a "
            "module of another class they have module and shapes instead of config"
        )


def _slices(settings: dict[str, Any]) -> dict[str, tuple[ScaledSlice, ...]]:
    """Matrix name -> its rows or columns that are scaled."""
    return {name: tuple(_slice(each) for each in slices) for name, slices in settings["parts"].items()}


def _slice(stored: list[Any]) -> ScaledSlice:
    axis, start, stop, factor = stored
    if axis not in (0, 1) or not 0 <= start < stop or not math.isfinite(factor):
        raise StrongTicketError(f"slice {stored!r} must be axis 0 or 1, start < stop and a finite factor")
    return ScaledSlice(axis, int(start), int(stop), float(factor))
