"""Many pieces, on this machine's cores or a cluster's: finished ones are kept in a folder and never redone."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from strongticket.errors import StrongTicketError
from strongticket.pretrained.pieces.job import Finished, Job
from strongticket.pretrained.pieces.solve import solve_piece
from strongticket.work.processes import results

SUFFIX = ".piece"
Progress = Callable[[int, int], None]  # (problems done, problems in all)


@dataclass
class Folder:
    """Finished pieces as files; a file's name is a hash of all that its content depends on."""

    path: Path
    names: dict[str, str] = field(default_factory=dict)  # piece -> file

    def __post_init__(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StrongTicketError(f"cannot make the folder {self.path}: {error.strerror}") from error

    def enter(self, job: Job) -> str:
        """The job's file, remembered for `finished`."""
        name = job.identity() + SUFFIX
        self.names[job.piece.name] = name
        return name

    def has(self, name: str) -> bool:
        """There, whole and the result of this job; what a crash left damaged is done again."""
        try:
            self._read(name)
        except (FileNotFoundError, StrongTicketError):
            return False
        return True

    def store(self, name: str, data: bytes) -> None:
        """By rename, but without waiting for the disk: what a power cut tears, its sha256 betrays."""
        temporary = self.path / f"{name}.{os.getpid()}"
        try:
            temporary.write_bytes(data)
            os.replace(temporary, self.path / name)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StrongTicketError(
                f"cannot write {self.path / name}: {error.strerror or error}",
                hint="Finished pieces are kept: make room and run the same command again.",
            ) from error

    def finished(self, piece: str) -> Finished:
        return self._read(self.names[piece])

    def _read(self, name: str) -> Finished:
        finished = Finished.from_bytes((self.path / name).read_bytes())
        if finished.job + SUFFIX != name:
            raise StrongTicketError(
                f"{self.path / name} holds the piece {finished.job}: files were renamed",
                hint="Remove it and run the same command again.",
            )
        return finished

    def remove(self) -> None:
        for file in self.path.glob("*.piece*"):
            file.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()


def run(
    jobs: Iterable[Job],
    folder: Folder,
    *,
    total: int,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Finish all jobs; the bytes in the folder do not depend on who did which, or when.

    total: problems in all, for the progress; workers: processes, None means one per core; cluster: a Dask scheduler.
    Jobs are made when a worker is free for them: the driver holds a few at a time.
    """
    done, counting = 0, Lock()  # joblib asks for jobs, and so finds finished ones, from a thread of its own

    def advance(problems: int) -> None:
        nonlocal done
        with counting:
            done += problems
            if progress is not None:
                progress(done, total)

    def missing() -> Iterator[tuple[str, int, bytes]]:
        for job in jobs:
            name = folder.enter(job)
            if folder.has(name):
                advance(job.piece.problems)
            else:
                yield name, job.piece.problems, job.to_bytes()

    with results(_named, missing(), workers=workers, cluster=cluster) as finished:
        for name, problems, data in finished:
            folder.store(name, data)
            advance(problems)


def _named(name: str, problems: int, data: bytes) -> tuple[str, int, bytes]:
    return name, problems, solve_piece(data)
