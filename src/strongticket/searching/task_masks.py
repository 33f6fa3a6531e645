"""Task masks: which weights of a trained model a task keeps, and the numbers that the task trained.

The trained model, the base, is not in the file. Its checksum is, so a mask is never put over other weights. A
masked tensor of such a ticket is its mask: 1 where a weight is kept, +0.0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from strongticket import limits
from strongticket.errors import StrongTicketError, TicketError
from strongticket.models.comparing import ticket_comparison
from strongticket.models.loading import OpenedModel, load_model
from strongticket.models.rebuilding import Architecture, describe
from strongticket.models.tensors import fill, state_checksum
from strongticket.searching.masking.parameters import Attachment
from strongticket.ticket import CompareOptions, Description, Summary, Ticket, TicketComparison

TASK = "task"
_FIELDS = {"class", "config", "masked", "trained", "base"}


def task_settings(model: nn.Module, attachment: Attachment) -> dict[str, Any]:
    """The settings of the ticket of a model attached with weights="pretrained"."""
    architecture = describe(model)
    if architecture is None:
        raise StrongTicketError(
            f"a {type(model).__name__} is not a model of transformers, so its task mask has no file",
            hint="Use masks(model) for its masks.",
        )
    settings = {
        "class": architecture.name,
        "config": architecture.config,
        "masked": sorted(matrix.name for matrix in attachment.masked),
        "trained": sorted(attachment.trained),
        "base": attachment.base,
    }
    return settings | ({"options": architecture.options} if architecture.options else {})


class TaskKind:
    """Masks over a trained model of transformers."""

    def architecture(self, settings: dict[str, Any]) -> Architecture:
        _check(settings)
        return Architecture(settings["class"], settings["config"], settings.get("options", {}))

    def shapes(self, settings: dict[str, Any], module: nn.Module | None = None) -> dict[str, tuple[int, ...]]:
        state = self.architecture(settings).empty().state_dict()
        names = settings["masked"] + settings["trained"]
        if odd := sorted(set(names) - state.keys()):
            raise StrongTicketError(f"settings name {odd[0]!r}, which is not a tensor of the model")
        return {name: tuple(state[name].shape) for name in names}

    def state(
        self, ticket: Ticket, base: nn.Module | str | Path | None = None
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Every tensor of the task's model: the base's, those that are masked with their mask, and the trained."""
        if base is None:
            raise StrongTicketError(
                f"the ticket is a mask over a trained model, the one with checksum {ticket.settings['base']}",
                hint="Give that model as base; on the command line, with --base.",
            )
        for name, array in unmasked_state(ticket, load_base(base)):
            if name in ticket.settings["masked"]:
                array *= ticket.weights(name)
                array += np.float32(0)  # -0.0 becomes 0.0, as in a search
            yield name, array

    def network(
        self,
        ticket: Ticket,
        *,
        base: nn.Module | str | Path | None = None,
        dtype: torch.dtype | None = None,
    ) -> nn.Module:
        """The trained model with the task's mask and head.

        base: the trained model, or its folder or hub name
        """
        made = filled_model(ticket, ticket.state(base))
        return made if dtype is None else made.to(dtype)

    def describe(self, summary: Summary) -> Description:
        settings = summary.settings
        facts = {"class": settings["class"], "base": settings["base"], "trained": settings["trained"]}
        rows = (
            ("network", f"{settings['class']}: a mask over trained weights"),
            ("partial", f"the weights are those of the trained model {settings['base']}"),
            ("trained for the task", ", ".join(settings["trained"]) or "nothing"),
        )
        return Description(rows, facts)

    def generate(self, ticket: Ticket, prompt: str, **options: Any) -> Iterator[str]:
        raise StrongTicketError(
            "a task mask does not generate text by itself", hint="Use ticket.network(base=...) in a pipeline."
        )

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        """The base with the task's head, without and with the mask."""
        options.refuse("only networks of strongticket.nets are certified as a whole", "epsilon")
        opened = OpenedModel(model)
        base = opened.load()
        without = filled_model(ticket, unmasked_state(ticket, base))
        return ticket_comparison(opened, without, ticket.network(base=base), options)


_KIND = TaskKind()
KINDS = {TASK: _KIND}


def load_base(base: nn.Module | str | Path) -> nn.Module:
    """The trained model itself; of a folder or hub name, in the class that its config names."""
    return base if isinstance(base, nn.Module) else load_model(base)


def filled_model(ticket: Ticket, state: Iterator[tuple[str, np.ndarray]]) -> nn.Module:
    """A model of the ticket's class with these numbers."""
    state = chain([next(state)], state)  # refuses what does not fit before anything is allocated
    return fill(_KIND.architecture(ticket.settings).make(), state)


def unmasked_state(ticket: Ticket, base: nn.Module) -> Iterator[tuple[str, np.ndarray]]:
    """Tensors of the task's model before its mask: the base's, whose checksum is compared, and the trained ones."""
    with limits.at_most(limits.tensors(len(ticket.shapes()))):
        empty = _KIND.architecture(ticket.settings).empty()
    shapes = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    found, prefix = base.state_dict(), f"{getattr(base, 'base_model_prefix', '')}."
    tensors = {}
    for name in sorted(shapes.keys() - set(ticket.settings["trained"])):
        own = name if name in found else name.removeprefix(prefix)  # of a model without a head
        if own not in found or tuple(found[own].shape) != shapes[name]:
            raise TicketError(
                f"base, a {type(base).__name__}, has no tensor {own!r} of shape {shapes[name]}",
                hint="Give the model that the mask was searched on.",
            )
        tensors[name] = found[own]
    if (number := state_checksum(tensors)) != ticket.settings["base"]:
        raise TicketError(
            f"base has checksum {number}, the mask belongs to the model with {ticket.settings['base']}",
            hint="Give the model that the mask was searched on, unchanged.",
        )
    for name, tensor in tensors.items():
        yield name, tensor.detach().float().cpu().numpy().copy()
    for name in ticket.settings["trained"]:
        yield name, ticket.weights(name)


def _check(settings: Any) -> None:
    if not isinstance(settings, dict) or settings.keys() - {"options"} != _FIELDS:
        raise StrongTicketError(f"settings must have exactly {', '.join(sorted(_FIELDS))}")
    for field in ("masked", "trained"):
        names = settings[field]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise StrongTicketError(f"{field} must be a list of tensor names, got {names!r}")


class TaskMasks:
    """Task masks on one base. Besides the base each task costs its head and the places of its dropped weights.

    Args:
        base: the trained model, or its folder or hub name; a model is copied once.

    Example:
        tasks = TaskMasks("all-MiniLM-L6-v2")
        tasks.add("topic", Ticket.load("topic.ticket"))
        tasks.add("language", Ticket.load("language.ticket"))
        model = tasks.use("topic")  # until the next use()
    """

    def __init__(self, base: nn.Module | str | Path) -> None:
        self._base = load_base(base)
        self._shared: dict[str, nn.Parameter] = {}  # by name in the tasks' models
        self._models: dict[str, nn.Module] = {}
        self._dropped: dict[str, dict[str, torch.Tensor]] = {}  # task -> tensor -> places
        self._values: dict[str, torch.Tensor] = {}  # tensor -> what the task in use has dropped
        self._in_use: str | None = None

    @property
    def names(self) -> list[str]:
        return list(self._models)

    def add(self, name: str, ticket: Ticket) -> None:
        """Add a task; its ticket must be a mask over this base."""
        if ticket.kind != TASK:
            raise StrongTicketError(
                f"a ticket of kind {ticket.kind!r} is not a mask over a trained model",
                hint="Search one with attach(model, weights='pretrained').",
            )
        if name in self._models:
            raise StrongTicketError(f"task {name!r} already exists", hint="Choose another name.")
        model = filled_model(ticket, unmasked_state(ticket, self._base))
        for tensor, parameter in list(model.named_parameters()):
            if tensor in ticket.settings["trained"]:
                continue
            shared = self._shared.setdefault(tensor, parameter)
            if shared is not parameter:
                path, _, attribute = tensor.rpartition(".")
                setattr(model.get_submodule(path), attribute, shared)
        self._models[name] = model
        self._dropped[name] = {
            tensor: torch.from_numpy(ticket.weights(tensor)).view(-1).eq(0).nonzero()[:, 0].int()
            for tensor in ticket.settings["masked"]
        }

    def use(self, name: str) -> nn.Module:
        """Put the mask of a task on and return its model; the others share its weights and must not run meanwhile."""
        if name not in self._models:
            raise StrongTicketError(
                f"no task {name!r}: expected one of {', '.join(self._models) or 'none yet'}"
            )
        if name != self._in_use:
            self.release()
            for tensor, places in self._dropped[name].items():
                flat = self._shared[tensor].data.view(-1)
                self._values[tensor] = flat[places]
                flat[places] = 0.0
            self._in_use = name
        return self._models[name]

    def release(self) -> None:
        """Take the mask off: the weights are the base's again."""
        if self._in_use is not None:
            for tensor, places in self._dropped[self._in_use].items():
                self._shared[tensor].data.view(-1)[places] = self._values.pop(tensor)
            self._in_use = None
