"""The trained numbers of a model: which tensors there are, and each of them as one matrix."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn

from strongticket.choice import matrix_shape
from strongticket.errors import StrongTicketError, TicketError

_VARIANCE = "running_var"
_FLOOR = 1e-5  # what batch norms add to a variance


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
    tensors = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    own = {named(name): tensor for name, tensor in tensors}
    for name, array in state:
        own[name].data = torch.from_numpy(array).to(own[name])
    return module.requires_grad_(False).eval()


def to_stored(name: str, tensor: Tensor) -> Float32[np.ndarray, "..."]:
    """What a ticket stores of a tensor. A running variance divides, so it is a logarithm: never negative or zero."""
    array: np.ndarray = tensor.detach().float().cpu().numpy()
    if name.endswith(_VARIANCE):
        array = np.log(np.maximum(array.astype(np.float64), 0) + _FLOOR).astype(np.float32)
    return array


def from_stored(name: str, array: Float32[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """The inverse of to_stored."""
    if name.endswith(_VARIANCE):
        array = np.maximum(np.exp(array.astype(np.float64)) - _FLOOR, 0).astype(np.float32)
    return array


def matrix_rows(array: np.ndarray, rows: range | None, transposed: bool) -> np.ndarray:
    """Rows of a tensor's matrix, or of the transposed one; None means all."""
    matrix = array.reshape(matrix_shape(array.shape))
    matrix = matrix.T if transposed else matrix
    return np.ascontiguousarray(matrix if rows is None else matrix[rows.start : rows.stop])


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
        digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:32]


def exact_checksum(tensor: Tensor) -> str:
    """Checksum of one tensor of whole numbers."""
    data = tensor.detach().cpu().contiguous().numpy()
    head = f"{data.dtype} {tuple(tensor.shape)}\n".encode()
    return hashlib.sha256(head + data.tobytes()).hexdigest()[:32]


def repeated_layers(model: nn.Module) -> Iterator[str]:
    """Paths of the layers, for looking at them one by one: elements of the outermost lists of modules."""
    lists = [path for path, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    outer = [path for path in lists if not any(path.startswith(f"{other}.") for other in lists)]
    for path in outer:
        for name, module in model.get_submodule(path).named_children():
            if next(module.parameters(), None) is not None:
                yield f"{path}.{name}"
