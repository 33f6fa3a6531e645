"""One worker process for each GPU: a process takes a GPU that no other has, and sees only that one."""

from __future__ import annotations

import os
from pathlib import Path

from strongticket.errors import StrongTicketError

_held: list[int] = []  # open lock files: the system frees them when the process ends


def workers_for(wanted: int | None, gpus: int) -> int:
    """How many processes search at once at the paper's scale.

    wanted: what the user asked for; None means one for each GPU, or a single one with all cores
    gpus: of this machine

    >>> workers_for(None, 4), workers_for(None, 0), workers_for(2, 4), workers_for(8, 4)
    (4, 1, 2, 4)
    """
    return max(1, gpus) if wanted is None else min(wanted, max(1, gpus))


def take_gpu(folder: Path, gpus: int) -> int | None:
    """Let this process see one GPU only, the first that no other process holds; it keeps it until it ends.

    folder: of the lock files, shared by the processes
    gpus: of this machine; with fewer than two none is taken
    Returns the number of the GPU.
    """
    if gpus < 2 or _held:
        return None
    import fcntl  # not on Windows, where nothing is taken before this line

    folder.mkdir(parents=True, exist_ok=True)
    for number in range(gpus):
        file = os.open(folder / f"gpu-{number}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            continue
        _held.append(file)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[number] if visible else str(number)
        return number
    raise StrongTicketError(
        f"all {gpus} GPUs are in use by other searches", hint="Use at most one worker per GPU."
    )
