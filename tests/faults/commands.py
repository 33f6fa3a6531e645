"""The commands that are disturbed: small ones, each with the files that it makes."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

Files = dict[str, bytes]


@dataclass(frozen=True)
class Command:
    """arguments: in a folder that `prepare` filled; results: pattern of the files that it makes."""

    name: str
    arguments: list[str]
    prepare: Callable[[Path], None]
    results: str


def fresh(command: Command, folder: Path) -> None:
    """Fill the folder with what the command needs and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command.prepare(folder)


def results_of(command: Command, folder: Path) -> Files:
    """The files that must not depend on what happened on the way."""
    return {
        str(path.relative_to(folder)): _without_time(path.read_bytes())
        for path in folder.glob(command.results)
        if path.name != "index.html" and not path.name.startswith(".")
    }


def _without_time(data: bytes) -> bytes:
    """A summary contains its run time."""
    return re.sub(rb'"seconds": [0-9.]+', b"", data)


def _save_target(folder: Path) -> None:
    from strongticket import nets

    block = nets.Block(nets.MultiHeadAttention(8, 8, 2, 4, 4), nets.ReluNetwork([8, 16, 8]))
    nets.save(nets.initialise(nets.Transformer([block]), seed=0), folder / "target.safetensors")


def _save_model(folder: Path) -> None:
    for name, data in _model_files().items():
        (folder / name).write_bytes(data)


@cache
def _model_files() -> Files:
    from tests.faults.cluster import small_model

    with tempfile.TemporaryDirectory() as name:
        small_model().save_pretrained(name)
        return {path.name: path.read_bytes() for path in Path(name).iterdir()}


def _save_text(folder: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(50)]
    (folder / "text.txt").write_text(" ".join(rng.choice(words, 3000)))


BUILD = Command(
    "build",
    ["build", "target.safetensors", "--out", "my.ticket", "--width", "128", "--json"],
    _save_target,
    "my.ticket",
)
BUILD_MODEL = Command(
    "build of a model",
    ["build", ".", "--out", "model.ticket", "--tolerance", "0.01", "--workers", "1", "--json"],
    _save_model,
    "model.ticket",
)
SEARCH = Command(
    "search",
    [
        *("search", "--data", "text.txt", "--out", "found.ticket", "--cache", "cache", "--cpu", "--json"),
        *("--layers", "1", "--heads", "2", "--dim", "16", "--context", "16", "--batch", "4"),
        *("--steps", "24", "--warmup", "2", "--micro-batch", "4", "--save-every", "3", "--resume"),
    ],
    _save_text,
    "found.ticket",
)
REPRODUCE = Command(
    "reproduce",
    ["reproduce", "figure4", "--scale", "test", "--out", ".", "--workers", "1", "--json"],
    lambda folder: None,
    "figure4/*",
)
COMMANDS = (BUILD, BUILD_MODEL, SEARCH, REPRODUCE)
