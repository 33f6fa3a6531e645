"""Many pieces, on this machine's cores or a cluster's: finished ones are kept in a folder and never redone."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from strongticket.errors import MissingDependency, StrongTicketError, TicketError
from strongticket.pretrained.piece import Finished, Job, solve_piece

CONNECT = 30  # seconds that a scheduler may take to answer
WAIT_FOR_WORKERS = 300  # and to find its first worker
PATIENCE = 1800  # and without any piece coming back: joblib does not see that all workers of a task died
Progress = Callable[[int, int], None]  # (problems done, problems in all)


@dataclass
class Folder:
    """Finished pieces as files; a file's name is a hash of all that its content depends on."""

    path: Path
    names: dict[str, str] = field(default_factory=dict)  # tensor of the piece -> file

    def __post_init__(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StrongTicketError(f"cannot make the folder {self.path}: {error.strerror}") from error

    def enter(self, job: Job, data: bytes) -> str:
        """The job's file, remembered for `finished`."""
        name = hashlib.sha256(data).hexdigest()[:40] + ".piece"
        self.names[job.piece.inner] = name
        return name

    def has(self, name: str) -> bool:
        """There and whole. What a crash left damaged is removed and done again."""
        path = self.path / name
        try:
            Finished.from_bytes(path.read_bytes())
        except FileNotFoundError:
            return False
        except TicketError:
            path.unlink(missing_ok=True)
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
                f"cannot write {self.path / name}: {error.strerror or error}. "
                "Finished pieces are kept: make room and run the same command again"
            ) from error

    def finished(self, inner: str) -> Finished:
        return Finished.from_bytes((self.path / self.names[inner]).read_bytes())

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

    total: problems in all, for the progress; workers: processes (None: one a core); cluster: a Dask scheduler.
    Jobs are made when somebody is free for them: the driver holds a few at a time.
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
            data = job.to_bytes()
            name = folder.enter(job, data)
            if folder.has(name):
                advance(job.piece.problems)
            else:
                yield name, job.piece.problems, data

    with _results(missing(), workers, cluster) as results:
        for name, problems, data in results:
            folder.store(name, data)
            advance(problems)


def _named(name: str, problems: int, data: bytes) -> tuple[str, int, bytes]:
    return name, problems, solve_piece(data)


@contextmanager
def _results(
    work: Iterable[tuple[str, int, bytes]], workers: int | None, cluster: str | None
) -> Iterator[Any]:
    """(name, problems, finished bytes) in the order in which they come."""
    if cluster is not None and workers is not None:
        raise StrongTicketError(
            "workers and cluster are both given: the cluster decides how many workers it has"
        )
    if cluster is None:
        workers = processes(workers)
        if workers == 1:
            yield (_named(*each) for each in work)
            return
    import joblib

    options: dict[str, Any] = dict(backend="loky", n_jobs=workers, inner_max_num_threads=1)
    with _client(cluster) as client:
        if client is not None:
            options = dict(backend="dask", client=client, wait_for_workers_timeout=WAIT_FOR_WORKERS)
        with joblib.parallel_config(**options):
            patience = None if client is None else PATIENCE
            parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, timeout=patience)
            results = parallel(joblib.delayed(_named)(*each) for each in work)
            try:
                yield results
            except joblib.externals.loky.process_executor.TerminatedWorkerError as error:
                raise StrongTicketError(
                    "a worker process died, killed or out of memory. Finished pieces are kept: "
                    "run the same command again, with fewer workers if memory was short"
                ) from error
            except TimeoutError as error:
                raise StrongTicketError(
                    f"the cluster at {cluster} has finished nothing for {PATIENCE} seconds: are its workers alive? "
                    "Finished pieces are kept: run the same command again"
                ) from error
            finally:
                results.close()


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingDependency("distributed is not installed; install strongticket[cluster]") from None
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StrongTicketError(
            f"no Dask scheduler answers at cluster={address!r} ({error}); "
            "start one with `dask scheduler` and give its address, such as tcp://host:8786"
        ) from error
    with client:
        yield client


def processes(workers: int | None) -> int:
    """As many as asked for; None: one for each core that this process may use."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if type(workers) is not int or workers < 1:
        raise StrongTicketError(f"workers={workers!r}: expected a whole number of at least 1")
    return workers
