"""The random network of a pretrained ticket: its tensors from the settings, its model from the masks."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn

from strongticket.errors import StrongTicketError, TicketError
from strongticket.pretrained import families
from strongticket.pretrained.maps import Map, Product
from strongticket.pretrained.modules import Faithful, Matrix, Merged, Recipe
from strongticket.pretrained.pieces import Layout, fold
from strongticket.pretrained.target import check_covered, checksum, chosen_maps, load_target, skeleton
from strongticket.ticket import Ticket

FIELDS = {"class", "config", "options", "parts", "layers", "attention", "per_row", "problems", "base"}


class Source:
    """settings -> names and shapes of the random tensors, and the network itself."""

    def __init__(self, settings: dict[str, Any]) -> None:
        if settings.keys() != FIELDS:
            raise StrongTicketError(f"settings must have exactly {', '.join(sorted(FIELDS))}")
        self.settings = settings
        self.layout = Layout(settings["per_row"], settings["problems"])
        with torch.device("meta"):
            self.maps, self.whole = self._chosen(skeleton(settings))
        if self.whole != (settings["base"] is None):
            raise StrongTicketError(
                "settings must name a base model exactly if parts of the model are trained"
            )

    def _chosen(self, model: nn.Module) -> tuple[list[Map], bool]:
        family = families.family_of(self.settings["class"])
        return chosen_maps(family, model, *(self.settings[name] for name in ("parts", "layers", "attention")))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for product in (product for each in self.maps for product in each.products()):
            for piece in product.pieces(self.layout):
                shapes |= piece.shapes
        return shapes

    def network(
        self,
        ticket: Ticket,
        *,
        faithful: bool = False,
        base: nn.Module | str | None = None,
        threads: int | None = None,
    ) -> nn.Module:
        """The model with pruned random matrices, ready to run: float32, evaluation mode.

        faithful: apply the random matrices themselves (slow), instead of their folded products
        base: the trained model (or where it is) that provides the rest of a partial ticket's network
        """
        model = self._start(base)
        maps, _ = self._chosen(model)
        if self.whole:
            check_covered(model, maps)
        make = self._faithful(ticket) if faithful else self._merged(ticket, threads)
        for each in maps:
            model = each.install(model, make)
        if hasattr(model, "config"):
            model.config.tie_word_embeddings = False  # the pruned embedding and head are two things
        return model.requires_grad_(False).eval()

    def _start(self, base: nn.Module | str | None) -> Any:
        wanted = self.settings["base"]
        if wanted is None:
            if base is not None:
                raise StrongTicketError("the ticket is whole, it needs no base model: leave base out")
            return skeleton(self.settings)
        if base is None:
            raise StrongTicketError(
                f"the ticket is partial: the rest of its network is the trained model with checksum {wanted}",
                hint="Give that model as base.",
            )
        model: Any = load_target(base) if isinstance(base, str) else base
        if type(model).__name__ != self.settings["class"] or checksum(model) != wanted:
            raise TicketError(
                f"base is a {type(model).__name__} with checksum {checksum(model)}: the ticket belongs to "
                f"the {self.settings['class']} with checksum {wanted}",
                hint="Give that one.",
            )
        model = deepcopy(model)
        if hasattr(model, "set_attn_implementation"):
            model.set_attn_implementation("eager")
        return model

    def _merged(self, ticket: Ticket, threads: int | None) -> Callable[[Product], Matrix]:
        def make(product: Product) -> Matrix:
            return Merged(torch.from_numpy(folded(product, self.layout, ticket, threads)))

        return make

    def _faithful(self, ticket: Ticket) -> Callable[[Product], Matrix]:
        def make(product: Product) -> Matrix:
            recipes, kept = [], []
            for piece in product.pieces(self.layout):
                laws = {name: ticket.laws[name] for name in piece.shapes}
                recipes.append(Recipe(ticket.seed, piece, laws))
                kept.append({name: ticket.masks[name] for name in piece.shapes})
            return Faithful(recipes, kept, product.columns)

        return make


def folded(product: Product, layout: Layout, ticket: Ticket, threads: int | None = None) -> np.ndarray:
    """The product's numbers (rows, columns) float32, summed in float64."""
    whole = np.zeros((product.rows, product.columns), np.float32)
    for piece in product.pieces(layout):
        whole[piece.place] = fold(piece, ticket, threads)
    return whole
