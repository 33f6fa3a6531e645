"""The same bytes whoever codes the blocks, whatever dies on the way; nothing finished is done twice."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.faults.memory import ROOT
from tests.models.small_models import hf_model, trained

from strongticket import files
from strongticket.builders import build_file, choices, subset
from strongticket.errors import StrongTicketError
from strongticket.ticket import Ticket
from strongticket.work.store import Store

BATCH = 200  # numbers: many pieces of a small model
OPTIONS = {
    "choice": dict(tolerance=1e-2, seed=3),
    "subset": dict(by="subset", tolerance=1e-2, per_row=12, seed=3),
}


@pytest.fixture(scope="module")
def model():
    return hf_model("llama-bias")


@pytest.fixture(scope="module", params=OPTIONS)
def options(request):
    return OPTIONS[request.param]


@pytest.fixture(scope="module")
def expected(model, options, tmp_path_factory) -> bytes:
    """All blocks in one piece."""
    path = tmp_path_factory.mktemp("expected") / "a.ticket"
    build_file(model, path, workers=1, **options)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(choices, "BATCH", BATCH)


@pytest.fixture
def solved(monkeypatch) -> list[object]:
    """Pieces that were really done in this process."""
    done: list[object] = []
    code, prune = choices.code_batch, subset.prune_pair
    monkeypatch.setattr(choices, "code_batch", lambda *given: done.append(given) or code(*given))
    monkeypatch.setattr(subset, "prune_pair", lambda *given: done.append(given) or prune(*given))
    return done


def pieces(folder) -> list:
    return sorted((folder / "a.ticket.pieces").glob("*.json"))


def test_pieces_are_removed_once_the_file_is_written(model, options, tmp_path, solved, expected):
    build_file(model, tmp_path / "a.ticket", workers=1, **options)
    assert (tmp_path / "a.ticket").read_bytes() == expected
    assert len(solved) > 10
    assert [path.name for path in tmp_path.iterdir()] == ["a.ticket"]
    ticket = Ticket.from_bytes(expected)
    assert ticket.to_bytes() == expected
    ticket.verify()


def test_two_workers_give_the_same_bytes(model, options, expected, tmp_path):
    seen: list[tuple[int, int]] = []
    build_file(model, tmp_path / "a.ticket", workers=2, progress=lambda *now: seen.append(now), **options)
    assert (tmp_path / "a.ticket").read_bytes() == expected
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == sum(p.numel() for p in model.parameters())


def in_another_process(folder, options, workers: int, progress: str) -> subprocess.CompletedProcess:
    """Build there; `progress` is the body of a function of done and total."""
    script = f"""
import os, psutil, signal, sys
sys.path.insert(0, {str(ROOT)!r})

from tests.models.small_models import hf_model
from strongticket.builders import build_file, choices, subset

def progress(done, total):
    {progress}

def slow(*given):  # so that some are left when something happens
    import time
    from strongticket.builders.subset import prune_pair
    time.sleep(0.05)
    return prune_pair(*given)

choices.BATCH = {BATCH}
if {workers} > 1:
    subset.prune_pair = slow
build_file(hf_model("llama-bias"), "a.ticket", workers={workers}, progress=progress, **{options!r})
"""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=folder, timeout=300, capture_output=True, text=True)


def goes_on(model, options, folder, expected, solved) -> None:
    kept = len(pieces(folder))
    assert kept > 1
    assert not (folder / "a.ticket").exists()
    build_file(model, folder / "a.ticket", workers=1, **options)
    assert (folder / "a.ticket").read_bytes() == expected
    first = len(solved)
    build_file(model, folder / "b.ticket", workers=1, **options)
    assert first == len(solved) - first - kept


def test_a_killed_driver_goes_on(model, options, tmp_path, expected, solved):
    kill = "3 * done > total and os.kill(os.getpid(), signal.SIGKILL)"
    killed = in_another_process(tmp_path, options, 1, kill)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    goes_on(model, options, tmp_path, expected, solved)


@pytest.mark.parametrize("options", ["subset"], indirect=True)
def test_a_dead_worker_is_reported_and_nothing_is_lost(model, options, tmp_path, expected, solved):
    """Choices are coded by threads, subset sums solved by processes."""
    workers = (
        "[c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE "
        "and any('popen_loky' in word for word in c.cmdline())]"
    )
    output = in_another_process(tmp_path, options, 2, f"4 * done > total and [c.kill() for c in {workers}]")
    assert "StrongTicketError: a worker process died" in output.stderr
    goes_on(model, options, tmp_path, expected, solved)


def test_a_full_disk_is_reported_and_nothing_is_lost(model, options, expected, tmp_path, monkeypatch, solved):
    """And damaged pieces are done again: one cut off, two with their names swapped."""
    stored = []

    def replace(temporary, path):
        if len(stored) == 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        stored.append(path)
        os.rename(temporary, path)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", replace)
        with pytest.raises(StrongTicketError, match=r"No space left"):
            build_file(model, tmp_path / "a.ticket", workers=1, **options)
    assert len(pieces(tmp_path)) == 10
    stored[0].write_bytes(stored[0].read_bytes()[:-5])
    one, other = stored[1].read_bytes(), stored[2].read_bytes()
    stored[1].write_bytes(other)
    stored[2].write_bytes(one)
    solved.clear()
    build_file(model, tmp_path / "a.ticket", workers=1, **options)
    assert (tmp_path / "a.ticket").read_bytes() == expected
    again = len(solved)
    build_file(model, tmp_path / "b.ticket", workers=1, **options)
    assert again == len(solved) - again - 7


def test_pieces_of_another_seed_or_model_are_not_taken(model, options, tmp_path, solved, monkeypatch):
    options = options | dict(only="model.layers.0.mlp.*", workers=1)
    folder = tmp_path / "a.ticket.pieces"
    folder.mkdir()
    (folder / "mine.txt").write_text("not a piece")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "clear", lambda self: None)
        build_file(model, tmp_path / "a.ticket", **options)
    first, data = len(solved), (tmp_path / "a.ticket").read_bytes()
    other = trained(hf_model("llama-bias"), seed=1)
    for target, changes in ((model, {"seed": 4}), (other, {})):
        build_file(target, tmp_path / "a.ticket", **options | changes)
        assert (tmp_path / "a.ticket").read_bytes() != data
    assert len(solved) == 3 * first
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


@pytest.fixture(scope="module")
def cluster(dask_cluster):
    with dask_cluster(2) as started:
        yield started


def test_a_cluster_gives_the_same_bytes_also_when_a_worker_is_killed(
    model, options, expected, tmp_path, cluster
):
    address = cluster.scheduler_address
    build_file(model, tmp_path / "a.ticket", cluster=address, **options)
    assert (tmp_path / "a.ticket").read_bytes() == expected

    victim = next(iter(cluster.workers.values())).pid
    pids: list[int] = []

    def kill(done: int, total: int) -> None:
        if not pids and 4 * done > total:
            pids.append(victim)
            os.kill(victim, signal.SIGKILL)
            time.sleep(0.5)

    build_file(model, tmp_path / "b.ticket", cluster=address, progress=kill, **options)
    assert pids
    assert (tmp_path / "b.ticket").read_bytes() == expected
