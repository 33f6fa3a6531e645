"""Several tasks on one trained model: its weights are in memory once, a task's mask is put on and taken off."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching.task_kind import KIND, load_base, make_model, unmasked_state
from strongticket.ticket import Ticket


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
        if ticket.kind != KIND:
            raise StrongTicketError(
                f"a ticket of kind {ticket.kind!r} is not a mask over a trained model",
                hint="Search one with attach(model, weights='pretrained').",
            )
        if name in self._models:
            raise StrongTicketError(f"task {name!r} already exists", hint="Choose another name.")
        model = make_model(ticket, unmasked_state(ticket, self._base))
        parameters = {tensor: model.get_parameter(tensor) for tensor, _ in model.named_parameters()}
        for tensor, parameter in parameters.items():
            if tensor in ticket.settings["trained"]:
                continue
            shared = self._shared.setdefault(tensor, parameter)
            if shared is not parameter:
                _replace(model, tensor, shared)
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


def _replace(model: nn.Module, name: str, parameter: nn.Parameter) -> None:
    path, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(path), attribute, parameter)
