"""What linear maps read on a text: which errors of a weight show in their outputs, and which cancel."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from strongticket.builders.options import ModelOptions
from strongticket.builders.targets import Targets
from strongticket.choice import Feedback
from strongticket.errors import StrongTicketError
from strongticket.models.inputs import Batch
from strongticket.models.tensors import parameters, tensor_named
from strongticket.work.store import limited_threads

HELD = 1 << 30  # bytes of covariances gathered at once; a larger model runs on the text several times
FEW = 4  # outputs or inputs up to which nothing is fed forward


class Calibration:
    """How errors of a model's linear weights are fed forward; gathered for some weights at a time.

    Args:
        model: that runs on the text.
        outputs: name of a weight -> its axis of outputs, in the order in which feedback is asked for.
        found: the text.
    """

    def __init__(self, model: nn.Module, outputs: dict[str, int], found: list[Batch]) -> None:
        self._model, self._outputs, self._batches = model, outputs, found
        self._covariances: dict[str, np.ndarray] = {}

    @classmethod
    def of(cls, targets: Targets, options: ModelOptions) -> "Calibration":
        """On the text of `calibrate`; without one, nothing is fed forward."""
        if options.calibrate is None:
            return cls(targets.model, {}, [])
        linear = linear_weights(targets.model)
        outputs = {name: linear[name] for name in sorted(targets.names) if name in linear}
        if not outputs:
            raise StrongTicketError(
                f"none of the chosen tensors of the {type(targets.model).__name__} belongs to a linear layer",
                hint="Leave calibrate out.",
            )
        return cls(targets.model, outputs, targets.batches(options.calibrate))

    def transposed(self, name: str) -> bool:
        """Whether the inputs of a weight are its rows: errors are fed from column to column."""
        return self._outputs.get(name) == 1

    def feedback(self, name: str) -> Feedback | None:
        """None unless `name` is a linear weight that the text reaches."""
        if name not in self._outputs:
            return None
        with limited_threads(1):  # sums in a fixed order
            if name not in self._covariances:
                self._covariances = covariances(self._model, self._group(name), self._batches)
            return Feedback.of(self._covariances[name])

    def _group(self, first: str) -> dict[str, int]:
        """This weight and as many of the following as fit in memory."""
        names = list(self._outputs)
        names = names[names.index(first) :]
        inputs = (tensor_named(self._model, name).shape[1 - self._outputs[name]] for name in names)
        fit = sum(held <= HELD for held in accumulate(8 * size**2 for size in inputs))
        return {name: self._outputs[name] for name in names[: max(fit, 1)]}


def linear_weights(model: nn.Module) -> dict[str, int]:
    """Weights of linear layers that nothing else reads, and their axes of outputs: 0 for nn.Linear.

    A tied embedding is left out: as an embedding, every error of it shows.
    """
    ties, found = parameters(model), {}
    for path, module in model.named_modules():
        name = f"{path}.weight" if path else "weight"
        axis = _output_axis(module)
        if axis is not None and len(ties.get(name, ())) == 1 and min(module.weight.shape) > FEW:
            found[name] = axis
    return found


def covariances(
    model: nn.Module, weights: dict[str, int], found: list[Batch]
) -> dict[str, Float64[np.ndarray, "inputs inputs"]]:
    """Mean of x xᵀ over all inputs x of norm 1 that each linear layer reads; padding is left out.

    A few tokens of a language model have inputs a thousand times longer than all others, so all count the same.
    """
    sums = {
        name: torch.zeros(2 * (tensor_named(model, name).shape[1 - axis],), dtype=torch.float64)
        for name, axis in weights.items()
    }
    counts = dict.fromkeys(weights, 0)
    real: Tensor | None = None

    def reader(name: str) -> Callable[..., None]:
        def add(module: nn.Module, inputs: Any) -> None:
            x = inputs[0]
            x = x[real] if real is not None and x.shape[:-1] == real.shape else x.reshape(-1, x.shape[-1])
            x = torch.nn.functional.normalize(x.float(), dim=-1)
            sums[name] += (x.T @ x).double()
            counts[name] += len(x)

        return add

    hooks = [
        model.get_submodule(name.rpartition(".")[0]).register_forward_pre_hook(reader(name))
        for name in weights
    ]
    try:
        with torch.no_grad():
            for batch in found:
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
