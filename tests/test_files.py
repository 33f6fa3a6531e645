"""Outputs: refused before the work where they cannot be written, and held by one process at a time."""

import subprocess
import sys

import pytest

from strongticket.errors import StrongTicketError
from strongticket.files import check_output, exclusive_lock

HOLDER = """
import sys, time
from pathlib import Path
from strongticket.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("holding", flush=True)
    time.sleep(600)
"""


def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    check_output(tmp_path / "a.ticket")
    with pytest.raises(StrongTicketError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(StrongTicketError, match="does not exist"):
        check_output(tmp_path / "no" / "a.ticket")


def test_an_output_is_held_by_one_process_and_released_when_it_is_killed(tmp_path):
    path = tmp_path / "with space.ticket"
    other = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout
        assert other.stdout.readline() == "holding\n"
        with (
            pytest.raises(StrongTicketError, match=r"another process is writing .*with space.ticket"),
            exclusive_lock(path),
        ):
            pass
    finally:
        other.kill()
        other.communicate()
    with exclusive_lock(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_failure_releases_the_output(tmp_path):
    with pytest.raises(RuntimeError), exclusive_lock(tmp_path / "a.ticket"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
