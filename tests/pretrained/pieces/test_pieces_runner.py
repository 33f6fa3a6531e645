"""Pieces: the same bytes whoever does them, whatever dies on the way; nothing finished is done twice."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.faults.starter import ROOT
from tests.pretrained.small_models import hf_model

from strongticket.errors import StrongTicketError
from strongticket.pretrained import build_file, build_ticket
from strongticket.pretrained.pieces import runner, solve_piece
from strongticket.ticket import Ticket

OPTIONS = dict(units=12, tolerance=1e-2, piece_problems=200, seed=3)


@pytest.fixture(scope="module")
def model():
    return hf_model("llama-bias")


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("expected") / "a.ticket"
    build_file(model, path, workers=1, **OPTIONS)
    return path.read_bytes()


@pytest.fixture
def solved(monkeypatch) -> list[bytes]:
    """Jobs that were really solved in this process."""
    done: list[bytes] = []

    def counting(data: bytes) -> bytes:
        done.append(data)
        return solve_piece(data)

    monkeypatch.setattr(runner, "solve_piece", counting)
    return done


def test_the_file_is_what_a_ticket_saves(model, expected):
    ticket = Ticket.from_bytes(expected)
    assert ticket.to_bytes() == expected
    ticket.verify()
    pieces = {name.rpartition(".")[0] for name in ticket.masks}
    assert len(pieces) >= len(dict(model.named_parameters())) > 30


def test_pieces_are_removed_once_the_file_is_written(model, tmp_path):
    build_file(model, tmp_path / "a.ticket", workers=1, only="lm_head*", **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ticket"]


def test_two_workers_give_the_same_bytes(model, expected, tmp_path):
    seen: list[tuple[int, int]] = []
    build_file(model, tmp_path / "a.ticket", workers=2, progress=lambda *now: seen.append(now), **OPTIONS)
    assert (tmp_path / "a.ticket").read_bytes() == expected
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == sum(p.numel() for p in model.parameters())


def in_another_process(folder, workers: int, progress: str) -> subprocess.CompletedProcess:
    """Build there; `progress` is the body of a function of done and total."""
    script = f"""
import os, psutil, signal, sys
sys.path.insert(0, {str(ROOT)!r})

from tests.pretrained.small_models import hf_model
from strongticket.pretrained import build_file

def progress(done, total):
    {progress}

build_file(hf_model("llama-bias"), "a.ticket", workers={workers}, progress=progress, **{OPTIONS!r})
"""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=folder, timeout=300, capture_output=True, text=True)


def goes_on(model, folder, expected, solved) -> None:
    kept = len(list((folder / "a.ticket.pieces").glob("*.piece")))
    assert kept > 1
    assert not (folder / "a.ticket").exists()
    build_file(model, folder / "a.ticket", workers=1, **OPTIONS)
    assert (folder / "a.ticket").read_bytes() == expected
    assert len(solved) == len(Ticket.from_bytes(expected).masks) // 2 - kept


def test_a_killed_driver_goes_on(model, tmp_path, expected, solved):
    killed = in_another_process(tmp_path, 1, "3 * done > total and os.kill(os.getpid(), signal.SIGKILL)")
    assert killed.returncode == -signal.SIGKILL
    goes_on(model, tmp_path, expected, solved)


def test_a_dead_worker_is_reported_and_nothing_is_lost(model, tmp_path, expected, solved):
    workers = (
        "[c for c in psutil.Process().children() if c.status() != psutil.STATUS_ZOMBIE "
        "and any('popen_loky' in word for word in c.cmdline())]"
    )
    output = in_another_process(tmp_path, 2, f"4 * done > total and [c.kill() for c in {workers}]")
    assert "StrongTicketError: a worker process died" in output.stderr
    goes_on(model, tmp_path, expected, solved)


def test_a_full_disk_is_reported_and_nothing_is_lost(model, expected, tmp_path, monkeypatch, solved):
    stored = []

    def replace(temporary, path):
        if len(stored) == 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        stored.append(path)
        os.rename(temporary, path)

    with monkeypatch.context() as patch:
        patch.setattr(runner.os, "replace", replace)
        with pytest.raises(StrongTicketError, match=r"No space left.*make room"):
            build_file(model, tmp_path / "a.ticket", workers=1, **OPTIONS)
    assert len(list((tmp_path / "a.ticket.pieces").iterdir())) == 20
    stored[0].write_bytes(stored[0].read_bytes()[:-1])  # and one piece is damaged
    solved.clear()
    build_file(model, tmp_path / "a.ticket", workers=1, **OPTIONS)
    assert (tmp_path / "a.ticket").read_bytes() == expected
    assert len(solved) == len(Ticket.from_bytes(expected).masks) // 2 - 19


def test_pieces_of_another_seed_are_not_taken(model, tmp_path, solved, monkeypatch):
    options = OPTIONS | dict(only="lm_head*", workers=1)
    pieces = tmp_path / "a.ticket.pieces"
    pieces.mkdir()
    (pieces / "mine.txt").write_text("not a piece")
    with monkeypatch.context() as patch:
        patch.setattr(runner.Folder, "remove", lambda self: None)
        build_file(model, tmp_path / "a.ticket", **options)
    first, data = len(solved), (tmp_path / "a.ticket").read_bytes()
    build_file(model, tmp_path / "a.ticket", **(options | dict(seed=4)))
    assert len(solved) == 2 * first
    assert (tmp_path / "a.ticket").read_bytes() != data
    assert [path.name for path in pieces.iterdir()] == ["mine.txt"]


def test_pieces_with_swapped_names_are_noticed(model, tmp_path, solved, monkeypatch):
    monkeypatch.setattr(runner.Folder, "remove", lambda self: None)
    options = OPTIONS | dict(only="model.layers.0.mlp.*", workers=1)
    build_file(model, tmp_path / "a.ticket", **options)
    data = (tmp_path / "a.ticket").read_bytes()
    first, second, *_ = sorted((tmp_path / "a.ticket.pieces").iterdir())
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    solved.clear()
    build_file(model, tmp_path / "a.ticket", **options)
    assert len(solved) == 2  # both were done again
    assert (first.read_bytes(), second.read_bytes()) == contents
    assert (tmp_path / "a.ticket").read_bytes() == data


def test_bad_settings_are_refused_before_any_work(model, tmp_path, solved):
    for match, options in {
        "workers=0": dict(workers=0),
        "both given": dict(workers=2, cluster="tcp://localhost:1"),
        "units=0": dict(units=0),
        "tolerance=nan": dict(tolerance=float("nan")),
        "assignment='best'": dict(assignment="best"),
        "seed must be": dict(seed=-1),
        r"only='body\.\*' matches no tensor": dict(only="body.*"),
        "give one of them": dict(tolerance=0.1, bits=8),
        "bits=0": dict(bits=0),
        "Give loss and data together": dict(loss=0.01),
        "paper's source does not do": dict(calibrate=tmp_path / "a.txt", assignment="paper"),
        "belongs to a linear layer": dict(calibrate=tmp_path / "a.txt", only="*norm*"),
        "unknown build option 'parts'": dict(parts=["head"]),
    }.items():
        with pytest.raises(StrongTicketError, match=match):
            build_file(model, tmp_path / "a.ticket", **options)
    assert not solved
    assert not (tmp_path / "a.ticket").exists()


def test_paper_assignment_builds_too(model):
    ticket = build_ticket(
        model, **(OPTIONS | dict(assignment="paper", only="model.layers.1.self_attn.*")), workers=1
    )
    assert ticket.metadata["assignment"] == "paper"


@pytest.fixture(scope="module")
def cluster(dask_cluster):
    with dask_cluster(2) as started:
        yield started


def test_a_cluster_gives_the_same_bytes_also_when_a_worker_is_killed(model, expected, tmp_path, cluster):
    address = cluster.scheduler_address
    build_file(model, tmp_path / "a.ticket", cluster=address, **OPTIONS)
    assert (tmp_path / "a.ticket").read_bytes() == expected

    victim = next(iter(cluster.workers.values())).pid
    pids: list[int] = []

    def kill(done: int, total: int) -> None:
        if not pids and 4 * done > total:
            pids.append(victim)
            os.kill(victim, signal.SIGKILL)
            time.sleep(0.5)

    build_file(model, tmp_path / "b.ticket", cluster=address, progress=kill, **OPTIONS)
    assert pids
    assert (tmp_path / "b.ticket").read_bytes() == expected
