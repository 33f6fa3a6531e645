"""All options of a model's ticket in one place, for the API and the command line alike."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from strongticket import seeds
from strongticket.errors import StrongTicketError
from strongticket.pretrained.pieces import PROBLEMS, Layout
from strongticket.settings import check

Attention = Literal["linear", "products"]
Assignment = Literal["balanced", "paper"]
TOLERANCE = 1e-2


@dataclass(frozen=True)
class ModelOptions:
    """How near, of which tensors and from which source. Give at most one of tolerance, bits and loss.

    tolerance: root mean square error of a tensor's entries, relative to their own root mean square
    bits: or the size of the file, in bits for each number of the model
    loss: or how much the loss on `data` may grow, as a fraction: 0.01 is one per cent
    data: a text file; the tolerance for `loss` is found on it before the build, and the result checked after it
    calibrate: a text file; errors of linear layers are shaped so that they cancel on inputs like those of this text
    only: name patterns such as "model.layers.0.*"; the other tensors stay trained. None given: all tensors
    attention: "linear" makes every tensor of the model on its own; "products" makes W_QK and W_VO of every head
        as Theorem 3 does, for the families that have an adapter
    units: hidden units for each row of a matrix, about the bits of an entry; None chooses them by what is asked
    assignment: "paper" is the source of the theorems, symmetric and with contiguous groups as in Lemma 7
    seed: of everything random
    piece_problems: entries that a piece of work has at most, about
    """

    tolerance: float | None = None
    bits: float | None = None
    loss: float | None = None
    data: Path | None = None
    calibrate: Path | None = None
    only: tuple[str, ...] = ()
    attention: Attention = "linear"
    units: float | None = None
    assignment: Assignment = "balanced"
    seed: int = 0
    piece_problems: int = PROBLEMS

    def __post_init__(self) -> None:
        seeds.key(self.seed, "")
        object.__setattr__(self, "only", (self.only,) if isinstance(self.only, str) else tuple(self.only))
        check(Attention, attention=self.attention)
        check(Assignment, assignment=self.assignment)
        given = [name for name in ("tolerance", "bits", "loss") if getattr(self, name) is not None]
        if len(given) > 1:
            raise StrongTicketError(f"{' and '.join(given)} are given: give one of them")
        for name, low, high in (("tolerance", 0, 1), ("bits", 1, 32), ("loss", 0, 10)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or not low < value < high):
                raise StrongTicketError(f"{name}={value!r}: expected a number between {low} and {high}")
        if (self.loss is None) != (self.data is None):
            raise StrongTicketError(
                "loss needs a text to measure it on, and data is used for nothing else",
                hint="Give loss and data together.",
            )
        if self.calibrate is not None and self.assignment == "paper":
            raise StrongTicketError(
                "calibrate feeds errors forward, which the paper's source does not do",
                hint="Give one of them.",
            )
        Layout(8 if self.units is None else self.units, self.piece_problems)

    @classmethod
    def of(cls, options: ModelOptions | None, changes: dict[str, Any]) -> ModelOptions:
        """`options` (by default all defaults) with some fields changed (changes)."""
        known = {field.name for field in fields(cls)}
        if unknown := changes.keys() - known:
            raise StrongTicketError(
                f"unknown build option {min(unknown)!r}: expected some of {', '.join(sorted(known))}"
            )
        return replace(options or cls(), **changes)
