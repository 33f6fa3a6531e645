"""What every build shares: the random source it prunes, the target it reads, the ticket it leaves."""

from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Float32

from strongticket import nets
from strongticket.builders.options import BuildOptions
from strongticket.builders.product import ProductBuild, build_product
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.seeds import Law, Uniform, draw
from strongticket.ticket import Ticket

Target = TypeVar("Target", bound=torch.nn.Module)


@dataclass(frozen=True)
class Builder:
    """Draws and prunes a source as `options` say."""

    options: BuildOptions

    def law(self, rows: int, columns: int, *, key_width: int | None = None) -> Uniform:
        """Law of a rows × columns matrix; key_width: n_K if it is a query or key matrix."""
        init = self.options.init
        if init == "xavier":
            return Uniform((6 / (rows + columns)) ** 0.5)
        if key_width is None:
            return Uniform(1.0)
        return Uniform(key_width ** (0.25 if init == "theory" else -0.25))

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
        """`build_product`, whose errors then name what was being built; owner: the row of each unit, if decided."""
        assignment = self.options.assignment if owner is None else owner
        try:
            built = build_product(target, left, right, scale=scale, assignment=assignment)
        except StrongTicketError as error:
            raise type(error)(f"{what}: {error}") from error
        if self.options.progress:
            self.options.progress(what)
        return built

    def left_structured(self, rows: int, columns: int) -> bool:
        """Whether units keep one entry of the left factor: always in the paper, else where that side is smaller."""
        return self.options.assignment != "balanced" or rows <= columns

    def either_side(
        self,
        what: str,
        target: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        *,
        left_structured: bool,
        scale: float = 1.0,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masks of left (rows, units) and right (columns, units), and the product (rows, columns) they make.

        A product's transpose is a product with its factors exchanged, so either may carry the structure.
        """
        if left_structured:
            built = self.product(what, target, left, right, scale=scale)
            return built.left_mask, built.right_mask, built.product
        built = self.product(what, target.T, right, left, scale=scale)
        return built.right_mask, built.left_mask, built.product.T


@dataclass
class Part:
    """Pruned tensors by state_dict name, and the largest entry's error of every product made of them."""

    masks: dict[str, np.ndarray] = field(default_factory=dict)
    laws: dict[str, Law] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    def draw(
        self, builder: Builder, name: str, shape: tuple[int, ...], law: Law
    ) -> Float32[np.ndarray, "..."]:
        """The tensor's random weights; all of them start pruned."""
        self.laws[name] = law
        self.masks[name] = np.zeros(shape, bool)
        return draw(builder.options.seed, name, shape, law)

    def add(self, other: "Part") -> None:
        self.masks |= other.masks
        self.laws |= other.laws
        self.errors |= other.errors


def checked_target(target: Any, classes: tuple[type[Target], ...]) -> Target:
    """A float64 copy of the target, after its class and its numbers have been checked."""
    if not isinstance(target, classes):
        names = " or ".join(cls.__name__ for cls in classes)
        raise StrongTicketError(
            f"target is a {type(target).__name__}: expected strongticket.nets' {names}",
            hint="MultiHeadAttention.from_torch copies torch's own layer; build_ticket accepts any torch module.",
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
                hint="Replace these weights in the target.",
            )
    described: Any = target
    copy = cast(Target, nets.make(described.kind, described.settings()).double())
    try:
        copy.load_state_dict(target.state_dict())
    except RuntimeError as error:
        raise StrongTicketError(
            f"target's tensors do not have the shapes of its settings: {error}"
        ) from error
    return copy.requires_grad_(False)


def finish(target: Any, settings: JsonObject, part: Part, options: BuildOptions) -> Ticket:
    """The ticket, its certificate (if wanted) computed from the weights that it really gives."""
    ticket = Ticket(
        seed=options.seed,
        kind=target.kind,
        settings=settings,
        laws=part.laws,
        masks=part.masks,
        metadata=dict(assignment=options.assignment, init=options.init),
    )
    if not options.certificate:
        return ticket
    found = nets.certify(
        target, ticket.network(), options.radius, arithmetic=options.arithmetic, floors=options.floors
    )
    return ticket.with_certificate(found.to_dict() | dict(errors=part.errors))


def certified(ticket: Ticket) -> float:
    """The error that the ticket's certificate allows."""
    bound = (ticket.certificate or {}).get("bound")
    return float("inf") if bound is None else float(bound)
