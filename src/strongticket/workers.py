"""Independent tasks on this machine's processes or a Dask cluster's; results in the order in which they come."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from strongticket import checks
from strongticket.errors import MissingDependency, StrongTicketError

CONNECT = 30  # seconds that a scheduler may take to answer
WAIT_FOR_WORKERS = 300  # and to find its first worker


@contextmanager
def results(
    function: Callable[..., Any],
    work: Iterable[tuple[Any, ...]],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    patience: float | None = None,
) -> Iterator[Iterator[Any]]:
    """function(*each) for each of `work`, which is asked for more when somebody is free.

    workers: processes (None: one a core; 1: this one); cluster: address of a Dask scheduler instead.
    patience: seconds without any result from a cluster after which it is given up.
    """
    if cluster is not None and workers is not None:
        raise StrongTicketError(
            "workers and cluster are both given: the cluster decides how many workers it has"
        )
    if cluster is None:
        workers = processes(workers)
        if workers == 1:
            yield (function(*each) for each in work)
            return
    import joblib

    options: dict[str, Any] = dict(backend="loky", n_jobs=workers, inner_max_num_threads=1)
    with _client(cluster) as client:
        if client is not None:
            options = dict(backend="dask", client=client, wait_for_workers_timeout=WAIT_FOR_WORKERS)
        with joblib.parallel_config(**options):
            # joblib does not see that all workers of a cluster's task died: hence the time-out.
            limit = None if client is None else patience
            parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, timeout=limit)
            found = parallel(joblib.delayed(function)(*each) for each in work)
            try:
                yield found
            except joblib.externals.loky.process_executor.TerminatedWorkerError as error:
                raise StrongTicketError(
                    "a worker process died, killed or out of memory",
                    hint="What is finished is kept: run the same command again, with fewer workers if memory "
                    "was short.",
                ) from error
            except TimeoutError as error:
                raise StrongTicketError(
                    f"the cluster at {cluster} has finished nothing for {patience} seconds: are its "
                    "workers alive?",
                    hint="What is finished is kept: run the same command again.",
                ) from error
            finally:
                found.close()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(workers: int | None) -> int:
    """As many as asked for; None: one for each core that this process may use."""
    if workers is None:
        return cores()
    checks.whole(workers=workers)
    return workers


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingDependency("distributed", "cluster") from None
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StrongTicketError(
            f"no Dask scheduler answers at cluster={address!r} ({error})",
            hint="Start one with `dask scheduler` and give its address, such as tcp://host:8786.",
        ) from error
    with client:
        yield client
