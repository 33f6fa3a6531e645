"""Resuming a search: what a run is, and its checkpoints.

Only a run of the same identity may continue from a checkpoint, and only from one that is whole: it is sealed by a file
with the hash of every other file in it. Trainer continues without a missing optimizer or generator state, and would end
with another ticket.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from strongticket import __version__
from strongticket.errors import StrongTicketError
from strongticket.files import dump_json, parse_record, write_file
from strongticket.searching.config import SearchConfig
from strongticket.searching.registry import METHODS, find_method

SEAL = "seal.json"


def run_identity(config: SearchConfig, model: nn.Module, data: Iterable[Any], base: str = "") -> str:
    """A hash of everything that decides the bytes of the ticket.

    Args:
        config: the settings; those of task and model may name a place, and what was found there is hashed instead,
            because a file may change between two commands.
        model: with the method attached, before training.
        data: arrays to train and validate on, and what JSON can hold about them.
        base: checksum of the weights that the model came with, if they are not drawn from the seed.
    """
    digest = hashlib.blake2b(digest_size=16)

    def add(part: bytes) -> None:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)

    settings = {
        "seed": config.seed,
        "source": asdict(config.source),
        "training": asdict(config.training),
        # Sums in another order or on another device have other last bits.
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "device": "cpu" if config.run.cpu or not torch.cuda.is_available() else "cuda",
        "versions": [__version__, torch.__version__, transformers.__version__],
    }
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


def checkpoint_folder(config: SearchConfig, identity: str) -> Path:
    """Where the checkpoints of a run are kept."""
    return config.run.cache_folder / "runs" / identity


def seal(checkpoint: Path, identity: str) -> None:
    """Mark the checkpoint of a run as whole, once everything in its folder is written."""
    write_file(checkpoint / SEAL, dump_json({"identity": identity, "files": _hashes(checkpoint)}))


def last_whole(folder: Path, identity: str, steps: int) -> Path | None:
    """The newest checkpoint of the run that is whole.

    One of the run's end, after all its `steps`, is not taken: Trainer would train a step too many from it.
    """
    for path in sorted(folder.glob("checkpoint-*"), key=step_of, reverse=True):
        if 0 < step_of(path) < steps and _is_whole(path, identity):
            return path
    return None


def remove_after(folder: Path, checkpoint: Path | None) -> None:
    """Remove checkpoints newer than this one: they cannot be used, and Trainer would write into their folders."""
    for path in folder.glob("checkpoint-*"):
        if checkpoint is None or step_of(path) > step_of(checkpoint):
            (path / SEAL).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)


def remove_all(folder: Path) -> None:
    """Remove the checkpoints of a finished run. Renamed first, so that a killed removal leaves none to resume."""
    gone = folder.with_name(f".{folder.name}")
    shutil.rmtree(gone, ignore_errors=True)  # left by a killed run
    if folder.exists():
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def step_of(checkpoint: Path) -> int:
    """The number in the folder's name; 0 if it has none.

    >>> step_of(Path("checkpoint-40"))
    40
    """
    number = checkpoint.name.partition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else 0


def _is_whole(checkpoint: Path, identity: str) -> bool:
    with contextlib.suppress(OSError, StrongTicketError):
        record = parse_record(SEAL, (checkpoint / SEAL).read_bytes(), {"identity", "files"})
        return bool(record["identity"] == identity and record["files"] == _hashes(checkpoint))
    return False


def _hashes(checkpoint: Path) -> dict[str, str]:
    found = {}
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file() and path.name != SEAL:
            with path.open("rb") as file:
                found[str(path.relative_to(checkpoint))] = hashlib.file_digest(file, "blake2b").hexdigest()
    return found
