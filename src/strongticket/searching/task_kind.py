"""Tickets of task masks: which weights of a trained model a task keeps, and the numbers that the task trained.

The trained model, the base, is not in the file. Its checksum is, so a mask is never put over other weights. A
masked tensor of such a ticket is its mask: 1 where a weight is kept, +0.0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from strongticket.data.configs import make_config
from strongticket.data.models import check_buffers, load_config, load_model, model_class, skeleton
from strongticket.errors import StrongTicketError, TicketError
from strongticket.files import json_roundtrip
from strongticket.searching.masking.parameters import Attachment, checksum
from strongticket.ticket import CompareOptions, Description, Summary, Ticket, TicketComparison

KIND = "task"
_FIELDS = {"class", "config", "masked", "trained", "base"}
_NOT_STORED = ("transformers_version", "architectures", "dtype", "_name_or_path")


def task_ticket(
    model: nn.Module, attachment: Attachment, *, metadata: dict[str, Any] | None = None
) -> Ticket:
    """The ticket of a model attached with weights="pretrained", with the masks of its scores now."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "to_diff_dict"):
        raise StrongTicketError(
            f"a {type(model).__name__} is not a model of transformers, so its task mask has no file",
            hint="Use masks(model) for its masks.",
        )
    masks = attachment.stored()
    stored = {name: value for name, value in config.to_diff_dict().items() if name not in _NOT_STORED}
    settings = {
        "class": type(model).__name__,
        "config": stored,
        "masked": sorted(masks),
        "trained": sorted(attachment.trained),
        "base": attachment.base,
    }
    return Ticket(
        seed=attachment.seed,
        kind=KIND,
        settings=json_roundtrip("settings", settings),
        laws={name: tensor.law for name, tensor in masks.items()},
        masks={name: tensor.mask for name, tensor in masks.items()},
        floats={name: tensor.detach().float().cpu().numpy() for name, tensor in attachment.trained.items()},
        metadata=metadata or {},
    )


class TaskKind:
    """Masks over a trained model of transformers."""

    def shapes(self, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        _check(settings)
        names = settings["masked"] + settings["trained"]
        model = skeleton(settings["class"], make_config(settings["config"]), len(names))
        state = model.state_dict()
        if odd := sorted(set(names) - state.keys()):
            raise StrongTicketError(f"settings name {odd[0]!r}, which is not a tensor of the model")
        return {name: tuple(state[name].shape) for name in names}

    def network(
        self,
        ticket: Ticket,
        *,
        base: nn.Module | str | Path | None = None,
        threads: int | None = None,
    ) -> nn.Module:
        """The trained model with the task's mask and head.

        base: the trained model, or its folder or hub name
        """
        if base is None:
            raise StrongTicketError(
                f"the ticket is a mask over a trained model, the one with checksum {ticket.settings['base']}",
                hint="Give that model as base; on the command line, with --base.",
            )
        model = make_model(ticket, load_base(base))
        state = model.state_dict()
        with torch.no_grad():
            for name in ticket.settings["masked"]:
                gate = torch.from_numpy(ticket.weights(name, threads=threads))
                state[name].mul_(gate).add_(0.0)  # -0.0 becomes 0.0, as in a search
        return model.requires_grad_(False).eval()

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
        from strongticket.pretrained.comparison import compare_models

        options.refuse("only networks of strongticket.nets are certified as a whole", "epsilon")
        base = load_base(model)
        with_mask = ticket.network(base=base)
        without = make_model(ticket, base).requires_grad_(False).eval()
        return compare_models(model, without, with_mask, options)


KINDS = {KIND: TaskKind()}


def load_base(base: nn.Module | str | Path) -> nn.Module:
    """The trained model itself; of a folder or hub name, in the class that its config names."""
    if isinstance(base, nn.Module):
        return base
    name, _ = load_config(str(base))
    return load_model(str(base), name)


def make_model(ticket: Ticket, base: nn.Module) -> nn.Module:
    """A model of the ticket's class with the base's weights, copied, and the task's trained numbers; no mask yet."""
    from transformers.initialization import no_init_weights

    settings = ticket.settings
    _check(settings)
    config, names = make_config(settings["config"]), settings["masked"] + settings["trained"]
    # Its shapes first, so that nothing is allocated that the base and the ticket do not fill.
    empty = skeleton(settings["class"], config, len(names))
    shapes = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    stored = {name: tensor.shape for name, tensor in (ticket.masks | ticket.floats).items()}
    if odd := sorted(name for name in {*names, *stored} if stored.get(name) != shapes.get(name)):
        raise TicketError(
            f"tensor {odd[0]!r}: the architecture has shape {shapes.get(odd[0])}, the ticket {stored.get(odd[0])} "
            "(None: no such tensor)"
        )
    state = base_tensors(ticket, base, shapes)
    check_buffers(empty)
    with torch.random.fork_rng(devices=[]), no_init_weights():
        model: nn.Module = model_class(settings["class"], config)(config)
    state |= {name: torch.from_numpy(ticket.weights(name)) for name in settings["trained"]}
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    return model


def base_tensors(
    ticket: Ticket, base: nn.Module, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, torch.Tensor]:
    """What a task's model takes from the base, by the names of the task's model; its checksum compared.

    shapes: of all tensors of the task's model
    """
    found, prefix = base.state_dict(), f"{getattr(base, 'base_model_prefix', '')}."
    wanted = {name for name in shapes if name not in ticket.settings["trained"]}
    tensors = {}
    for name in sorted(wanted):
        own = name if name in found else name.removeprefix(prefix)  # of a model without a head
        if own not in found or tuple(found[own].shape) != shapes[name]:
            raise TicketError(
                f"base, a {type(base).__name__}, has no tensor {own!r} of shape {shapes[name]}",
                hint="Give the model that the mask was searched on.",
            )
        tensors[name] = found[own]
    if (number := checksum(tensors)) != ticket.settings["base"]:
        raise TicketError(
            f"base has checksum {number}, the mask belongs to the model with {ticket.settings['base']}",
            hint="Give the model that the mask was searched on, unchanged.",
        )
    return tensors


def _check(settings: Any) -> None:
    if not isinstance(settings, dict) or settings.keys() != _FIELDS:
        raise StrongTicketError(f"settings must have exactly {', '.join(sorted(_FIELDS))}")
    for field in ("masked", "trained"):
        names = settings[field]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise StrongTicketError(f"{field} must be a list of tensor names, got {names!r}")
