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
from typer.testing import CliRunner

from strongticket.cli import app
from strongticket.errors import StrongTicketError
from strongticket.experiments import points


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


def nothing(settings):
    return None


POINTS = [{"x": x} for x in range(6)]


def test_results_come_in_order_and_are_computed_once(tmp_path):
    log, store = tmp_path / "log", tmp_path / "points"
    compute = partial(logged_square, log=str(log))
    seen = []
    first = points.run_points(
        compute, POINTS, store, version="1", workers=2, progress=lambda *p: seen.append(p)
    )
    assert first == [{"square": x**2} for x in range(6)]
    assert seen == [(done, 6) for done in range(7)]
    again = points.run_points(compute, POINTS[::-1], store, version="1", workers=1)
    assert again == first[::-1]
    assert sorted(log.read_text().split()) == [str(x) for x in range(6)]
    points.run_points(compute, POINTS[:2], store, version="2", workers=1)
    assert len(log.read_text().split()) == 8


def test_equal_points_are_one(tmp_path):
    log = tmp_path / "log"
    equal = [{"x": 2, "y": 0}, {"y": 0, "x": 2}]
    found = points.run_points(partial(logged_square, log=str(log)), equal, tmp_path, version="1", workers=1)
    assert found == [{"square": 4}] * 2
    assert log.read_text() == "2\n"


def test_a_failing_point_keeps_the_finished_ones(tmp_path):
    with pytest.raises(StrongTicketError, match="x is 3"):
        points.run_points(fails_at_three, POINTS, tmp_path, version="1", workers=1)
    assert len(list(tmp_path.glob("*.json"))) == 3


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"version":"1","settings":{"x":9},"seconds":0,"result":5}']
)
def test_a_damaged_point_is_computed_again(tmp_path, damage):
    log = tmp_path / "log"
    compute = partial(logged_square, log=str(log))
    file = tmp_path / f"{points.point_id({'x': 1}, '1')}.json"
    file.write_bytes(damage)
    assert points.run_points(compute, [{"x": 1}], tmp_path, version="1", workers=1) == [{"square": 1}]
    assert json.loads(file.read_bytes())["result"] == {"square": 1}


def test_threads_inside_a_point(tmp_path):
    import torch

    before = torch.get_num_threads()
    for workers in (1, 2):
        store = tmp_path / str(workers)
        found = points.run_points(threads_inside, POINTS[:3], store, version="1", workers=workers)
        assert found == [[1, 1]] * 3
    assert torch.get_num_threads() == before


def test_refusals(tmp_path):
    with pytest.raises(StrongTicketError, match="what JSON can hold"):
        points.point_id({"x": float("nan")}, "1")
    with pytest.raises(StrongTicketError, match="workers=0"):
        points.run_points(nothing, [{}], tmp_path, version="1", workers=0)
    with pytest.raises(StrongTicketError, match="Use None for a gap"):
        points.run_points(lambda s: {1, 2}, [{}], tmp_path, version="1", workers=1)


def test_the_version_is_that_of_the_code():
    assert points.code_version("seeds") != points.code_version("checks.py")
    assert points.code_version("seeds", "theory") == points.code_version("theory", "seeds")


def command(out, workers):
    return ["reproduce", "figure5", "--scale", "test", "--json", "--out", str(out), "--workers", str(workers)]


def results(out):
    """Every result file, without timings."""
    folder = out / "figure5"
    same = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".png", ".pdf")
    }
    same["page.json"] = (folder / "page.json").read_bytes()
    return same | {"results": json.loads((folder / "summary.json").read_text())["results"]}


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    answer = CliRunner().invoke(app, command(whole, 1))
    assert json.loads(answer.stdout)["figure5"]["figure"] == "figure5"
    total = len(list((whole / "points").glob("*.json")))

    process = subprocess.Popen(
        [sys.executable, "-c", "from strongticket.cli import main; main()", *command(killed, 2)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wanted = random.Random(0).randint(1, total - 2)  # finished points to wait for
    deadline = time.monotonic() + 200
    while len(list((killed / "points").glob("*.json"))) < wanted and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)  # only the session that this test started
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in (killed / "points").glob("*.json")}
    assert wanted <= len(before)

    assert CliRunner().invoke(app, command(killed, 2)).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before  # not written again
    assert len(list((killed / "points").glob("*.json"))) == total
    assert results(killed) == results(whole)
