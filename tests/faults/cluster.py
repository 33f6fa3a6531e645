"""Clusters that fail: each must be a clear error or, where others can go on, the bytes of a run on one core."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from strongticket.errors import StrongTicketError
from strongticket.work import processes as workers

OPTIONS: dict[str, Any] = dict(by="subset", per_row=12, tolerance=1e-2)  # many pieces
TASKS = 40

# Programs that become a worker of the scheduler at argv[1], each with a fault of its own.
WORKER = """
import asyncio, sys
{first}
from distributed import Worker
async def main():
    async with Worker(sys.argv[1], nthreads=1, dashboard_address=None) as worker:
        await worker.finished()
if __name__ == "__main__":
    asyncio.run(main())
"""
WITHOUT_PACKAGE = """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "strongticket":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
SCHEDULER = """
import asyncio
from distributed import Scheduler
async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address=None) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""


class Cluster:
    """A scheduler and workers, each a process that can be killed."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        self.scheduler = self._start(SCHEDULER)
        assert self.scheduler.stdout
        self.address = self.scheduler.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def worker(self, first: str = "") -> subprocess.Popen[str]:
        return self._start(WORKER.format(first=first), self.address)

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

        def end() -> None:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()

        self._stack.callback(end)
        return process


def pid_after(seconds: float, number: int) -> tuple[int, int]:
    """A task that takes its time, and says who did it."""
    time.sleep(seconds)
    return number, os.getpid()


def _run(cluster: str, on_result: Callable[[int], None] = lambda _: None) -> set[int]:
    """Do all tasks there; the processes that did them."""
    with workers.results(pid_after, ((0.02, n) for n in range(TASKS)), cluster=cluster) as found:
        numbers, doers = [], set()
        for number, pid in found:
            numbers.append(number)
            doers.add(pid)
            on_result(len(numbers))
    assert sorted(numbers) == list(range(TASKS)), numbers
    return doers


def one_core() -> str:
    """A single worker with a single core does the work; joblib's backend left it to the driver."""
    with Cluster() as cluster:
        worker = cluster.worker()
        assert _run(cluster.address) == {worker.pid}
    return "done by the worker"


def worker_killed() -> str:
    with Cluster() as cluster:
        victim, other = cluster.worker(), cluster.worker()
        _await_workers(cluster.address, 2)
        doers = _run(cluster.address, lambda done: victim.kill() if done == 10 else None)
        assert doers == {victim.pid, other.pid}
    return "done by the other worker"


def all_workers_killed() -> str:
    with Cluster() as cluster, mock.patch.object(workers, "WAIT_FOR_WORKERS", 3):
        worker = cluster.worker()
        _await_workers(cluster.address, 1)
        return _refusal(cluster.address, lambda done: worker.kill() if done == 5 else None)


def scheduler_killed() -> str:
    with Cluster() as cluster, mock.patch.object(workers, "CONNECT", 5):
        cluster.worker()
        _await_workers(cluster.address, 1)
        return _refusal(cluster.address, lambda done: cluster.scheduler.kill() if done == 5 else None)


def no_worker() -> str:
    with Cluster() as cluster, mock.patch.object(workers, "WAIT_FOR_WORKERS", 1):
        return _refusal(cluster.address)


def _unfit_worker(first: str) -> str:
    with Cluster() as cluster:
        cluster.worker(first)
        return _refusal(cluster.address)


def other_version() -> str:
    return _unfit_worker("import strongticket; strongticket.__version__ = '0.0.1'")


def without_package() -> str:
    return _unfit_worker(WITHOUT_PACKAGE)


def wrong_address() -> str:
    with mock.patch.object(workers, "CONNECT", 1):
        return "; ".join(_refusal(address) for address in ("tcp://127.0.0.1:9", "nowhere", "http://[", ""))


FAILURES: dict[Callable[[], str], str] = {  # what the answer must contain
    one_core: "done by the worker",
    worker_killed: "done by the other worker",
    all_workers_killed: "lost all its workers",
    scheduler_killed: "was lost",
    no_worker: "has no worker",
    other_version: "a worker has strongticket 0.0.1",
    without_package: "has no strongticket",
    wrong_address: "no Dask scheduler answers",
}


def cluster_failures() -> list[dict[str, Any]]:
    """One row per failure. wrong: it ended otherwise than it should, or with another exception."""
    return [_outcome(failure, expected) for failure, expected in FAILURES.items()]


def _outcome(failure: Callable[[], str], expected: str) -> dict[str, Any]:
    start = time.monotonic()
    try:
        said = failure()
    except Exception as error:  # whatever it is, it is what a user would see as a traceback
        said = f"{type(error).__name__}: {error}"
    row = {"failure": failure.__name__.replace("_", " "), "wrong": expected not in said, "said": said}
    return row | {"seconds": round(time.monotonic() - start, 1)}


def _refusal(address: str, on_result: Callable[[int], None] = lambda _: None) -> str:
    try:
        _run(address, on_result)
    except StrongTicketError as error:
        return error.what
    return "no error"


def _await_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def small_model() -> Any:
    """A GPT-2 of one block, with random weights that are the same every time."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT2LMHeadModel(config).eval()


def kill_a_worker() -> dict[str, Any]:
    """A worker killed in the middle of a build: the file must have the bytes of a build on one core."""
    from strongticket.builders import build_file

    model = small_model()
    killed: list[tuple[int, int]] = []

    def kill(done: int, total: int) -> None:
        if not killed and 4 * done > total:
            killed.append((done, total))
            victim.kill()
            time.sleep(0.5)  # so that it is noticed before the work is done

    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        alone, together = Path(name) / "alone.ticket", Path(name) / "together.ticket"
        build_file(model, alone, workers=1, **OPTIONS)
        victim, _ = cluster.worker(), cluster.worker()
        _await_workers(cluster.address, 2)
        build_file(model, together, cluster=cluster.address, progress=kill, **OPTIONS)
        same = alone.read_bytes() == together.read_bytes()
    done, total = killed[0]
    return {"workers": 2, "killed": 1, "problems": total, "done_before": done, "identical": same}
