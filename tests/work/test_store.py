"""Stored points: nothing finished is lost or redone, and no number depends on how it was run."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from tests.cli.running import answer

from strongticket.errors import StrongTicketError
from strongticket.work.store import Store, code_version, compute_points, run_pieces


def logged_square(settings, log):
    """Leaves a line for every point really computed."""
    with open(log, "a") as file:
        file.write(f"{settings['x']}\n")
    return {"square": settings["x"] ** 2}


def fails_at_three(settings):
    if settings["x"] == 3:
        raise StrongTicketError("x is 3. Use another.")
    return settings["x"]


def threads_inside(settings):
    import numba
    import torch

    return [torch.get_num_threads(), numba.get_num_threads()]


def unsorted(settings):
    return {"b": 0, "a": (1, 2)}


POINTS = [{"x": x} for x in range(6)]


def test_results_come_in_order_and_are_computed_once(tmp_path):
    log, store = tmp_path / "log", Store(tmp_path / "points", "1")
    compute = partial(logged_square, log=str(log))
    seen = []
    first = compute_points(compute, POINTS, store, workers=2, progress=lambda *p: seen.append(p))
    assert first == [{"square": x**2} for x in range(6)]
    assert seen == [(done, 6) for done in range(7)]
    again = compute_points(compute, POINTS[::-1], store, workers=1)
    assert again == first[::-1]
    assert sorted(log.read_text().split()) == [str(x) for x in range(6)]
    compute_points(compute, POINTS[:2], Store(tmp_path / "points", "2"), workers=1)
    assert len(log.read_text().split()) == 8


def test_equal_points_are_one(tmp_path):
    log = tmp_path / "log"
    equal = [{"x": 2, "y": 0}, {"y": 0, "x": 2}]
    found = compute_points(partial(logged_square, log=str(log)), equal, Store(tmp_path, "1"), workers=1)
    assert found == [{"square": 4}] * 2
    assert log.read_text() == "2\n"


def test_a_failing_point_keeps_the_finished_ones(tmp_path):
    with pytest.raises(StrongTicketError, match="x is 3"):
        compute_points(fails_at_three, POINTS, Store(tmp_path, "1"), workers=1)
    assert len(list(tmp_path.glob("*.json"))) == 3


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"version":"1","settings":{"x":9},"seconds":0,"result":5}']
)
def test_a_damaged_point_is_computed_again(tmp_path, damage):
    log = tmp_path / "log"
    compute = partial(logged_square, log=str(log))
    store = Store(tmp_path, "1")
    file = store.path({"x": 1})
    file.write_bytes(damage)
    assert compute_points(compute, [{"x": 1}], store, workers=1) == [{"square": 1}]
    assert json.loads(file.read_bytes())["result"] == {"square": 1}


def test_threads_inside_a_point(tmp_path):
    import torch

    before = torch.get_num_threads()
    for workers in (1, 2):
        store = Store(tmp_path / str(workers), "1")
        found = compute_points(threads_inside, POINTS[:3], store, workers=workers)
        assert found == [[1, 1]] * 3
    assert torch.get_num_threads() == before


def test_results_come_back_as_a_stored_file_gives_them(tmp_path):
    store = Store(tmp_path, "1")
    first = compute_points(unsorted, [{}], store, workers=1)
    assert [list(row) for row in first] == [list(row) for row in compute_points(unsorted, [{}], store)]
    assert first == [{"a": [1, 2], "b": 0}]


def test_refusals(tmp_path):
    store = Store(tmp_path, "1")
    with pytest.raises(StrongTicketError, match="JSON cannot hold the settings"):
        store.path({"x": float("nan")})
    with pytest.raises(StrongTicketError, match="workers=0"):
        compute_points(unsorted, [{}], store, workers=0)
    with pytest.raises(StrongTicketError, match="Use None for a gap"):
        compute_points(lambda s: {1, 2}, [{}], store, workers=1)


def test_the_version_is_that_of_the_code():
    assert code_version("seeds") != code_version("checks.py")
    assert code_version("seeds", "theory") == code_version("theory", "seeds")


def results(out):
    """Every result file, and the numbers of the summary, which also has a time."""
    folder = out / "figure5"
    same = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "summary.json"}
    return same | {"numbers": json.loads((folder / "summary.json").read_text())["numbers"]}


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = ("reproduce", "figure5", "--scale", "test", "--out")
    assert answer(*command, whole, "--workers", 1)["figure5"]["study"] == "figure5"
    total = len(list((whole / "points").glob("*.json")))

    def finished():
        return {path: path.stat().st_mtime_ns for path in (killed / "points").glob("*.json")}

    process = subprocess.Popen(
        [sys.executable, "-m", "strongticket", *command, str(killed), "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wanted = random.Random(0).randint(1, total - 2)  # finished points to wait for
    deadline = time.monotonic() + 200
    while len(finished()) < wanted and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)  # only the session that this test started
    process.wait()
    before = finished()
    assert wanted <= len(before)

    answer(*command, killed, "--workers", 2)
    assert finished().items() >= before.items()  # not written again
    assert len(finished()) == total
    assert results(killed) == results(whole)


@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2, "threads": True}, {"workers": 2}])
def test_pieces_are_done_once_and_keep_their_keys(tmp_path, how):
    store = Store(tmp_path / "pieces", "1")
    pieces = [((x, "key"), {"x": x}, (2, x)) for x in range(9)]
    first = {key: (path, result) for key, path, result in run_pieces(pow, pieces[:5], store, **how)}
    assert {key: result for key, (_, result) in first.items()} == {(x, "key"): 2**x for x in range(5)}
    assert {path for path, _ in first.values()} == set(store.folder.iterdir())
    first[1, "key"][0].write_text("damaged")
    again = {key: result for key, _, result in run_pieces(pow, pieces, store, **how)}
    assert again == {(x, "key"): 2**x for x in range(9)}
    assert store.read(first[1, "key"][0]) == (2,)
    done = list(run_pieces(None, pieces, store, **how))  # nothing is left to do
    assert {key: result for key, _, result in done} == again


def test_pieces_are_read_as_workers_become_free(tmp_path):
    read = []

    def pieces():
        for x in range(50):
            read.append(x)
            yield x, {"x": x}, (2, x)

    found = run_pieces(pow, pieces(), Store(tmp_path, "1"), workers=1)
    assert next(found)[0] == 0
    assert len(read) == 1
    found.close()
    assert len(list(tmp_path.iterdir())) == 1
