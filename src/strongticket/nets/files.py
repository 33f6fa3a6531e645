"""Networks by name and settings, and as files: safetensors, written by rename, never pickle."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, write_file
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.relu import ReluNetwork
from strongticket.nets.transformer import Block, Transformer

FORMAT = "strongticket network 1"
Network = MultiHeadAttention | ReluNetwork | Block | Transformer


def make(kind: str, settings: JsonObject) -> Network:
    """Make the network that a module's `kind` and `settings` describe, with zero weights."""
    if kind not in _MAKERS:
        raise StrongTicketError(f"kind={kind!r} is unknown: expected one of {', '.join(_MAKERS)}")
    try:
        return _MAKERS[kind](settings)
    except (TypeError, KeyError) as error:
        raise StrongTicketError(f"settings do not describe a network of kind {kind!r}: {error}") from error


def tensor_shapes(kind: str, settings: JsonObject) -> dict[str, tuple[int, ...]]:
    """Name in the state_dict -> shape, of the network that `make` would make; nothing is allocated."""
    with torch.device("meta"):
        network = make(kind, settings)
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


def make_filled(kind: str, settings: JsonObject, tensors: Mapping[str, Tensor]) -> Network:
    """Make a network of these very tensors; nothing of the settings' sizes is allocated."""
    with torch.device("meta"):
        network = make(kind, settings)
    network.load_state_dict(tensors, assign=True)
    return network


def save(module: nn.Module, path: str | os.PathLike[str]) -> Path:
    """Write a network to the file `path`, its kind and settings in the metadata."""
    if not isinstance(module, Network):
        raise StrongTicketError(
            f"cannot save a {type(module).__name__}: "
            "expected MultiHeadAttention, ReluNetwork, Block or Transformer"
        )
    path = Path(path)
    metadata = {"format": FORMAT, "kind": module.kind, "settings": json.dumps(module.settings())}
    tensors = {name: tensor.detach().contiguous() for name, tensor in module.state_dict().items()}
    write_file(path, safetensors.torch.save(tensors, metadata))
    return path


def load(path: str | os.PathLike[str]) -> Network:
    """Read what `save` wrote to `path`, in the type it was saved in."""
    path = Path(path)
    if not path.is_file():
        raise StrongTicketError(
            f"{path}: no such file", hint="Expected a network saved by strongticket.nets.save."
        )
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except SafetensorError as error:
        raise StrongTicketError(f"{path}: not a readable safetensors file ({error})") from error
    if metadata.get("format") != FORMAT:
        raise StrongTicketError(
            f"{path}: its metadata says format {metadata.get('format')!r}, expected {FORMAT!r}",
            hint="Expected a network saved by strongticket.nets.save, not a ticket.",
        )
    try:
        return make_filled(metadata["kind"], json.loads(metadata["settings"]), tensors)
    except (KeyError, ValueError) as error:
        raise StrongTicketError(f"{path}: its metadata does not describe a network ({error})") from error
    except RuntimeError as error:
        raise StrongTicketError(f"{path}: tensors do not fit the settings ({error})") from error


def _block(settings: JsonObject) -> Block:
    options = {**settings}
    attention, feed_forward = options.pop("attention"), options.pop("feed_forward")
    return Block(MultiHeadAttention(**attention), ReluNetwork(**feed_forward), **options)


def _transformer(settings: JsonObject) -> Transformer:
    options = {**settings}
    return Transformer([_block(block) for block in options.pop("blocks")], **options)


_MAKERS: dict[str, Callable[[JsonObject], Network]] = {
    MultiHeadAttention.kind: lambda settings: MultiHeadAttention(**settings),
    ReluNetwork.kind: lambda settings: ReluNetwork(**settings),
    Block.kind: _block,
    Transformer.kind: _transformer,
}
