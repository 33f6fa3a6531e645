"""Damaged checkpoints and swapped data: a resumed search ends with the bytes of an undisturbed one, or starts over."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from strongticket.searching import SearchConfig, preset, search

FILES = (
    "model.safetensors",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
    "trainer_state.json",
    "seal.json",
)
WAYS = ("missing", "cut", "changed", "empty", "of the other checkpoint")


def tiny_search(folder: Path) -> SearchConfig:
    """Settings of a search of a moment, with checkpoints; its text and cache lie in the folder."""
    text = folder / "text.txt"
    text.write_text("".join(f"{i} times {j} is {i * j}. " for i in range(20) for j in range(20)))
    return preset(
        "paper-laptop", data=str(text), cache=str(folder / "cache"), cpu=True, layers=1, heads=2, dim=16,
        context=16, steps=9, batch=4, micro_batch=4, warmup=2, save_every=4,
    )  # fmt: skip


def interrupted(config: SearchConfig, last_step: int) -> Path:
    """Stop a search after a step, and return the folder of its checkpoints."""

    def stop(done: int, loss: float) -> None:
        if done == last_step:
            raise KeyboardInterrupt

    try:
        search(config.changed(resume=False), on_step=stop)
    except KeyboardInterrupt:
        (folder,) = (path for path in (config.run.cache_folder / "runs").iterdir() if path.name[0] != ".")
        return folder
    raise RuntimeError(f"the search ended before step {last_step}")


def damage(checkpoints: Path, file: str, way: str, rng: np.random.Generator) -> None:
    """Damage one file of the newest of two checkpoints."""
    older, newest = sorted(checkpoints.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    path = newest / file
    data = bytearray(path.read_bytes())
    if way == "missing":
        path.unlink()
    elif way == "of the other checkpoint":
        shutil.copy(older / file, path)
    else:
        if way == "changed":
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data[: len(data) // 2] if way == "cut" else b"" if way == "empty" else data)


def damage_checkpoints(
    config: SearchConfig, cases: list[tuple[str, str]], *, seed: int = 0
) -> dict[str, Any]:
    """Resume after each damage and compare with the ticket of an undisturbed search.

    config: a search with checkpoints; a text of its own and a folder `cache` of its own
    cases: (file, way) of each damage
    """
    wanted = search(config.changed(resume=False)).ticket.to_bytes()
    rng, counts, resumed = np.random.default_rng(seed), {"identical": 0, "wrong": 0}, []
    stored = interrupted(config, config.training.steps)
    kept = stored.with_name(".kept")
    shutil.move(stored, kept)
    for file, way in cases:
        shutil.copytree(kept, stored, dirs_exist_ok=True)
        damage(stored, file, way, rng)
        steps: list[int] = []
        found = search(config.changed(resume=True), on_step=lambda done, loss, seen=steps: seen.append(done))
        counts["identical" if found.ticket.to_bytes() == wanted else "wrong"] += 1
        resumed.append(steps[0] if steps else 0)
    shutil.rmtree(kept)
    return {"tried": len(cases), **counts, "first_steps": resumed}


def swap_data(config: SearchConfig, swaps: int, *, seed: int = 0) -> dict[str, Any]:
    """Change one character of the text between the interruption and the resume: the search starts over."""
    path, rng = Path(config.task.data), np.random.default_rng(seed)
    text = path.read_text()
    interrupted(config, config.training.steps)
    counts = {"identical": 0, "wrong": 0}
    for _ in range(swaps):
        place = int(rng.integers(len(text)))
        path.write_text(
            text[:place] + text[place].translate({ord(text[place]): "7"}) + text[place + 1 :] + "7"
        )
        wanted = search(config.changed(cache=f"{config.run.cache}-fresh", save_every=0)).ticket.to_bytes()
        found = search(config.changed(resume=True)).ticket.to_bytes()
        counts["identical" if found == wanted else "wrong"] += 1
    path.write_text(text)
    return {"tried": swaps, **counts}
