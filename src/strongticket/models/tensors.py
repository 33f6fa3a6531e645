"""The trained numbers of a model: which tensors there are, and each of them as one matrix."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64
from torch import Tensor, nn

from strongticket.errors import StrongTicketError, TicketError

_VARIANCE = "running_var"
_FLOOR = 1e-5  # what batch norms add to a variance


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) of a tensor seen as a matrix: its axes are cut in two where that is most nearly square.

    One axis is one row. A convolution is nearly always its first axis × the rest; of stacked experts the first
    two axes × the last.

    >>> matrix_shape((64, 3, 7, 7)), matrix_shape((5,)), matrix_shape((8, 128, 64)), matrix_shape(())
    ((64, 147), (1, 5), (1024, 64), (1, 1))
    """
    if len(shape) < 2:
        return 1, math.prod(shape)
    cuts = [(math.prod(shape[:i]), math.prod(shape[i:])) for i in range(1, len(shape))]
    return min(cuts, key=lambda sides: max(sides))


def parameters(model: nn.Module) -> dict[str, list[str]]:
    """First name of every parameter -> all its names: tied tensors are one."""
    groups: dict[int, list[str]] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(tensor), []).append(name)
    return {names[0]: names for names in groups.values()}


def persistent_buffers(model: nn.Module) -> dict[str, Tensor]:
    """Buffers that state_dict has, without the count of batches, which evaluation does not read."""
    stored = model.state_dict(keep_vars=True)
    return {
        name: buffer
        for name, buffer in model.named_buffers()
        if name in stored and not name.endswith("num_batches_tracked")
    }


def tensor_named(model: nn.Module, name: str) -> Tensor:
    """The parameter or buffer of that name."""
    path, _, last = name.rpartition(".")
    tensor: Tensor = getattr(model.get_submodule(path), last)
    return tensor


def check_same_shapes(module: nn.Module, reference: nn.Module, *, named: Callable[[str], str] = str) -> None:
    """TicketError unless a module has the parameters of the ticket's network.

    Args:
        module: to be filled, or compared.
        reference: a network of the ticket; it may be on the meta device.
        named: name in the module -> name in the reference.
    """
    ours = {named(name): tuple(parameter.shape) for name, parameter in module.named_parameters()}
    theirs = {name: tuple(parameter.shape) for name, parameter in reference.named_parameters()}
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            pooler = "pooler" in name and name not in theirs
            raise TicketError(
                f"tensor {name!r}: the {type(module).__name__} has shape {ours.get(name)}, the ticket's network "
                f"{theirs.get(name)} (None: no such tensor)",
                hint="Pass add_pooling_layer=False." if pooler else "Use one with the same class and sizes.",
            )


def fill(
    module: nn.Module, state: Iterable[tuple[str, np.ndarray]], *, named: Callable[[str], str] = str
) -> nn.Module:
    """Give a module its numbers, one tensor after the other; it is then in evaluation mode, without gradients.

    Args:
        module: its own parameters and buffers take over the arrays, on their device and in their type.
        state: name and array, as `Ticket.state` gives them; names and shapes have been compared.
        named: name in the module -> name in the state.
    """
    tensors = chain(
        module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)
    )
    own = {named(name): tensor for name, tensor in tensors}
    for name, array in state:
        own[name].data = torch.from_numpy(array).to(own[name])
    return module.requires_grad_(False).eval()


def to_matrix(name: str, tensor: Tensor) -> Float64[np.ndarray, "rows columns"]:
    """What is made of a tensor. A running variance divides, so its logarithm is made: never negative or zero."""
    array = tensor.detach().double().cpu().numpy()
    if name.endswith(_VARIANCE):
        array = np.log(np.maximum(array, 0) + _FLOOR)
    return array.reshape(matrix_shape(tuple(tensor.shape)))


def matrix_type(name: str) -> type[np.floating]:
    """Type of a tensor's matrix as a ticket returns it: float32, but the logarithms of variances are not rounded."""
    return np.float64 if name.endswith(_VARIANCE) else np.float32


def from_matrix(
    name: str, matrix: Float[np.ndarray, "rows columns"], shape: tuple[int, ...]
) -> Float32[np.ndarray, "..."]:
    """The inverse of to_matrix."""
    if name.endswith(_VARIANCE):
        matrix = np.maximum(np.exp(matrix) - _FLOOR, 0)
    return matrix.astype(np.float32, copy=False).reshape(shape)


def chosen(names: dict[str, list[str]], only: tuple[str, ...]) -> list[str]:
    """The tensors that a pattern such as `model.layers.0.*` matches by any of their names; all without patterns."""
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for every in names.values() for name in every):
            raise StrongTicketError(
                f"only={pattern!r} matches no tensor of the model",
                hint=f"Its tensors have names such as {', '.join(list(names)[:3])}.",
            )
    return [
        first
        for first, every in names.items()
        if not only or any(fnmatchcase(name, pattern) for name in every for pattern in only)
    ]


def check_trained(name: str, tensor: Tensor) -> None:
    """Raise unless the tensor has only finite floating point numbers: no other can be made."""
    if not tensor.is_floating_point():
        raise StrongTicketError(
            f"the model's {name} is {tensor.dtype}: expected floating point numbers",
            hint="Load the model in float32, without quantisation.",
        )
    bad = (~torch.isfinite(tensor)).nonzero()
    if len(bad):
        raise StrongTicketError(
            f"the model's {name}{bad[0].tolist()} is not finite: expected finite numbers",
            hint="Repair the model first.",
        )


def state_checksum(state: Mapping[str, Tensor]) -> str:
    """Checksum of a model's numbers as float32, by name: the same whatever type the file has.

    Args:
        state: what `state_dict` gives, or a part of it.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        digest.update(_described(name, tensor))
        digest.update(tensor.detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:32]


def exact_checksum(tensor: Tensor) -> str:
    """Checksum of one tensor of whole numbers."""
    data = tensor.detach().cpu().contiguous().numpy()
    return hashlib.sha256(_described(str(data.dtype), tensor) + data.tobytes()).hexdigest()[:32]


def _described(name: str, tensor: Tensor) -> bytes:
    return f"{name} {tuple(tensor.shape)}\n".encode()


def repeated_layers(model: nn.Module) -> Iterator[str]:
    """Paths of the layers, for looking at them one by one: elements of the outermost lists of modules."""
    lists = [path for path, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    outer = [path for path in lists if not any(path.startswith(f"{other}.") for other in lists)]
    for path in outer:
        for name, module in model.get_submodule(path).named_children():
            if next(module.parameters(), None) is not None:
                yield f"{path}.{name}"
