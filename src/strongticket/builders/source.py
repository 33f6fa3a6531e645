"""The random network that a build prunes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float32

from strongticket.builders.product import Assignment, ProductBuild, build_product
from strongticket.errors import StrongTicketError
from strongticket.seeds import Law, Uniform, apply_mask, draw

Init = Literal["theory", "inverse", "xavier"]


@dataclass(frozen=True)
class Size:
    """Units of the products of a source: so many for each row, or so many in all.

    Attributes:
        per_row: for each row of the side of a product where a unit keeps one weight.
        widths: or of each product of the network, in order.
    """

    per_row: int | None
    widths: tuple[int, ...] = ()

    def units(self, product: int, rows: int) -> int:
        """Units of the product with this number; rows: of the side where a unit keeps one weight."""
        return self.widths[product] if self.per_row is None else self.per_row * rows


@dataclass
class Source:
    """Random tensors by name, each drawn once; what is kept of them, and how well their products were built.

    Attributes:
        seed, assignment, init, rank, kept: as in build_network.
        advance: called after each product.
        laws, masks: of the ticket; a tensor starts with nothing kept.
        tensors: the weights, pruned by `prune`.
        errors: the largest error of an entry, for each kind of product.
    """

    seed: int
    assignment: Assignment
    init: Init
    advance: Callable[[], None]
    rank: bool = False
    kept: float | None = None
    laws: dict[str, Law] = field(default_factory=dict)
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def as_paper(self) -> bool:
        """Whether units keep one weight on the input's side always, as in the paper, or on the smaller side."""
        return self.assignment != "balanced"

    def law(self, rows: int, columns: int, *, key_width: int | None = None) -> Uniform:
        """Law of a rows × columns matrix; key_width: n_K if it is a query or key matrix."""
        if self.init == "xavier":
            return Uniform((6 / (rows + columns)) ** 0.5)
        if key_width is None:
            return Uniform(1.0)
        return Uniform(key_width ** (0.25 if self.init == "theory" else -0.25))

    def draw(self, name: str, shape: tuple[int, ...], law: Law) -> Float32[np.ndarray, "..."]:
        """Random weights of a tensor, before any is pruned."""
        self.laws[name] = law
        self.masks[name] = np.zeros(shape, bool)
        self.tensors[name] = draw(self.seed, name, shape, law)
        return self.tensors[name]

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
        """`build_product`; what: its name in errors; owner: the row of each unit, if decided."""
        try:
            assignment = self.assignment if owner is None else owner
            built = build_product(target, left, right, scale=scale, assignment=assignment, kept=self.kept)
        except StrongTicketError as error:
            raise StrongTicketError(f"{what}: {error.what}", error.hint) from error
        self.advance()
        return built

    def prune(self) -> None:
        """Apply the masks to the tensors: what is left is what the ticket regenerates."""
        for name, tensor in self.tensors.items():
            apply_mask(tensor, self.masks[name])
