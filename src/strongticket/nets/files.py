"""Networks by name and settings, and as files: safetensors, written by rename, never pickle."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, write_file
from strongticket.nets.attention import MultiHeadAttention
from strongticket.nets.relu import ReluNetwork
from strongticket.nets.transformer import Block, Transformer

FORMAT = "strongticket network 1"
Network = MultiHeadAttention | ReluNetwork | Block | Transformer


def make(kind: str, settings: JsonObject) -> Network:
    """The network that a module's `kind` and `settings` describe, with zero weights."""

    def block(s: JsonObject) -> Block:
        return Block(MultiHeadAttention(**s["attention"]), ReluNetwork(**s["feed_forward"]), **_norm(s))

    makers: dict[str, Callable[[JsonObject], Network]] = {
        "attention": lambda s: MultiHeadAttention(**s),
        "relu": lambda s: ReluNetwork(**s),
        "block": block,
        "transformer": lambda s: Transformer(list(map(block, s["blocks"])), **_norm(s)),
    }
    if kind not in makers:
        raise StrongTicketError(f"kind={kind!r} is unknown: expected one of {', '.join(makers)}")
    try:
        return makers[kind](settings)
    except (TypeError, KeyError) as error:
        raise StrongTicketError(f"settings do not describe a network of kind {kind!r}: {error}") from error


def save(module: nn.Module, path: str | os.PathLike[str]) -> Path:
    """Write a network of this room (`module`) to the file `path`, its kind and settings in the metadata."""
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
    """Read what `save` wrote to `path`, in the dtype it was saved in."""
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
            hint="Expected a network saved by strongticket.nets.save"
            + (", not a ticket." if str(metadata.get("format")).startswith("strongticket ticket") else "."),
        )
    try:
        settings = json.loads(metadata["settings"])
        module = make(metadata["kind"], settings)
    except (KeyError, ValueError) as error:
        raise StrongTicketError(f"{path}: its metadata does not describe a network ({error})") from error
    dtypes = {tensor.dtype for tensor in tensors.values()}
    module.to(next(iter(dtypes)) if len(dtypes) == 1 else torch.float32)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise StrongTicketError(f"{path}: tensors do not fit the settings ({error})") from error
    return module


def _norm(settings: JsonObject) -> JsonObject:
    return {name: settings[name] for name in ("norm", "norm_epsilon") if name in settings}
