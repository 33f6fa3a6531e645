"""Run studies in the tests, with settings of seconds."""

import csv
from unittest import mock

from tests.reproduce.tiny import TINY

from strongticket.reproduce import catalogue, study


def reproduce(folder, name):
    """Make a study in a folder and return its summary."""
    with mock.patch.dict(catalogue.load(name).STUDY.settings, test=TINY[name]):
        return study.reproduce(name, study.Run(folder, "test", workers=1))


def make_again(folder, name):
    """Make a study once more, and check that no point is computed again and no file changes, but for its time."""
    files = {p: p.read_bytes() for p in (folder / name).iterdir() if p.name != "summary.json"}
    points = {p: p.stat().st_mtime_ns for p in (folder / "points").iterdir()}
    reproduce(folder, name)
    assert {p: p.read_bytes() for p in files} == files
    assert {p: p.stat().st_mtime_ns for p in (folder / "points").iterdir()} == points


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
