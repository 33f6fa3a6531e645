"""What linear maps read on a text: which errors of a weight show in their outputs, and which cancel."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from strongticket.models.inputs import Batch
from strongticket.models.tensors import matrix_shape, parameters, tensor_named
from strongticket.pretrained.pieces import FEW, Takeover

HELD = 1 << 30  # bytes of Gram matrices gathered at once; a larger model runs on the text several times


class Calibration:
    """Which errors later columns of a model's linear weights take over; gathered for some weights at a time.

    outputs: name of a weight -> its axis of outputs, in the order in which takeovers are asked for
    """

    def __init__(self, model: nn.Module, outputs: dict[str, int], batches: list[Batch]) -> None:
        self._model, self._outputs, self._batches = model, outputs, batches
        self._grams: dict[str, np.ndarray] = {}

    def takeover(self, name: str) -> Takeover | None:
        """None for what is not the weight of a linear layer, or not used on the text."""
        if name not in self._outputs:
            return None
        if name not in self._grams:
            self._grams = grams(self._model, self._group(name), self._batches)
        with _one_thread():
            return Takeover.of(self._grams[name])

    def _group(self, first: str) -> dict[str, int]:
        """This weight and as many of the following as fit in memory."""
        group: dict[str, int] = {}
        names, held = list(self._outputs), 0
        for name in names[names.index(first) :]:
            inputs = tensor_named(self._model, name).shape[1 - self._outputs[name]]
            held += 8 * inputs**2
            if group and held > HELD:
                break
            group[name] = self._outputs[name]
        return group


def linear_weights(model: nn.Module) -> dict[str, int]:
    """Weights of linear layers that nothing else reads, and their axes of outputs: 0 for nn.Linear.

    A tied embedding is left out: as an embedding, every error of it shows.
    """
    ties, found = parameters(model), {}
    for path, module in model.named_modules():
        axis = _output_axis(module)
        name = f"{path}.weight" if path else "weight"
        if axis is None or len(ties.get(name, ())) != 1:
            continue
        if min(matrix_shape(tuple(tensor_named(model, name).shape))) > FEW:
            found[name] = axis
    return found


def grams(
    model: nn.Module, weights: dict[str, int], batches: list[Batch]
) -> dict[str, Float64[np.ndarray, "inputs inputs"]]:
    """Mean of x xᵀ over all inputs x that each linear layer reads; padding is left out."""
    sums = {
        name: torch.zeros(2 * (tensor_named(model, name).shape[1 - axis],), dtype=torch.float64)
        for name, axis in weights.items()
    }
    counts = dict.fromkeys(weights, 0)
    real: Tensor | None = None

    def add(name: str, x: Tensor) -> None:
        x = x[real] if real is not None and x.shape[:-1] == real.shape else x.reshape(-1, x.shape[-1])
        sums[name] += (x.T @ x).double()
        counts[name] += len(x)

    def hook(name: str) -> Any:
        return model.get_submodule(name.rpartition(".")[0]).register_forward_pre_hook(
            lambda module, inputs: add(name, inputs[0])
        )

    hooks = [hook(name) for name in weights]
    try:
        with torch.no_grad(), _one_thread():
            for batch in batches:
                real = batch.real
                model(**batch.inputs)
    finally:
        for registered in hooks:
            registered.remove()
    return {name: (total / max(counts[name], 1)).numpy() for name, total in sums.items()}


def _output_axis(module: nn.Module) -> int | None:
    kind = type(module)
    if kind is nn.Linear:
        return 0
    # By name, as transformers is optional: its Conv1D is a Linear with a transposed weight.
    return 1 if kind.__name__ == "Conv1D" and kind.__module__ == "transformers.pytorch_utils" else None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in a fixed order, so that the masks do not depend on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
