"""The network of a built ticket: what its settings say, its tensors, the model that they fill."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from strongticket import limits
from strongticket.choice import matrix_shape
from strongticket.choice.source import many_weights
from strongticket.errors import StrongTicketError, TicketError
from strongticket.files import JsonObject
from strongticket.models.attention import AttentionMap, product_attention_of
from strongticket.models.loading import load_model
from strongticket.models.rebuilding import Architecture
from strongticket.models.subset import ROWS, FactorPair, factor_pairs, multiply
from strongticket.models.tensors import (
    exact_checksum,
    from_stored,
    parameters,
    persistent_buffers,
    state_checksum,
    tensor_named,
)
from strongticket.ticket import Ticket

FIELDS = {"library", "class", "config", "options", "attention", "base", "by", "per_row", "rebuilt", "tensors"}
_PAIRS = 1 << 20  # of factors


class BuiltModel:
    """The settings of a ticket of kind "model", checked, and what is made of them.

    Settings:
        library: "transformers", or None for a class of the user's own.
        class, config, options: see Architecture.
        attention: "linear" if the tensors are the model's own, "products" if W_QK and W_VO are in their place.
        base: checksum of the trained model that the other tensors come from, None if the ticket has all.
        by: "choice" or "subset".
        per_row: hidden units of each row, by subset sums.
        rebuilt: checksums of the whole-number buffers that the user's class makes.
        tensors: name -> shape of every tensor that is made.
    """

    def __init__(self, settings: JsonObject) -> None:
        if settings.keys() != FIELDS:
            raise StrongTicketError(f"settings must have exactly {', '.join(sorted(FIELDS))}")
        self.settings = settings
        self.tensors = {name: _checked(name, shape) for name, shape in settings["tensors"].items()}
        if (settings["by"], settings["attention"]) not in (
            ("choice", "linear"), ("subset", "linear"), ("subset", "products"),
        ):  # fmt: skip
            raise StrongTicketError(f"by={settings['by']!r:.60} is not a way to build a ticket")
        if not isinstance(settings["rebuilt"], dict):
            raise StrongTicketError(f"rebuilt={settings['rebuilt']!r:.60}: expected checksums by name")

    @property
    def whole(self) -> bool:
        """Whether no trained number is left."""
        return self.settings["base"] is None

    @property
    def architecture(self) -> Architecture | None:
        """None for a class of the user's own."""
        if self.settings["library"] is None:
            return None
        return Architecture(self.settings["class"], self.settings["config"], self.settings["options"])

    @cached_property
    def pairs(self) -> dict[str, list[FactorPair]]:
        """The factors of each tensor that is made by subset sums."""
        per_row = self.settings["per_row"]
        if type(per_row) is not int or not 0 < per_row < 1 << 10:
            raise StrongTicketError(f"per_row={per_row!r:.60}: expected a whole number of units")
        if sum(min(matrix_shape(shape)) // ROWS for shape in self.tensors.values()) > _PAIRS:
            raise limits.exceeded(
                f"the tensors have more than {_PAIRS:,} pairs of factors, which is the limit"
            )
        return {name: factor_pairs(name, shape, per_row) for name, shape in self.tensors.items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the ticket's tensors."""
        if self.settings["by"] == "choice":
            return self.tensors
        pairs = (pair for pairs in self.pairs.values() for pair in pairs)
        return {name: shape for pair in pairs for name, shape in pair.shapes.items()}

    def state(self, ticket: Ticket) -> Iterator[tuple[str, np.ndarray]]:
        """The tensors of the network that the ticket makes."""
        for name, shape in self.tensors.items():
            if self.settings["by"] == "choice":
                found = ticket.weights(name)
            else:
                found = multiply(self.pairs[name], shape, ticket)
            yield name, from_stored(name, found)

    def empty_network(self, module: nn.Module | None, base: nn.Module | str | Path | None) -> nn.Module:
        """The model that the ticket's tensors go into; see Ticket.network for the arguments."""
        model = self._model(module, base)
        layers = self._check_tensors(model)
        if self.settings["attention"] == "products":
            made: Any = model
            # Its masks are numbers to add, as every ProductAttention takes them.
            made.set_attn_implementation("eager")
            made.save_pretrained = partial(_refuse_to_save, type(model).__name__)
            for layer in layers:
                layer.install(model)
        return model

    def check_target(self, model: nn.Module) -> None:
        """Raise unless the ticket may have been built from this model, judging by its class and sizes."""
        if type(model).__name__ != self.settings["class"]:
            raise StrongTicketError(
                f"the model is a {type(model).__name__}, the ticket belongs to a {self.settings['class']}",
                hint="Give the model that it was built from.",
            )
        self._check_tensors(model)

    def _model(self, module: nn.Module | None, base: nn.Module | str | Path | None) -> nn.Module:
        if not self.whole:
            if module is not None:
                raise StrongTicketError(
                    "the ticket is partial: give the trained model as base, not a new module"
                )
            return self._base(base)
        if base is not None:
            raise StrongTicketError("the ticket is whole, it needs no base model: leave base out")
        if module is not None:
            self._check_rebuilt(module)
            return module
        if self.architecture is None:
            name = self.settings["class"]
            raise StrongTicketError(
                f"the ticket was built from a {name}, which is not a class of transformers",
                hint=f"Give one to be filled: ticket.network({name}(...)).",
            )
        with limits.at_most(limits.tensors(len(self.tensors))):
            self._check_tensors(self.architecture.empty())
        return self.architecture.make()

    def _base(self, base: nn.Module | str | Path | None) -> nn.Module:
        wanted, name = self.settings["base"], self.settings["class"]
        if base is None:
            raise StrongTicketError(
                f"the ticket is partial: the rest of its network is the trained model with checksum {wanted}",
                hint="Give that model as base; on the command line, with --base.",
            )
        model = base if isinstance(base, nn.Module) else load_model(base)
        found = state_checksum(model.state_dict())
        if type(model).__name__ != name or found != wanted:
            raise TicketError(
                f"base is a {type(model).__name__} with checksum {found}: the ticket belongs to the {name} with "
                f"checksum {wanted}",
                hint="Give that model.",
            )
        return deepcopy(model)

    def _check_tensors(self, model: nn.Module) -> list[AttentionMap]:
        """The layers to be made of products. The model's tensors must be the ticket's, and a whole one has all."""
        every = product_attention_of(model) if self.settings["attention"] == "products" else []
        layers = [layer for layer in every if layer.products().keys() & self.tensors]
        found: dict[str, tuple[int, ...]] = {
            name: tuple(tensor_named(model, name).shape)
            for name in [*parameters(model), *persistent_buffers(model)]
            if not any(layer.covers(name) for layer in layers)
        }
        for layer in layers:
            found |= layer.products()
        for name, shape in self.tensors.items():
            if found.get(name) != shape:
                raise TicketError(
                    f"tensor {name!r}: the ticket has shape {shape}, the {type(model).__name__} "
                    f"{found.get(name)} (None: no such tensor)"
                )
        buffers = dict(model.named_buffers())
        for name in found if self.whole else ():
            if name not in self.tensors and name not in buffers and 0 not in found[name]:
                raise TicketError(
                    f"the parameter {name!r} of the {type(model).__name__} is not in the ticket"
                )
        return layers

    def _check_rebuilt(self, module: nn.Module) -> None:
        """Raise unless the whole numbers that the user's class makes are those that the ticket was built from."""
        buffers = dict(module.named_buffers())
        for name, wanted in self.settings["rebuilt"].items():
            if name not in buffers or exact_checksum(buffers[name]) != wanted:
                raise TicketError(
                    f"the buffer {name!r} of the {type(module).__name__} is not the one that the ticket was built from",
                    hint="Make the module with the same arguments.",
                )

    def show_factors(self, network: nn.Module, ticket: Ticket) -> None:
        """Put random weights and their masks in the place of every parameter that the ticket makes."""
        ties = parameters(network)
        for name, shape in self.tensors.items():
            if self.settings["by"] == "choice":
                source = Factors(name, _kept, *many_weights(ticket.choices[name], ticket.seed, name))
            else:
                source = Factors(name, multiply, self.pairs[name], shape, ticket)
            for each in ties.get(name, [name]):
                path, _, last = each.rpartition(".")
                module = network.get_submodule(path)
                if not parametrize.is_parametrized(module, last):  # a module that is used twice
                    parametrize.register_parametrization(module, last, source, unsafe=True)


class Factors(nn.Module):
    """A parametrisation: the parameter is made of random weights and their masks whenever it is read."""

    def __init__(self, name: str, multiply: Callable[..., np.ndarray], *factors: Any) -> None:
        super().__init__()
        self.name, self.multiply, self.factors = name, multiply, factors

    def forward(self, original: Tensor) -> Tensor:
        found = self.multiply(*self.factors)
        return torch.from_numpy(from_stored(self.name, found)).to(original)


def _kept(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Many random weights times a mask that keeps one for each connection."""
    return np.asarray((weights * mask).sum(0))  # of a single number, too


def _refuse_to_save(name: str, *_: Any, **__: Any) -> None:
    """Refuse what would write a folder that loads with random numbers in the place of most weights."""
    raise StrongTicketError(
        f"this network does not have the parameters of a {name}: it runs products in their place",
        hint="Save the ticket instead (Ticket.save), or build with attention='linear'.",
    )


def _checked(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
        raise StrongTicketError(f"tensor {name!r}: shape must be a list of positive sizes, got {shape!r}")
    return tuple(shape)
