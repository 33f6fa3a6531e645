"""What a build makes of a model: which tensors, from which numbers, and what the ticket says about its network."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.files import json_roundtrip
from strongticket.models.rebuilding import Architecture, describe, trained_buffers
from strongticket.models.tensors import (
    check_trained,
    chosen,
    exact_checksum,
    matrix_shape,
    parameters,
    persistent_buffers,
    state_checksum,
    tensor_named,
    to_matrix,
)
from strongticket.pretrained.calibration import linear_weights
from strongticket.pretrained.families import AttentionMap, attention_of
from strongticket.pretrained.options import ModelOptions
from strongticket.pretrained.pieces import Layout, rows_apart
from strongticket.pretrained.quality import Patch, Quality, middle, spread
from strongticket.pretrained.source import Source, SourceTensor


@dataclass(frozen=True)
class Targets:
    """What a build makes of a model.

    names: tensors that are made on their own; products: attention layers that are made as Theorem 3 has it
    outputs: of the linear weights among them that are calibrated, the axes of their outputs
    base: checksum of the trained model, None if nothing of it is left
    """

    model: nn.Module
    attention: str
    architecture: Architecture | None
    names: tuple[str, ...]
    products: tuple[AttentionMap, ...]
    outputs: dict[str, int]
    base: str | None
    rebuilt: dict[str, str]

    @classmethod
    def of(cls, model: nn.Module, options: ModelOptions) -> "Targets":
        """Everything that can be refused is refused here, before any work.

        model: on the meta device, it has shapes to plan with and no numbers to check
        """
        has_numbers = not any(tensor.is_meta for tensor in model.parameters())
        architecture = describe(model)
        buffers = trained_buffers(model, architecture if has_numbers else None)
        ties = parameters(model) | {name: [name] for name in buffers}
        layers = attention_of(model) if options.attention == "products" else []
        whole = {name: ties[name] for name in ties if not any(layer.covers(name) for layer in layers)}
        whole |= {layer.path: [layer.path] for layer in layers}
        picked = chosen(whole, options.only)
        products = tuple(layer for layer in layers if layer.path in picked)
        names = tuple(name for name in ties if name in picked and tensor_named(model, name).numel())
        for name in ties if has_numbers else ():
            if name in names or any(layer.covers(name) for layer in products):
                check_trained(name, tensor_named(model, name))
        exact = {} if architecture is not None or not has_numbers else {
            name: exact_checksum(buffer)
            for name, buffer in persistent_buffers(model).items()
            if not buffer.is_floating_point()
        }  # fmt: skip
        linear = linear_weights(model) if options.calibrate is not None else {}
        outputs = {name: linear[name] for name in names if name in linear}
        if options.calibrate is not None and not outputs:
            raise StrongTicketError(
                f"none of the chosen tensors of the {type(model).__name__} belongs to a linear layer",
                hint="Leave calibrate out.",
            )
        base = (
            None if len(picked) == len(whole) else state_checksum(model.state_dict()) if has_numbers else ""
        )
        return cls(model, options.attention, architecture, names, products, outputs, base, exact)

    def settings(self, quality: Quality) -> dict[str, Any]:
        """What the ticket says about its network."""
        shapes = self.shapes()
        of_tensor = {name: self._layout(name, quality.layout) for name in shapes}
        layouts = list(dict.fromkeys([quality.layout, *of_tensor.values()]))
        tensors = {name: [layouts.index(of_tensor[name]), shape] for name, shape in shapes.items()}
        known = self.architecture or Architecture(type(self.model).__name__, {})
        return json_roundtrip("settings", {
            "library": None if self.architecture is None else "transformers",
            "class": known.name,
            "config": known.config,
            "options": known.options,
            "attention": self.attention,
            "base": self.base,
            "layouts": [layout.to_json() for layout in layouts],
            "tensors": tensors,
            "rebuilt": self.rebuilt,
        })  # fmt: skip

    def _layout(self, name: str, layout: Layout) -> Layout:
        """Layout of one tensor. Errors are fed from input to input, so the cut is between independent outputs."""
        layout = replace(layout, axis=self.outputs.get(name))
        if name not in self.names or tensor_named(self.model, name).is_meta:
            return layout
        matrix = to_matrix(name, tensor_named(self.model, name))
        structured = matrix.T if layout.transposed(*matrix.shape) else matrix
        return replace(layout, apart=rows_apart(structured, layout))

    def targets(self, source: Source) -> Iterator[tuple[SourceTensor, np.ndarray]]:
        """(tensor, its matrix) one after the other, computed lazily."""
        for name in self.names:
            yield source.tensors[name], to_matrix(name, tensor_named(self.model, name))
        for layer in self.products:
            for product, target in layer.targets(self.model):
                yield source.tensors[product.name], target

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor and product that is made."""
        shapes = {name: tuple(tensor_named(self.model, name).shape) for name in self.names}
        return shapes | {p.name: (p.rows, p.columns) for layer in self.products for p in layer.products()}

    def sample(self) -> list[Patch]:
        """Patches that stand for all matrices of the model, also if only some are made: so runs share their pieces."""
        others = {} if self.products else parameters(self.model)
        names = [*self.names, *(name for name in others if name not in self.names and self._usable(name))]
        shapes = {name: tuple(tensor_named(self.model, name).shape) for name in sorted(names)}
        patches = []
        for name, numbers in spread(shapes).items():
            matrix = to_matrix(name, tensor_named(self.model, name))
            patches.append(Patch(matrix[middle(matrix.shape)], max(matrix_shape(shapes[name])), numbers))
        return patches

    def _usable(self, name: str) -> bool:
        """A tensor that stays trained need not be one that could be made."""
        tensor = tensor_named(self.model, name)
        return bool(tensor.numel()) and tensor.is_floating_point() and bool(tensor.isfinite().all())
