"""Independent tasks on this machine's processes or a Dask cluster's; results in the order in which they finish.

A Dask scheduler must be trusted: it can run any code on its workers, and on whoever connects to it.
"""

import importlib.util
import logging
import socket
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

from strongticket import __version__, checks
from strongticket.cores import cores
from strongticket.errors import MissingDependency, StrongTicketError

CONNECT = 30  # seconds that a scheduler may take to answer
WAIT_FOR_WORKERS = 300  # seconds without any worker after which a cluster is given up
LOOK = 2  # seconds between checks of a cluster that has finished nothing
AHEAD = 2  # tasks handed out at a time, per thread of the cluster
_KEPT = "What is finished is kept: run the same command again."
Result = TypeVar("Result")


@contextmanager
def results(
    function: Callable[..., Result],
    work: Iterable[tuple[object, ...]],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    threads: bool = False,
) -> Iterator[Iterator[Result]]:
    """Iterate over function(*arguments) for every tuple of arguments in `work`, which is consumed lazily.

    Args:
        function: from a module that the workers have too.
        work: tuples of arguments.
        workers: number of processes; None means one per core, 1 runs in-process.
        cluster: address of a Dask scheduler whose workers do it instead.
        threads: use threads instead of processes, for compiled functions that run beside each other.
    """
    if cluster is not None:
        if workers is not None:
            raise StrongTicketError(
                "workers and cluster are both given: the cluster decides how many workers it has"
            )
        with _client(cluster) as client:
            yield _on_cluster(client, cluster, function, work)
    elif (workers := processes(workers)) == 1:
        yield (function(*arguments) for arguments in work)
    else:
        with _on_processes(function, work, workers, "threading" if threads else "loky") as found:
            yield found


def processes(workers: int | None) -> int:
    """Return how many processes to start: as many as asked for, or one per core for None."""
    if workers is None:
        return cores()
    checks.whole(workers=workers)
    return workers


@contextmanager
def _on_processes(
    function: Callable[..., Result], work: Iterable[tuple[object, ...]], workers: int, backend: str
) -> Iterator[Iterator[Result]]:
    import joblib

    inner = {"inner_max_num_threads": 1} if backend == "loky" else {}
    with joblib.parallel_config(backend=backend, n_jobs=workers, **inner):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        found = parallel(joblib.delayed(function)(*arguments) for arguments in work)
        try:
            yield found
        except joblib.externals.loky.process_executor.TerminatedWorkerError as error:
            raise StrongTicketError(
                "a worker process died, killed or out of memory",
                hint=f"{_KEPT[:-1]}, with fewer workers if memory was short.",
            ) from error
        finally:
            found.close()


@contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise MissingDependency("distributed", "cluster") from None
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is raised
    try:
        _check_reachable(address)
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise StrongTicketError(
            f"no Dask scheduler answers at cluster={address!r} ({error})",
            hint="Start one with `dask scheduler` and give its address, such as tcp://host:8786.",
        ) from error
    try:
        yield client
    finally:
        with suppress(Exception):  # a scheduler may already be gone
            client.close(timeout=CONNECT)


def _check_reachable(address: str) -> None:
    """Raise OSError unless something listens there: a Client that cannot connect complains again when it is deleted."""
    scheme, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    if scheme not in ("", "tcp", "tls") or not host or not port.isdecimal():
        raise ValueError("expected tcp://host:port or tls://host:port")
    with socket.create_connection((host.strip("[]"), int(port)), CONNECT):
        pass


def _on_cluster(
    client: Any,
    address: str,
    function: Callable[..., Result],
    work: Iterable[tuple[object, ...]],
) -> Iterator[Result]:
    """Hand out a few tasks per thread, and one more for each that is finished."""
    tasks = iter(work)
    running: set[Any] = set()
    known: set[str] = set()
    try:
        client.wait_for_workers(1, timeout=WAIT_FOR_WORKERS)
    except Exception as error:  # a time-out, or whatever a connection that breaks raises
        raise StrongTicketError(
            f"the cluster at {address} has no worker ({type(error).__name__})",
            hint=f"Start one with `dask worker {address}`.",
        ) from error
    while True:
        with _connection(address):
            _check_new_workers(client, address, known)
            threads = max(1, int(sum(client.nthreads().values())))  # workers come and go
        for arguments in islice(tasks, max(0, AHEAD * threads - len(running))):
            # Arguments travel with the task, so that the scheduler can give it to another worker.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")
                running.add(client.submit(_run, __version__, function, arguments, pure=False))
        if not running:
            return
        with _connection(address):
            done = _first_finished(client, address, running, known)
        running -= done
        for future in done:
            yield _result(future, address)


@contextmanager
def _connection(address: str) -> Iterator[None]:
    """Report whatever a connection that breaks raises, such as CancelledError of every task."""
    try:
        yield
    except StrongTicketError:
        raise
    except Exception as error:
        raise _lost(address, error) from error


def _check_new_workers(client: Any, address: str, known: set[str]) -> None:
    """Refuse a worker without the package, which would take tasks and never answer; each is asked once."""
    new = [worker for worker in client.scheduler_info()["workers"] if worker not in known]
    known.update(new)
    if not new:
        return
    found = client.run(importlib.util.find_spec, "strongticket", workers=new, on_error="return")
    for worker, spec in found.items():
        if spec is None or isinstance(spec, ImportError):
            raise StrongTicketError(
                f"the worker {worker} of the cluster at {address} has no strongticket",
                hint="Install the same version of strongticket on every worker.",
            )


def _first_finished(client: Any, address: str, running: set[Any], known: set[str]) -> set[Any]:
    """The futures that are finished, as soon as there are any."""
    from distributed import wait

    seen = time.monotonic()
    while True:
        with suppress(TimeoutError), client.as_current():
            finished: set[Any] = wait(list(running), timeout=LOOK, return_when="FIRST_COMPLETED").done
            return finished
        if client.status != "running":
            raise ConnectionError(f"the connection is {client.status}")
        _check_new_workers(client, address, known)
        if client.scheduler_info()["workers"]:
            seen = time.monotonic()
        elif time.monotonic() - seen > WAIT_FOR_WORKERS:
            raise StrongTicketError(f"the cluster at {address} has lost all its workers", hint=_KEPT)


def _result(future: Any, address: str) -> Any:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        return future.result()
    except KilledWorker as error:
        raise StrongTicketError(
            f"the workers that took the same task died one after another: {error}",
            hint=f"They may be short of memory. {_KEPT}",
        ) from error
    except FutureCancelledError as error:
        raise _lost(address, error) from error
    except ModuleNotFoundError as error:
        raise StrongTicketError(
            f"a worker of the cluster at {address} has no {error.name}",
            hint="Install the same packages on every worker.",
        ) from error


def _lost(address: str, error: BaseException) -> StrongTicketError:
    return StrongTicketError(
        f"the connection to the cluster at {address} was lost ({type(error).__name__})",
        hint=f"Check its scheduler. {_KEPT}",
    )


def _run(version: str, function: Callable[..., Result], arguments: tuple[object, ...]) -> Result:
    """Run on the worker, if it has the same version: another one may compute other bytes."""
    if version != __version__:
        raise StrongTicketError(
            f"a worker has strongticket {__version__}, the driver {version}",
            hint="Install the same version on every worker.",
        )
    return function(*arguments)
