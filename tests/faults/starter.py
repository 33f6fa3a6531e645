"""Command lines that start at once and can be killed: one process has imported everything, and forks a run.

Each run is a process of its own that calls the program's `main`. It can be made to kill itself with SIGKILL
right before its n-th change of a file: before a file is opened for writing, renamed or removed.

Runs also get a small disk of their own: a tmpfs in a mount namespace that ends with the process.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.memory import ROOT

DISK_SIZE = 16 << 20  # bytes: a results folder is a third of it
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree")


@dataclass(frozen=True)
class Run:
    """How a run ended: exit code (negative: the signal's number), seconds, changes of files, its output."""

    code: int
    seconds: float
    changes: int
    stdout: str
    stderr: str


class Starter:
    """Starts runs one after the other; leave the `with` block to end it.

    environment: variables of all runs besides those of this process
    disk: the small disk as runs see it; has_disk: whether this machine allows one
    """

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self.disk = Path(tempfile.mkdtemp())
        namespace = ["unshare", "--map-root-user", "--mount"]
        self.has_disk = _works([*namespace, *_mount(self.disk)])
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "NUMBA")}
        variables = os.environ | threads | (environment or {})
        command = [sys.executable, "-m", "tests.faults.starter"]
        if self.has_disk:
            command = [*namespace, *command, str(self.disk)]
        self._server = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()  # the end of its input is its end
        shutil.rmtree(self.disk)

    def seen(self, path: Path) -> Path:
        """How this process gets at a path of the runs."""
        return Path(f"/proc/{self._server.pid}/root{path}") if path.is_relative_to(self.disk) else path

    def run(
        self,
        arguments: list[str],
        folder: Path,
        *,
        kill_after: float | None = None,
        kill_at_change: int | None = None,
        file_limit: int | None = None,
    ) -> Run:
        """`strongticket ARGUMENTS` in a folder, to its end or its death.

        kill_after: seconds; file_limit: the most bytes that a file may get (a write past it is an error)
        """
        assert self._server.stdin
        request = dict(arguments=arguments, folder=str(folder), change=kill_at_change, limit=file_limit)
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        pid = self._answer()["pid"]
        timer = threading.Timer(kill_after or 0.0, _kill, (pid,))
        if kill_after is not None:
            timer.start()
        try:
            return Run(**self._answer())
        finally:
            timer.cancel()

    def _answer(self) -> Any:
        assert self._server.stdout
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"the starter ended with exit code {self._server.wait()}")
        return json.loads(line)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _import_all() -> None:
    """What the commands import, and the compiled kernels; nothing that starts a thread, which no fork survives."""
    from importlib import import_module

    from strongticket import nets
    from strongticket.builders import build_network

    build_network(nets.Block(nets.MultiHeadAttention(2, 2, 1, 1, 1), nets.ReluNetwork([2, 2])), width=8)
    for name in ("reproduce.figure4", "searching.train", "builders.model"):
        with contextlib.suppress(ImportError):
            import_module(f"strongticket.{name}")


def _mount(folder: Path | str) -> list[str]:
    return ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(folder)]


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def _serve(disk: str | None) -> None:
    if disk:
        subprocess.run(_mount(disk), check=True)
    _import_all()
    gc.freeze()  # no run has to look for garbage in what is imported
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory() as logs:
            start = time.perf_counter()
            pid = os.fork()
            if pid == 0:
                _child(request, Path(logs))
            print(json.dumps({"pid": pid}), flush=True)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            seconds = time.perf_counter() - start
            # Worker processes that outlive a killed run belong to its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            text = {name: (Path(logs) / name).read_text(errors="replace") for name in ("stdout", "stderr")}
            changes = Path(logs) / "changes"
            count = int(changes.read_text()) if changes.exists() else 0
        answer = dict(code=status, seconds=seconds, changes=count, **text)
        print(json.dumps(answer), flush=True)


def _child(request: dict[str, Any], logs: Path) -> None:
    """Becomes the run; never returns."""
    code = 70
    try:
        os.setsid()
        for number, path in ((0, os.devnull), (1, logs / "stdout"), (2, logs / "stderr")):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
        os.chdir(request["folder"])
        counter = _count_changes(Path(request["folder"]).resolve(), request["change"])
        if request["limit"] is not None:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], most))
        code = _main(request["arguments"])
        (logs / "changes").write_text(str(counter[0]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _main(arguments: list[str]) -> int:
    import traceback

    from strongticket.cli import main

    sys.argv = ["strongticket", *arguments]
    random.seed()  # the server's forks would all have its state: temporary names must differ
    try:
        main()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _count_changes(folder: Path, kill_at: int | None) -> list[int]:
    counter = [0]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            changes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            changes = event in CHANGES
        if not changes or not isinstance(arguments[0], str | os.PathLike):
            return
        if not Path(os.path.abspath(arguments[0])).is_relative_to(folder):
            return
        counter[0] += 1
        if counter[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    return counter


if __name__ == "__main__":
    _serve(sys.argv[1] if sys.argv[1:] else None)
