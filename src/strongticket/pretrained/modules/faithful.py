"""A model whose parameters are the pruned random factors, redrawn at each use.

Linear maps and embeddings run as two random layers, x -> hidden units -> output. Whatever else reads a parameter
(norms, convolutions, biases) gets the two factors multiplied at that moment.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from strongticket.pretrained.modules.matrix import Faithful


class Factors(nn.Module):
    """A parametrisation: the parameter is what the factors give. restore: matrix -> tensor of the parameter."""

    def __init__(self, matrix: Faithful, restore: Any) -> None:
        super().__init__()
        self.matrix, self.restore = matrix, restore

    def forward(self, original: Tensor) -> Tensor:
        whole = self.matrix.whole()
        return torch.from_numpy(self.restore(whole.double().cpu().numpy()).astype(np.float32)).to(whole)

    def right_inverse(self, tensor: Tensor) -> Tensor:
        return tensor.new_zeros(0)  # the parameter's own numbers are not kept


def run_factors(model: nn.Module, names: list[str], matrix: Faithful, restore: Any) -> None:
    """Put the factors in the place of a parameter or buffer, under all names that it is tied to."""
    for name in names:
        path, _, last = name.rpartition(".")
        module = model.get_submodule(path)
        if parametrize.is_parametrized(module, last):
            continue  # a module that is used twice
        parametrize.register_parametrization(module, last, Factors(matrix, restore), unsafe=True)
        if last == "weight" and (run := _forward(type(module).__bases__[0])):
            module.forward = partial(run, module, matrix)


def _linear(module: Any, matrix: Faithful, x: Tensor) -> Tensor:
    """The matrix is the module's weight, (out, in): it is applied from its right side."""
    y: Tensor = x.new_zeros(*x.shape[:-1], matrix.rows)
    for pair in matrix.factor_pairs(x):
        assert pair.inner is not None
        y[..., pair.coordinates] += (x[..., pair.columns] @ pair.outer.T) @ pair.inner.T
    return y if module.bias is None else y + module.bias.to(x)


def _conv1d(module: Any, matrix: Faithful, x: Tensor) -> Tensor:
    """transformers' Conv1D, whose weight is (in, out)."""
    y: Tensor = matrix(x) + module.bias.to(x)
    return y


def _embedding(module: Any, matrix: Faithful, ids: Tensor) -> Tensor:
    """A row of the left factor, then the right one."""
    y = matrix.weight.new_zeros(*ids.shape, matrix.columns)
    for pair in matrix.factor_pairs(matrix.weight):
        assert pair.inner is not None
        rows = range(matrix.rows)[pair.coordinates]
        here = (ids >= rows.start) & (ids < rows.stop)
        hidden = nn.functional.embedding((ids - rows.start).clamp(0, len(rows) - 1), pair.inner)
        y[..., pair.columns] += (hidden * here[..., None]) @ pair.outer
    return y


def _forward(kind: type) -> Any:
    """How a class runs its weight, if by one matrix multiplication alone: only these classes, not their subclasses."""
    if kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers."):
        return _conv1d
    return {nn.Linear: _linear, nn.Embedding: _embedding}.get(kind)
