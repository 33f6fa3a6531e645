"""All options of a build in one place, for the API and the command line alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.theory.rounding import Arithmetic, unit_of

Assignment = Literal["balanced", "paper"]
NetworkAssignment = Literal["balanced", "paper", "one-sign"]  # of the theorems' networks
Init = Literal["theory", "inverse", "xavier"]


@dataclass(frozen=True)
class BuildOptions:
    """How wide, how accurate and from which source. Give exactly one of width, per_row and epsilon.

    width: hidden units of each product. Attention: one number, or n_K and n_V. ReLU networks: one number, or
        one per target layer. Transformers: one number, n_MHA and n_FC, or a list of these two per block.
    per_row: hidden units for each row of the side of a product that is structured (Lemma 7's n′)
    epsilon: the output error to certify; the narrowest source that reaches it is searched for
    radius: the certificate holds for tokens with ‖x_i‖ ≤ radius; None means √d, the least that the paper's
        α ≥ √d₁ allows
    certificate: whether to compute one (a build is faster without)
    arithmetic: the arithmetic that the certificate holds for: "float32" is `Ticket.network()`, "float64" is
        `Ticket.network(dtype=torch.float64)`, "exact" the network as mathematics
    floors: in networks with norms, for each norm the least length of what it reads (see nets.certify)
    seed: of the random source
    assignment: "balanced" gives units to rows where they are strong, then moves them to rows that still fail,
        and structures the smaller side of each product; "paper" is Lemma 7: contiguous groups, on the input side;
        "one-sign" uses of these groups only the units whose weight on that side is positive
    init: how the source is drawn. "theory" is section 3.1: U[±n_K^¼] for query and key, U[±1] otherwise, as the
        proof needs; "inverse" is section 4.1: U[±n_K^-¼] for query and key; "xavier" is appendix B.1:
        U[±√(6 / (rows + columns))]. With the last two the query-key product is out of reach as n grows.
    progress: called with the name of each finished product
    """

    width: int | Sequence[int] | Sequence[Sequence[int]] | None = None
    per_row: int | None = None
    epsilon: Real | None = None
    radius: Real | None = None
    certificate: bool = True
    arithmetic: Arithmetic = "float32"
    floors: Sequence[float] | None = None
    seed: int = 0
    assignment: NetworkAssignment = "balanced"
    init: Init = "theory"
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        check_choices(self, assignment=NetworkAssignment, init=Init)
        unit_of(self.arithmetic)
        if self.radius is not None:
            checks.positive(radius=self.radius)
        if not self.certificate and self.epsilon is not None:
            raise StrongTicketError(
                "certificate=False with epsilon: the width is found by the certificate",
                hint="Leave the certificate on, or give a width.",
            )

    @classmethod
    def of(
        cls, options: BuildOptions | None, changes: dict[str, Any], unused: tuple[str, ...] = ()
    ) -> BuildOptions:
        """`options` (by default all defaults) with some fields changed (changes); unused: fields this builder lacks."""
        check_names(cls, changes, unused)
        found = replace(options or cls(), **changes)
        for name in unused:
            if getattr(found, name) != getattr(cls(), name):
                raise StrongTicketError(f"{name} is not an option of this kind of network")
        return found


def check_choices(options: object, **choices: Any) -> None:
    """Raise unless each named field of the options has one of the values of its Literal."""
    for name, literal in choices.items():
        if getattr(options, name) not in get_args(literal):
            raise StrongTicketError(
                f"{name}={getattr(options, name)!r} is unknown: expected one of {', '.join(get_args(literal))}"
            )


def check_names(cls: Any, changes: dict[str, Any], unused: tuple[str, ...] = ()) -> None:
    """Raise unless every change is of a field of the dataclass `cls`, other than the unused ones."""
    known = {field.name for field in fields(cls)} - set(unused)
    if unknown := changes.keys() - known:
        raise StrongTicketError(
            f"unknown build option {min(unknown)!r}: expected some of {', '.join(sorted(known))}"
        )
