"""Read the trained numbers of a model, and put another module in its place.

Arrays are float64 with the rows of x first; paths are those of `named_modules`.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import nn

from strongticket.errors import StrongTicketError

Array = np.ndarray


def heads_of(weight: Array, heads: int) -> Float64[Array, "heads dim_in head_dim"]:
    """(heads·head_dim, dim_in) as torch stores it -> one matrix per head, rows of x first."""
    return weight.reshape(heads, -1, weight.shape[1]).transpose(0, 2, 1)


def linear_weights(module: nn.Module) -> tuple[Float64[Array, "in out"], Float64[Array, " out"] | None]:
    """Weight and bias of nn.Linear or transformers' Conv1D."""
    weight = array(module.weight)  # type: ignore[arg-type]
    if type(module).__name__ != "Conv1D":
        weight = weight.T
    return weight, None if module.bias is None else array(module.bias)  # type: ignore[arg-type]


def norm_weights(model: nn.Module, path: str | None) -> tuple[Array, Array | None]:
    """(gain, shift) of a norm."""
    norm: Any = None if path is None else model.get_submodule(path)
    if norm is None or norm.weight is None:
        return np.ones(1), None
    shift = getattr(norm, "bias", None)
    return array(norm.weight), None if shift is None else array(shift)


def array(tensor: torch.Tensor) -> Float64[Array, "..."]:
    return tensor.detach().double().cpu().numpy()


def find(model: nn.Module, path: str) -> Any:
    """The module or parameter there."""
    found: Any = model
    for name in path.split(".") if path else ():
        if not hasattr(found, name):
            raise StrongTicketError(
                f"{type(model).__name__} has no {path!r}: this version of transformers lays it out differently",
                hint="Install transformers 5.",
            )
        found = getattr(found, name)
    return found


def put(model: nn.Module, path: str, module: nn.Module) -> nn.Module:
    if not path:
        return module
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, module)
    return model
