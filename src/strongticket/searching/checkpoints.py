"""Checkpoints of a run: sealed when they are whole, passed over and removed when they are not.

The seal is a file with the hash of every other file of the checkpoint. Trainer continues without a missing optimizer
or generator state, and would end with another ticket.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from pathlib import Path

from strongticket.errors import StrongTicketError
from strongticket.files import dump_json, parse_record, write_file

SEAL = "seal.json"


def seal(checkpoint: Path, identity: str) -> None:
    """Mark a checkpoint as whole.

    checkpoint: its folder, with everything written
    identity: of the run
    """
    write_file(checkpoint / SEAL, dump_json({"identity": identity, "files": _hashes(checkpoint)}))


def last_whole(folder: Path, identity: str, steps: int) -> Path | None:
    """The newest checkpoint of the run that is whole.

    folder: of the run's checkpoints, checkpoint-STEP each
    identity: of the run
    steps: of the whole run; a checkpoint of its end is not taken, as Trainer would train a step too many from it
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
