"""A full disk while saving: a clear error, the old files as they were, nothing half-written left behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.faults.commands import Command, Files, fresh, results_of
from tests.faults.starter import Starter

OLD = b"what was there before\n"
FREE = (0, 1 << 12, 1 << 16, 1 << 18)  # bytes that are left when the command starts


def save_on_full_disk(starter: Starter, command: Command, wanted: Files, free: int) -> dict[str, Any]:
    """Run it with this much space; then the disk has space again and the same command must end well.

    Where no small disk can be made, a limit on the size of every file stands for it.
    """
    inside = starter.disk / "run"
    folder = starter.seen(inside)
    fresh(command, folder)
    for name in wanted:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(OLD)
    if starter.has_disk:
        _fill(folder.parent / "filler", free)
        run = starter.run(command.arguments, inside)
        (folder.parent / "filler").unlink()
    else:
        run = starter.run(command.arguments, inside, file_limit=max(free, 1024))
    after = results_of(command, folder)
    litter = [path for path in folder.rglob(".*") if path.is_file()]
    again = starter.run(command.arguments, inside)
    return {
        "command": command.name,
        "disk": "tmpfs" if starter.has_disk else "limit",
        "free_bytes": free,
        "exit": run.code,
        "clear": run.code == 0 or ("error:" in run.stderr and "Traceback" not in run.stderr),
        "old_intact": all(after[name] in (OLD, data) for name, data in wanted.items()),
        "litter": len(litter),
        "identical_later": again.code == 0 and results_of(command, folder) == wanted,
        "said": (run.stderr.strip().splitlines() or [""])[-1][:100],
    }


def is_right(row: dict[str, Any]) -> bool:
    """With no space at all the command must fail; whatever happens, nothing is harmed."""
    refused = row["exit"] != 0 or row["free_bytes"] > 0
    return refused and row["clear"] and row["old_intact"] and row["identical_later"] and not row["litter"]


def _fill(path: Path, free: int) -> None:
    """Leave this much of the disk."""
    page = bytes(4096)
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(page)
        except OSError:
            pass
        os.truncate(path, max(0, file.tell() - free))
