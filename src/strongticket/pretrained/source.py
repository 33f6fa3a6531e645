"""The random network of a pretrained ticket: its tensors from the settings, its model from the masks."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from strongticket import limits
from strongticket.cores import cores
from strongticket.errors import StrongTicketError, TicketError
from strongticket.models.loading import load_model
from strongticket.models.rebuilding import Architecture
from strongticket.models.tensors import (
    exact_checksum,
    fill,
    from_matrix,
    matrix_shape,
    matrix_type,
    parameters,
    persistent_buffers,
    state_checksum,
    tensor_named,
)
from strongticket.pretrained.families import AttentionMap, Product, attention_of
from strongticket.pretrained.modules import Faithful, Matrix, Merged, PrunedPiece, run_factors
from strongticket.pretrained.pieces.cut import Layout, Piece, cut
from strongticket.pretrained.pieces.fold import fold
from strongticket.ticket import Form, Ticket

FIELDS = {"library", "class", "config", "options", "attention", "base", "layouts", "tensors", "rebuilt"}
Item = TypeVar("Item")
_LARGEST = 1 << 36  # numbers of one tensor
_ROWS = 1 << 26  # rows of all matrices, on their sides with the structure


@dataclass(frozen=True)
class SourceTensor:
    """A tensor of the model, or a product of its attention, and the pieces that make it."""

    name: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    @property
    def matrix(self) -> tuple[int, int]:
        return matrix_shape(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Source:
    """settings -> names and shapes of the random tensors, and the network itself."""

    def __init__(self, settings: dict[str, Any]) -> None:
        if settings.keys() != FIELDS:
            raise StrongTicketError(f"settings must have exactly {', '.join(sorted(FIELDS))}")
        self.settings = settings
        layouts = [Layout(**fields) for fields in settings["layouts"]]
        shapes = {
            name: (layouts[i], _checked(name, shape)) for name, (i, shape) in settings["tensors"].items()
        }
        if sum(_side(layout, shape) for layout, shape in shapes.values()) > limits.factor() * _ROWS:
            raise limits.exceeded(f"the tensors have more than {_ROWS:,} rows, which is the limit")
        self.tensors = {
            name: SourceTensor(name, shape, tuple(cut(name, *matrix_shape(shape), layout)))
            for name, (layout, shape) in shapes.items()
        }

    @property
    def whole(self) -> bool:
        """Whether no trained number is left."""
        return self.settings["base"] is None

    @property
    def pieces(self) -> list[Piece]:
        return [piece for tensor in self.tensors.values() for piece in tensor.pieces]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: shape for piece in self.pieces for name, shape in piece.shapes.items()}

    def folded(self, name: str, ticket: Ticket) -> Float[np.ndarray, "rows columns"]:
        """The matrix of that name, its two factors multiplied."""
        return dict(self._matrices([name], ticket))[name]

    def state(self, ticket: Ticket) -> Iterator[tuple[str, np.ndarray]]:
        """The tensors of the model that the ticket makes; products of attention are not tensors of the model."""
        for name, matrix in self._matrices(self._tensors_of_model(), ticket):
            yield name, from_matrix(name, matrix, self.tensors[name].shape)

    def _tensors_of_model(self) -> list[str]:
        """All but the products that replace attention layers: their names begin with the layer's path."""
        query_key = ".query_key." if self.settings["attention"] == "products" else "\n"
        layers = tuple(f"{name.partition(query_key)[0]}." for name in self.tensors if query_key in name)
        return [name for name in self.tensors if not name.startswith(layers)]

    def _matrices(
        self, names: Iterable[str], ticket: Ticket
    ) -> Iterator[tuple[str, Float[np.ndarray, "rows columns"]]]:
        """Matrices by name, one after the other; pieces of the next matrix are prefetched."""
        tensors = [self.tensors[name] for name in names]
        pieces = [piece for tensor in tensors for piece in tensor.pieces]
        with ThreadPoolExecutor(cores()) as pool:
            blocks = _in_order(pool, lambda piece: fold(piece, ticket), pieces, 2 * cores())
            for tensor in tensors:
                whole = np.zeros(tensor.matrix, matrix_type(tensor.name))
                for piece in tensor.pieces:
                    whole[piece.place] = next(blocks)
                yield tensor.name, whole

    def network(
        self,
        ticket: Ticket,
        *,
        module: nn.Module | None = None,
        base: nn.Module | str | Path | None = None,
        form: Form = "merged",
    ) -> nn.Module:
        """The model with its own parameters, ready to run: float32, evaluation mode.

        module: a fresh one of the user's own class, which is filled
        base: the trained model (or where it is) that provides the rest of a partial ticket's network
        form: "factors" runs the pruned random factors themselves (slow), instead of their merged products
        """
        model, faithful = self._start(module, base), form == "factors"
        products = self._attention(model)
        self._check_tensors(model, products)
        # The names of each tensor are found before attention modules leave the model.
        ties = parameters(model)
        for layer in products:
            layer.install(model, partial(self._product, ticket, faithful))
        for name in self._tensors_of_model() if faithful else ():
            restore = partial(from_matrix, name, shape=self.tensors[name].shape)
            run_factors(model, ties.get(name, [name]), self._factors(ticket, name), restore)
        if (products or faithful) and hasattr(model, "save_pretrained"):
            model.save_pretrained = partial(_refuse_to_save, type(model).__name__)  # type: ignore[assignment]
        return fill(model, () if faithful else ticket.state())

    def check_target(self, model: nn.Module) -> None:
        """Raise unless the ticket may have been built from this model, judging by its class and sizes."""
        if type(model).__name__ != self.settings["class"]:
            raise StrongTicketError(
                f"the model is a {type(model).__name__}, the ticket belongs to a {self.settings['class']}",
                hint="Give the model that it was built from.",
            )
        self._check_tensors(model, self._attention(model))

    def _start(self, module: nn.Module | None, base: nn.Module | str | Path | None) -> nn.Module:
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
        name = self.settings["class"]
        if self.settings["library"] is None:
            raise StrongTicketError(
                f"the ticket was built from a {name}, which is not a class of transformers",
                hint=f"Give one to be filled: ticket.network({name}(...)).",
            )
        architecture = Architecture(name, self.settings["config"], self.settings["options"])
        with limits.at_most(limits.tensors(len(self.tensors))):
            empty = architecture.empty()
            self._check_tensors(empty, self._attention(empty))
        return self._eager(architecture.make())

    def _eager(self, model: nn.Module) -> nn.Module:
        """The model with masks as numbers to add, which every SourceAttention understands."""
        if self.settings["attention"] == "products" and hasattr(model, "set_attn_implementation"):
            set_attention: Any = model.set_attn_implementation
            set_attention("eager")
        return model

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
        return self._eager(deepcopy(model))

    def _attention(self, model: nn.Module) -> list[AttentionMap]:
        """The attention layers that are made of products."""
        if self.settings["attention"] != "products":
            return []
        return [layer for layer in attention_of(model) if layer.products()[0].name in self.tensors]

    def _check_tensors(self, model: nn.Module, products: list[AttentionMap]) -> None:
        """Raise unless the model's tensors are those of the ticket, and a whole ticket has all of them."""
        found: dict[str, tuple[int, ...]] = {
            name: tuple(tensor_named(model, name).shape)
            for name in [*parameters(model), *persistent_buffers(model)]
            if not any(layer.covers(name) for layer in products)
        }
        for product in (product for layer in products for product in layer.products()):
            found[product.name] = (product.rows, product.columns)
        for name, tensor in self.tensors.items():
            if found.get(name) != tensor.shape:
                raise TicketError(
                    f"tensor {name!r}: the ticket has shape {tensor.shape}, the {type(model).__name__} "
                    f"{found.get(name)} (None: no such tensor)"
                )
        buffers = dict(model.named_buffers())
        for name, shape in found.items():
            size: int = math.prod(shape)
            if self.whole and name not in self.tensors and name not in buffers and size:
                raise TicketError(
                    f"the parameter {name!r} of the {type(model).__name__} is not in the ticket"
                )

    def _check_rebuilt(self, module: nn.Module) -> None:
        """Raise unless the whole numbers that the user's class makes are those that the ticket was built from."""
        buffers = dict(module.named_buffers())
        for name, wanted in self.settings["rebuilt"].items():
            if name not in buffers or exact_checksum(buffers[name]) != wanted:
                raise TicketError(
                    f"the buffer {name!r} of the {type(module).__name__} is not the one that the ticket was built from",
                    hint="Make the module with the same arguments.",
                )

    def _product(self, ticket: Ticket, faithful: bool, product: Product) -> Matrix:
        if faithful:
            return self._factors(ticket, product.name)
        return Merged(torch.from_numpy(self.folded(product.name, ticket)))

    def _factors(self, ticket: Ticket, name: str) -> Faithful:
        tensor = self.tensors[name]
        pieces = [
            PrunedPiece(
                ticket.seed,
                piece,
                {factor: ticket.laws[factor] for factor in piece.shapes},
                {factor: ticket.masks[factor] for factor in piece.shapes},
            )
            for piece in tensor.pieces
        ]
        return Faithful(pieces, *tensor.matrix)


def _refuse_to_save(name: str, *_: Any, **__: Any) -> None:
    """Refuse what would write a folder that loads with random numbers in the place of most weights."""
    raise StrongTicketError(
        f"this network does not have the parameters of a {name}: it runs products or factors in their place",
        hint="Save the ticket instead (Ticket.save), or build with attention='linear' and take network().",
    )


def _in_order(
    pool: Executor, work: Callable[[Item], np.ndarray], items: Iterable[Item], ahead: int
) -> Iterator[np.ndarray]:
    """What `work` makes of each item, in order; at most `ahead` items are begun before the first is taken."""
    begun: deque[Future[np.ndarray]] = deque()
    for item in items:
        begun.append(pool.submit(work, item))
        if len(begun) > ahead:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def _side(layout: Layout, shape: tuple[int, ...]) -> int:
    """Rows on the side with the structure."""
    rows, columns = matrix_shape(shape)
    return columns if layout.transposed(rows, columns) else rows


def _checked(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
        raise StrongTicketError(f"tensor {name!r}: shape must be a list of positive sizes, got {shape!r}")
    if math.prod(shape) > limits.factor() * _LARGEST:
        raise limits.exceeded(f"tensor {name!r} of shape {shape} has more than {_LARGEST:,} numbers")
    return tuple(shape)
