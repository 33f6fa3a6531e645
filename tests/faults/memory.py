"""Work in a process of its own, and its memory."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def in_child(module: str, *numbers: int) -> Any:
    """What `python -m tests.faults.MODULE NUMBERS` prints, as JSON."""
    command = [sys.executable, "-m", f"tests.faults.{module}", *map(str, numbers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def peak_memory() -> int:
    """Bytes, of this process alone: Linux's ru_maxrss begins with that of the process that started this one."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: in bytes
