"""Compute many points, each once: on several processes or a cluster, across kills and restarts.

A point is a dict of settings that determines its result. Its id is a hash of those settings and of `version`;
a finished point is a file of that name, which appears by rename. So whatever was finished before a kill is found
again, a changed setting or program is computed anew, and no lock or index can be left in a bad state.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from strongticket.errors import StrongTicketError
from strongticket.files import dump_json, parse_record, write_file
from strongticket.work import processes

Settings = dict[str, Any]  # what JSON can hold
Compute = Callable[[Settings], Any]  # settings -> what JSON can hold
Advance = Callable[[int, int], None]  # (done, total)

ID_LENGTH = 24  # hex digits


def point_id(settings: Settings, version: str) -> str:
    """Return the name of a point; equal settings have equal names, whatever the order of their keys.

    settings: what the result depends on; must be what JSON can hold
    version: of the program that computes it, see `code_version`

    >>> point_id({"n": 8, "seed": 0}, "1") == point_id({"seed": 0, "n": 8}, "1")
    True
    """
    try:
        return hashlib.sha256(dump_json([version, settings])).hexdigest()[:ID_LENGTH]
    except (TypeError, ValueError) as error:
        raise StrongTicketError(
            f"a point's settings must be what JSON can hold, got {settings!r}: {error}"
        ) from None


def code_version(*parts: str) -> str:
    """Hash the program text in these files and folders of the package: the `version` of what they compute.

    parts: paths inside the package, such as "seeds" or "subset_sum"

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


def run_points(
    compute: Compute,
    points: Sequence[Settings],
    store: Path,
    *,
    version: str,
    workers: int | None = None,
    cluster: str | None = None,
    threads: int | None = 1,
    progress: Advance = lambda done, total: None,
) -> list[Any]:
    """Return the results of all points, in their order; those found in `store` are not computed again.

    compute: settings -> what JSON can hold. It is sent to other processes: a function of a module, or a
        functools.partial of one that binds what the id should not depend on (paths, data named by a hash)
    points: the settings of each point
    store: folder of the finished points
    version: of the program that computes them, see `code_version`
    workers: number of processes; None means one per core, 1 runs in-process
    cluster: address of a Dask scheduler whose workers compute instead
    threads: what torch and numba may use inside a point; 1 makes sums independent of the machine, None leaves
        them alone
    progress: called with (done, total) at the start and after every point
    """
    store.mkdir(parents=True, exist_ok=True)
    wanted = {point_id(point, version): point for point in points}
    results = {name: stored[0] for name in wanted if (stored := _load(store / f"{name}.json", version))}
    missing = [(name, point) for name, point in wanted.items() if name not in results]
    progress(len(results), len(wanted))
    if missing:
        if cluster is None:
            workers = min(processes.processes(workers), len(missing))
        tasks = ((name, compute, point, threads) for name, point in missing)
        with processes.results(_timed, tasks, workers=workers, cluster=cluster) as finished:
            for name, result, seconds in finished:
                _save(store / f"{name}.json", version, wanted[name], result, seconds)
                results[name] = result
                progress(len(results), len(wanted))
    return [results[point_id(point, version)] for point in points]


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Let torch and numba use this many threads inside the block, then restore what they used before.

    threads: None changes nothing
    """
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


def _timed(name: str, compute: Compute, settings: Settings, threads: int | None) -> tuple[str, Any, float]:
    start = time.perf_counter()
    with limited_threads(threads):
        result = compute(settings)
    return name, result, time.perf_counter() - start


def _save(path: Path, version: str, settings: Settings, result: Any, seconds: float) -> None:
    record = dict(version=version, settings=settings, seconds=round(seconds, 3), result=result)
    try:
        text = dump_json(record)
    except (TypeError, ValueError) as error:
        raise StrongTicketError(
            f"the result of point {settings!r} is not what JSON can hold ({error})",
            hint="Use None for a gap.",
        ) from None
    write_file(path, text + b"\n")


def _load(path: Path, version: str) -> tuple[Any] | None:
    """Return the result in a 1-tuple (it may itself be None), or None if the point must be computed."""
    try:
        record = parse_record(path.name, path.read_bytes(), {"version", "settings", "seconds", "result"})
        same = point_id(record["settings"], version) == path.stem
    except (FileNotFoundError, StrongTicketError):  # damaged from outside: cheaper to compute than to ask
        return None
    return (record["result"],) if same else None
