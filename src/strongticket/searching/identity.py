"""What a run is, by content: only a run of the same identity may continue from its checkpoints.

Paths are left out and what they hold is hashed instead, because a file may change between two commands.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from strongticket import __version__
from strongticket.errors import StrongTicketError
from strongticket.files import dump_json
from strongticket.searching.config import METHODS, SearchConfig
from strongticket.searching.config.methods import find_method


def run_identity(config: SearchConfig, model: nn.Module, data: Iterable[Any], base: str = "") -> str:
    """A hash of everything that decides the bytes of the ticket.

    config: the settings
    model: with the method attached, before training
    data: arrays to train and validate on, and what JSON can hold about them
    base: checksum of the weights that the model came with, if they are not drawn from the seed
    """
    digest = hashlib.blake2b(digest_size=16)

    def add(part: bytes) -> None:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)

    # The settings of task and model may name a place: what was found there is hashed instead, below.
    settings = (
        asdict(config.source)
        | asdict(config.training)
        | {
            "seed": config.seed,
            # Sums in another order or on another device have other last bits.
            "processes": int(os.environ.get("WORLD_SIZE", "1")),
            "device": "cpu" if config.run.cpu or not torch.cuda.is_available() else "cuda",
            "versions": [__version__, torch.__version__, transformers.__version__],
        }
    )
    add(dump_json(settings))
    add(base.encode())
    add(str(model).encode())
    model_config = getattr(model, "config", None)
    add(dump_json(model_config.to_diff_dict()) if model_config is not None else b"")
    for name, tensor in model.state_dict().items():
        add(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
    add(_own_source(config.source.method))
    for part in data:
        if isinstance(part, np.ndarray):
            add(f"{part.shape} {part.dtype}".encode())
            add(memoryview(np.ascontiguousarray(part)).cast("B"))  # type: ignore[arg-type]
        else:
            add(dump_json(part))
    return digest.hexdigest()


def _own_source(method: str) -> bytes:
    """The text of the modules of a user's own method; the package's own methods change with its version."""
    if method in METHODS:
        return b""
    function: Any = inspect.unwrap(find_method(method))
    modules = {getattr(function, "__module__", None) or "", method.partition(":")[0]}
    try:
        texts = [inspect.getsource(sys.modules[name]) for name in sorted(modules) if name in sys.modules]
        return "".join(texts or [inspect.getsource(function)]).encode()
    except (OSError, TypeError) as error:
        raise StrongTicketError(
            f"the code of method {method!r} cannot be read ({error}), so its checkpoints could be mixed up",
            hint="Define it in a file, or search without save_every.",
        ) from None
