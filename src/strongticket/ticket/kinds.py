"""Kinds of tickets: what turns a ticket's settings and masks into a network.

A package that makes tickets has a `kind.py` with an object that follows `Kind`, and a line in `KINDS`. It is
imported on demand, because torch loads slowly. No code and no class name is read from a file.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from strongticket.errors import StrongTicketError, TicketError, as_missing_dependency, prefixed
from strongticket.files import JsonObject
from strongticket.ticket.summary import Summary

if TYPE_CHECKING:
    import torch

Form = Literal["merged", "factors"]

# name in the file -> module whose KINDS has it
KINDS = {
    "attention": "strongticket.nets.kind",
    "relu": "strongticket.nets.kind",
    "block": "strongticket.nets.kind",
    "transformer": "strongticket.nets.kind",
    "search": "strongticket.searching.kind",
    "task": "strongticket.searching.task_masks",
    "model": "strongticket.models.kind",
}


@dataclass(frozen=True)
class Description:
    """What `strongticket show` says about a ticket besides its tensors and sizes.

    rows: (label, text) for a person; facts: the same as plain JSON data
    tensors: headings, then a row for each tensor of the network; empty to list the ticket's own
    """

    rows: tuple[tuple[str, str], ...]
    facts: JsonObject = field(default_factory=dict)
    tensors: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class CompareOptions:
    """What to compare on, and what to ask for. A kind refuses what it does not take.

    epsilon: output error that must be certified
    data: a text file to run both on; without it, inputs are made up
    sequences: how many to run both on; None is the kind's own number
    prompts: that both continue
    seed: of made-up inputs
    progress: called with the number of finished batches and their total
    """

    epsilon: float | None = None
    data: Path | None = None
    sequences: int | None = None
    prompts: tuple[str, ...] = ()
    seed: int = 0
    progress: Callable[[int, int], None] | None = None

    def refuse(self, why: str, *names: str) -> None:
        """Raise if one of these options is given. why: it does not apply."""
        for name in names:
            if getattr(self, name) != getattr(CompareOptions, name):
                raise StrongTicketError(f"{name} does not apply: {why}", hint="Leave it out.")


@dataclass(frozen=True)
class TicketComparison:
    """A ticket's network beside the model that it stands for.

    facts: what was measured, as plain data
    rows: (label, text) for a person
    details: headings, then a row for each matrix or layer
    problems: what the file states, or what was asked for, and does not hold
    """

    facts: JsonObject
    rows: tuple[tuple[str, str], ...]
    details: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...] = ()


class Kind(Protocol):
    """One kind of ticket. Whatever is wrong with the settings of a file is an error.

    A kind whose networks are models of transformers also has `architecture(settings)`.
    """

    def shapes(self, settings: JsonObject, module: Any = None) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the ticket's tensors, found without allocating them.

        module: that is to be filled; None for the network that the settings describe
        """

    def state(self, ticket: Any, base: Any = None) -> Iterator[tuple[str, np.ndarray]]:
        """See Ticket.state."""

    def network(self, ticket: Any, **options: Any) -> "torch.nn.Module":
        """See Ticket.network; a kind has those of its options that it takes."""

    def describe(self, summary: Summary) -> Description:
        """What the ticket is, from its index alone."""

    def generate(self, ticket: Any, prompt: str, **options: Any) -> Iterator[str]:
        """See Ticket.generate."""

    def compare(self, ticket: Any, model: str, options: CompareOptions) -> TicketComparison:
        """Compare with the model at that path or hub name; one of another class or size is an error."""


def check(kind: str) -> None:
    """TicketError unless there is such a kind."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise TicketError(f"kind={kind!r} is unknown: expected one of {', '.join(KINDS)}")


def kind_of(name: str) -> Kind:
    """The kind of that name."""
    check(name)
    try:
        kind: Kind = importlib.import_module(KINDS[name]).KINDS[name]
    except ModuleNotFoundError as error:
        raise as_missing_dependency(error) from error
    return kind


def from_file(name: str) -> AbstractContextManager[None]:
    """Report whatever the settings break inside as an error of the file."""
    return prefixed(f"the settings do not describe a network of kind {name!r}", TicketError)


def describe(summary: Summary) -> Description:
    """What the kind of a ticket says about it."""
    kind = kind_of(summary.kind)
    with from_file(summary.kind):
        return kind.describe(summary)


def shapes(
    name: str, settings: JsonObject, module: "torch.nn.Module | None" = None
) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors of a ticket of this kind."""
    kind = kind_of(name)
    with nullcontext() if module is not None else from_file(name):  # what is wrong may be the module
        return kind.shapes(settings, *([] if module is None else [module]))
