"""What every build shares: the random source it prunes, the target it reads, the ticket it leaves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float32

from strongticket import checks, nets
from strongticket.build.product import ProductBuild, build_product
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.nets._certify import certify
from strongticket.seeds import Law, Uniform, draw
from strongticket.ticket import Ticket

Assignment = Literal["balanced", "paper"]
Init = Literal["theory", "inverse", "xavier"]


@dataclass(frozen=True)
class Recipe:
    """How the source is drawn and pruned.

    init: "theory" is section 3.1, U[±n_K^¼] for query and key and U[±1] for all else, what the proof needs;
    "inverse" is section 4.1, U[±n_K^-¼] for query and key; "xavier" is appendix B.1,
    U[±√(6 / (rows + columns))] for each matrix. With the last two the query-key product is out of reach as
    n grows.
    """

    seed: int = 0
    assignment: Assignment = "balanced"
    init: Init = "theory"
    backend: str = "auto"
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        for name, given, known in (
            ("assignment", self.assignment, get_args(Assignment)),
            ("init", self.init, get_args(Init)),
        ):
            if given not in known:
                raise StrongTicketError(f"{name}={given!r} is unknown: expected one of {', '.join(known)}")

    def law(self, rows: int, columns: int, *, key_width: int | None = None) -> Uniform:
        """Of a rows × columns matrix; key_width: n_K if it is a query or key matrix."""
        if self.init == "xavier":
            return Uniform((6 / (rows + columns)) ** 0.5)
        if key_width is None:
            return Uniform(1.0)
        return Uniform(key_width ** (0.25 if self.init == "theory" else -0.25))

    def product(
        self,
        what: str,
        target: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        *,
        scale: float = 1.0,
        owner: np.ndarray | None = None,
    ) -> ProductBuild:
        """`build_product`, its errors naming what was built; owner: the row of each unit, if decided."""
        assignment = self.assignment if owner is None else owner
        try:
            built = build_product(
                target, left, right, scale=scale, assignment=assignment, backend=self.backend
            )
        except StrongTicketError as error:
            raise type(error)(f"{what}: {error}") from error
        if self.progress:
            self.progress(what)
        return built


@dataclass
class Part:
    """Pruned tensors by state_dict name, and the largest entry's error of every product made of them."""

    masks: dict[str, np.ndarray] = field(default_factory=dict)
    laws: dict[str, Law] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    def draw(self, recipe: Recipe, name: str, shape: tuple[int, ...], law: Law) -> Float32[np.ndarray, "..."]:
        """The tensor's random weights; all of them start pruned."""
        self.laws[name] = law
        self.masks[name] = np.zeros(shape, bool)
        return draw(recipe.seed, name, shape, law)

    def add(self, other: "Part") -> None:
        self.masks |= other.masks
        self.laws |= other.laws
        self.errors |= other.errors


def checked_target(target: Any, classes: tuple[Any, ...]) -> Any:
    """A float64 copy of the target, once its class and its numbers are seen to be right."""
    if not isinstance(target, classes):
        names = " or ".join(cls.__name__ for cls in classes)
        raise StrongTicketError(
            f"target is a {type(target).__name__}: expected strongticket.nets' {names}",
            hint="Copy the weights into one, or use the builder for its kind.",
        )
    for name, tensor in target.state_dict().items():
        if not tensor.is_floating_point():
            raise StrongTicketError(
                f"target's {name} has dtype {tensor.dtype}: expected floating point",
                hint="Convert it with .float().",
            )
        bad = (~torch.isfinite(tensor)).nonzero()
        if len(bad):
            index = bad[0].tolist()
            raise StrongTicketError(
                f"target's {name}{index} is {tensor[tuple(index)].item()}: expected finite numbers",
                hint="Mend the target.",
            )
    copy = nets.make(target.kind, target.settings()).double()
    try:
        copy.load_state_dict(target.state_dict())
    except RuntimeError as error:
        raise StrongTicketError(
            f"target's tensors do not have the shapes of its settings: {error}"
        ) from error
    return copy.requires_grad_(False)


def finish(
    target: Any,
    settings: dict[str, Any],
    part: Part,
    recipe: Recipe,
    certificate: bool,
    radius: Real | None,
    **metadata: Any,
) -> Ticket:
    """The ticket, its certificate (if wanted) computed from the weights that it really gives."""
    ticket = Ticket(
        seed=recipe.seed,
        kind=target.kind,
        settings=settings,
        laws=part.laws,
        masks=part.masks,
        metadata=dict(assignment=recipe.assignment, init=recipe.init, **metadata),
    )
    if not certificate:
        return ticket
    bounds = certify(target, ticket.network(), radius).to_dict()
    return ticket.with_certificate(bounds | dict(errors=part.errors))


def check_certificate(certificate: bool, epsilon: Real | None, radius: Real | None) -> None:
    """Before a long build: what its certificate needs."""
    if radius is not None:
        checks.positive(radius=radius)
    if not certificate and epsilon is not None:
        raise StrongTicketError(
            "certificate=False with epsilon: the width is found by the certificate",
            hint="Leave it on, or ask by width.",
        )


def certified(ticket: Ticket) -> float:
    """The error that the ticket's certificate allows."""
    bound = (ticket.certificate or {}).get("bound")
    return float("inf") if bound is None else float(bound)
