"""kill -9 in the middle of a command; the same command again must end with the files of an undisturbed run."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.broken.starter import Run, Starter

Files = dict[str, bytes]


@dataclass(frozen=True)
class Command:
    """arguments: in a folder that `prepare` filled; results: pattern of the files that it makes."""

    name: str
    arguments: list[str]
    prepare: Callable[[Path], None]
    results: str


def results_of(command: Command, folder: Path) -> Files:
    """The files that must not depend on what happened on the way."""
    return {
        str(path.relative_to(folder)): _without_time(path.read_bytes())
        for path in folder.glob(command.results)
        if path.name != "index.html" and not path.name.startswith(".")
    }


def _without_time(data: bytes) -> bytes:
    """A summary tells how long it took."""
    return re.sub(rb'"seconds": [0-9.]+', b"", data)


def kill_and_repeat(
    starter: Starter, command: Command, kills: int, work: Path, *, seed: int = 0
) -> dict[str, Any]:
    """Kill `kills` runs, in turns before a change of a file and at a moment in time; each is then repeated."""
    rng = np.random.default_rng(seed)
    wanted, whole = undisturbed(starter, command, work / "run")
    counts = {"killed": 0, "finished_before": 0, "identical": 0, "different": 0, "failed": 0}
    left = 0
    for number in range(kills):
        folder = fresh(command, work / "run")
        if number % 2 == 0 and whole.changes:
            change = int(rng.integers(1, whole.changes + 1))
            run = starter.run(command.arguments, folder, kill_at_change=change)
        else:
            run = starter.run(command.arguments, folder, kill_after=float(rng.random() * whole.seconds))
        counts["killed" if run.code == -signal.SIGKILL else "finished_before"] += 1
        again = starter.run(command.arguments, folder)
        if again.code:
            counts["failed"] += 1
            print(f"{command.name}, kill {number}: {again.stderr}")
            continue
        same = results_of(command, folder) == wanted
        counts["identical" if same else "different"] += 1
        left += sum(path.name.startswith(".") for path in folder.rglob("*"))
    return {
        "command": command.name,
        "kills": kills,
        **counts,
        "files_changed": whole.changes,
        "seconds": whole.seconds,
        "left_behind": left,
    }


def undisturbed(starter: Starter, command: Command, work: Path) -> tuple[Files, Run]:
    folder = fresh(command, work)
    run = starter.run(command.arguments, folder)
    if run.code:
        raise RuntimeError(f"strongticket {' '.join(command.arguments)} failed: {run.stderr}")
    return results_of(command, folder), run


def fresh(command: Command, folder: Path) -> Path:
    """The folder with what the command needs and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command.prepare(folder)
    return folder


def save_target(folder: Path) -> None:
    import torch

    from strongticket import nets

    network = nets.Transformer(
        [nets.Block(nets.MultiHeadAttention(8, 8, 2, 4, 4), nets.ReluNetwork([8, 16, 8]))]
    )
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        parameter.data = torch.rand(parameter.shape, generator=generator) - 0.5
    nets.save(network, folder / "target.safetensors")


BUILD = Command(
    "build",
    ["build", "target.safetensors", "--out", "my.ticket", "--width", "128", "--json"],
    save_target,
    "my.ticket",
)
REPRODUCE = Command(
    "reproduce",
    ["reproduce", "figure4", "--scale", "test", "--out", ".", "--workers", "1", "--json"],
    lambda folder: None,
    "figure4/*",
)


def save_text(folder: Path) -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(50)]
    (folder / "text.txt").write_text(" ".join(rng.choice(words, 3000)))


SEARCH = Command(
    "search",
    [
        *("search", "--data", "text.txt", "--out", "found.ticket", "--cache", "cache", "--cpu", "--json"),
        *("--layers", "1", "--heads", "2", "--dim", "16", "--context", "16", "--batch", "4"),
        *("--steps", "24", "--warmup", "2", "--micro-batch", "4", "--save-every", "3", "--resume"),
    ],
    save_text,
    "found.ticket",
)
