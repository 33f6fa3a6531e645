"""What a build makes of a model: which tensors, from which numbers, and what the ticket says about its network."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import nn

from strongticket.builders.options import ModelOptions
from strongticket.choice import matrix_shape
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, json_roundtrip
from strongticket.models.attention import AttentionMap, product_attention_of
from strongticket.models.inputs import Batch, batches
from strongticket.models.loading import OpenedModel, StoredTensors
from strongticket.models.rebuilding import Architecture, describe, trained_buffers
from strongticket.models.tensors import (
    check_trained,
    chosen,
    exact_checksum,
    matrix_rows,
    parameters,
    persistent_buffers,
    state_checksum,
    tensor_named,
    to_stored,
)
from strongticket.models.tokenizers import FromFiles
from strongticket.ticket import packed_size


@dataclass(frozen=True)
class Targets:
    """What a build makes of a model.

    Attributes:
        model: with its numbers, or on the meta device if they are read from files.
        architecture: what rebuilds it, None for a class of the user's own.
        names: tensors that are made on their own.
        products: attention layers that are made as Theorem 3 has it.
        base: checksum of the trained model, None if nothing of it is left.
        rebuilt: checksums of the whole-number buffers that the user's class makes.
        stored: where the numbers are if not in the model.
        tokenizer: file name -> text.
    """

    model: nn.Module
    architecture: Architecture | None
    names: tuple[str, ...]
    products: tuple[AttentionMap, ...]
    base: str | None
    rebuilt: dict[str, str]
    stored: StoredTensors | None
    tokenizer: dict[str, str]
    _last: dict[str, np.ndarray] = field(default_factory=dict)  # the tensor that was read whole last

    @classmethod
    def open(cls, target: nn.Module | str | Path, options: ModelOptions) -> "Targets":
        """Open a model. Everything that can be refused without its numbers is refused here, before any work.

        The numbers of a folder stay in its files until they are needed, unless the model has to run.
        """
        stored, tokenizer = None, {}
        if isinstance(target, nn.Module):
            model = target
        else:
            opened = OpenedModel(str(target))
            runs = options.loss is not None or options.calibrate is not None
            if not (runs or options.only or options.attention == "products"):
                stored = opened.stored()
            model = opened.load() if stored is None else stored.empty
            tokenizer = opened.folder.tokenizer_files()
        architecture = describe(model)
        buffers = [] if stored else trained_buffers(model, architecture)
        ties = parameters(model) | {name: [name] for name in buffers}
        layers = product_attention_of(model) if options.attention == "products" else []
        whole = {name: ties[name] for name in ties if not any(layer.covers(name) for layer in layers)}
        whole |= {layer.path: [layer.path] for layer in layers}
        picked = chosen(whole, options.only)
        products = tuple(layer for layer in layers if layer.path in picked)
        names = tuple(name for name in ties if name in picked and tensor_named(model, name).numel())
        for name in () if stored else ties:
            if name in names or any(layer.covers(name) for layer in products):
                check_trained(name, tensor_named(model, name))
        exact = {} if architecture is not None else {
            name: exact_checksum(buffer)
            for name, buffer in persistent_buffers(model).items()
            if not buffer.is_floating_point()
        }  # fmt: skip
        base = None if len(picked) == len(whole) else state_checksum(model.state_dict())
        if not names and not products:
            raise StrongTicketError(f"the {type(model).__name__} has no numbers to build a ticket of")
        return cls(model, architecture, names, products, base, exact, stored, tokenizer)

    def batches(self, text: Path) -> list[Batch]:
        """What the model reads of a text file."""
        tokenizer = FromFiles(self.tokenizer).inner if self.tokenizer else None
        return batches(self.model, text, tokenizer)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor and product that is made."""
        shapes = {name: tuple(tensor_named(self.model, name).shape) for name in self.names}
        for layer in self.products:
            shapes |= layer.products()
        return shapes

    @property
    def numbers(self) -> int:
        """How many are made."""
        return sum(map(math.prod, self.shapes().values()))

    @property
    def tokenizer_bytes(self) -> int:
        """The tokenizer's share of the file."""
        return packed_size(self.tokenizer) if self.tokenizer else 0

    def settings(self, options: ModelOptions) -> JsonObject:
        """What the ticket says about its network; see BuiltModel."""
        known = self.architecture or Architecture(type(self.model).__name__, {})
        return json_roundtrip("settings", {
            "library": None if self.architecture is None else "transformers",
            "class": known.name,
            "config": known.config,
            "options": known.options,
            "attention": options.attention,
            "base": self.base,
            "by": options.by,
            "per_row": options.per_row if options.by == "subset" else None,
            "tensors": self.shapes(),
            "rebuilt": self.rebuilt,
        })  # fmt: skip

    def read(self, name: str, rows: range | None = None, *, transposed: bool = False) -> np.ndarray:
        """Rows of a tensor's matrix, or of the transposed one, as a ticket stores it: float32."""
        tensor = tensor_named(self.model, name)
        if self.stored and rows and not transposed and matrix_shape(tuple(tensor.shape)) == tensor.shape:
            return self.stored.read(name, rows)
        if name not in self._last:
            self._last.clear()
            self._last[name] = self.stored.read(name) if self.stored else to_stored(name, tensor)
        return matrix_rows(self._last[name], rows, transposed)

    def matrices(self) -> Iterator[tuple[str, np.ndarray]]:
        """Every tensor and product as a matrix, one after the other, computed lazily."""
        for name in self.names:
            yield name, self.read(name)
        for layer in self.products:
            for name, target in layer.targets(self.model):
                yield f"{layer.path}.{name}", target.reshape(matrix_shape(target.shape))
