"""kill -9 in the middle of a command; the same command again must end with the files of an undisturbed run."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.commands import Command, Files, fresh, results_of
from tests.faults.starter import Run, Starter


def kill_and_repeat(
    starter: Starter, command: Command, wanted: Files, whole: Run, kills: int, folder: Path
) -> dict[str, Any]:
    """Kill `kills` runs, in turns before a change of a file and at a moment in time; each is then repeated.

    wanted, whole: what an undisturbed run made, and how it went
    """
    rng = np.random.default_rng(len(command.name))
    counts = {"killed": 0, "finished_before": 0, "identical": 0, "different": 0, "failed": 0}
    left = 0
    for number in range(kills):
        fresh(command, folder)
        if number % 2 == 0 and whole.changes:
            change = int(rng.integers(1, whole.changes + 1))
            run = starter.run(command.arguments, folder, kill_at_change=change)
        else:
            run = starter.run(command.arguments, folder, kill_after=float(rng.random() * whole.seconds))
        counts["killed" if run.code == -signal.SIGKILL else "finished_before"] += 1
        again = starter.run(command.arguments, folder)
        if again.code:
            counts["failed"] += 1
            print(f"{command.name}, kill {number}: {again.stderr}", file=sys.stderr, flush=True)
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


def undisturbed(starter: Starter, command: Command, folder: Path) -> tuple[Files, Run]:
    fresh(command, folder)
    run = starter.run(command.arguments, folder)
    if run.code:
        raise RuntimeError(f"strongticket {' '.join(command.arguments)} failed: {run.stderr}")
    return results_of(command, folder), run
