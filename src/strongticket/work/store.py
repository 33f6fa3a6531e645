"""Compute many points, each once: on several processes or a cluster, across kills and restarts.

A point is a dict of settings that determines its result. A finished point is a file named by a hash of those
settings and of the program's text, and it appears by rename. So whatever was finished before a kill is found again,
a changed setting or program is computed anew, and no lock or index can be left in a bad state.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.files import dump_json, parse_record, write_file
from strongticket.work.processes import processes, results

Settings = dict[str, Any]  # what JSON can hold
Compute = Callable[[Settings], Any]  # settings -> what JSON can hold
Advance = Callable[[int, int], None]  # (done, total)

NAME_LENGTH = 24  # hex digits
_FIELDS = {"version", "settings", "result"}  # until version 0.2 also "seconds"


def code_version(*parts: str) -> str:
    """Hash the program text in these files and folders of the package, such as "seeds" or "checks.py".

    >>> len(code_version("seeds", "subset_sum"))
    64
    """
    package = Path(str(files("strongticket")))
    digest = hashlib.sha256()
    for part in sorted(parts):
        path = package / part
        sources = sorted(path.glob("**/*.py")) if path.is_dir() else [path]
        for source in sources:
            text = source.read_bytes()
            digest.update(f"{source.relative_to(package).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()


@dataclass(frozen=True)
class Store:
    """A folder of finished points, computed by one version of the program (see `code_version`)."""

    folder: Path
    version: str

    def path(self, settings: Settings) -> Path:
        """Return the file of a point; equal settings have equal names, whatever the order of their keys."""
        try:
            text = dump_json([self.version, settings])
        except (TypeError, ValueError) as error:
            raise StrongTicketError(f"JSON cannot hold the settings {settings!r}: {error}") from None
        return self.folder / f"{hashlib.sha256(text).hexdigest()[:NAME_LENGTH]}.json"

    def load(self, settings: Settings) -> tuple[Any] | None:
        """Return the result in a 1-tuple (it may itself be None), or None if the point must be computed."""
        try:
            return self.read(self.path(settings))
        except (FileNotFoundError, StrongTicketError):  # damaged from outside: cheaper to compute than to ask
            return None

    def read(self, path: Path) -> tuple[Any]:
        """Return the result in a file of this store, in a 1-tuple."""
        record = parse_record(path.name, path.read_bytes(), _FIELDS, _FIELDS | {"seconds"})
        if self.path(record["settings"]) != path:
            raise StrongTicketError(f"{path} holds another point: files were renamed")
        return (record["result"],)

    def save(self, settings: Settings, result: Any) -> None:
        """Store a result; `load` may give it back with its keys in another order."""
        try:
            text = dump_json({"version": self.version, "settings": settings, "result": result})
        except (TypeError, ValueError) as error:
            raise StrongTicketError(
                f"JSON cannot hold the result of {settings!r}: {error}", hint="Use None for a gap."
            ) from None
        write_file(self.path(settings), text + b"\n")

    def clear(self) -> None:
        """Remove the finished points, and their folder if it holds nothing else."""
        for file in self.folder.glob("*.json"):
            file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


def compute_points(
    function: Compute,
    points: Sequence[Settings],
    store: Store,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    threads: int | None = 1,
    progress: Advance = lambda done, total: None,
) -> list[Any]:
    """Return the results of all points, in their order; those found in `store` are not computed again.

    Args:
        function: of a module, since it is sent to other processes; or a functools.partial of one that binds what
            the result does not depend on (paths, data named by a hash).
        points: the settings of each point.
        store: keeps the finished points; its folder is made if it does not exist.
        workers: number of processes; None means one per core, 1 runs in-process.
        cluster: address of a Dask scheduler whose workers compute instead.
        threads: see limited_threads; 1 makes sums independent of the machine.
        progress: called with (done, total) at the start and after every point.
    """
    store.folder.mkdir(parents=True, exist_ok=True)
    wanted = {store.path(point): point for point in points}
    found = {path: stored[0] for path, point in wanted.items() if (stored := store.load(point))}
    missing = [
        (path, wanted[path], (threads, function, wanted[path])) for path in wanted if path not in found
    ]
    progress(len(found), len(wanted))
    if missing:
        if cluster is None:
            workers = min(processes(workers), len(missing))
        for path, _, _ in run_pieces(_with_threads, missing, store, workers=workers, cluster=cluster):
            (found[path],) = store.read(path)
            progress(len(found), len(wanted))
    return [found[store.path(point)] for point in points]


def run_pieces(
    function: Callable[..., Any],
    pieces: Iterable[tuple[Any, Settings, tuple[Any, ...]]],
    store: Store,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    threads: bool = False,
) -> Iterator[tuple[Any, Path, Any]]:
    """Yield (key, file, result) of every piece, in any order; those found in `store` are not computed again.

    Args:
        function: arguments -> what JSON can hold.
        pieces: (key, settings that determine the result, arguments), consumed when a worker is free for them.
        store: keeps the finished pieces; its folder is made if it does not exist.
        workers: as in `results`.
        cluster: as in `results`.
        threads: as in `results`.
    """
    store.folder.mkdir(parents=True, exist_ok=True)
    ready: deque[tuple[Any, Path, Any]] = deque()

    def missing() -> Iterator[tuple[Any, Settings, Callable[..., Any], tuple[Any, ...]]]:
        for key, settings, arguments in pieces:
            if stored := store.load(settings):
                ready.append((key, store.path(settings), stored[0]))
            else:
                yield key, settings, function, arguments

    with results(_keyed, missing(), workers=workers, cluster=cluster, threads=threads) as finished:
        for key, settings, result in finished:
            store.save(settings, result)
            ready.append((key, store.path(settings), result))
            while ready:
                yield ready.popleft()
    yield from ready


def _keyed(
    key: Any, settings: Settings, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Any, Settings, Any]:
    return key, settings, function(*arguments)


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Let torch and numba use this many threads inside the block (None: as many as before), then restore them."""
    if threads is None:
        yield
        return
    import torch
    from numba import config, get_num_threads, set_num_threads

    before = torch.get_num_threads(), get_num_threads()
    torch.set_num_threads(threads)
    set_num_threads(min(threads, vars(config)["NUMBA_NUM_THREADS"]))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        set_num_threads(before[1])


def _with_threads(threads: int | None, function: Compute, settings: Settings) -> Any:
    with limited_threads(threads):
        return function(settings)
