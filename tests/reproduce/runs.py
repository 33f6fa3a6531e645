"""Run studies in the tests, with settings of seconds."""

import csv
import json
from contextlib import contextmanager

from strongticket.reproduce import catalogue, study


@contextmanager
def small(name, settings, scale="test"):
    """A study that has these settings at a scale of its own, while the block runs."""
    scales = catalogue.load(name).STUDY.settings
    before = dict(scales)
    scales[scale] = settings
    try:
        yield
    finally:
        scales.clear()
        scales.update(before)


def reproduce(folder, name, settings):
    """Make a study in a folder and return its summary."""
    with small(name, settings):
        summary = study.reproduce(name, study.Run(folder, "test", workers=1))
    assert json.loads((folder / name / "summary.json").read_text()) == json.loads(json.dumps(summary))
    return summary


def make_again(folder, name, settings):
    """Make a study once more, and check that no point is computed again and no file changes, but for its time."""
    files = {p: p.read_bytes() for p in (folder / name).iterdir() if p.name != "summary.json"}
    points = {p: p.stat().st_mtime_ns for p in (folder / "points").iterdir()}
    reproduce(folder, name, settings)
    assert {p: p.read_bytes() for p in files} == files
    assert {p: p.stat().st_mtime_ns for p in (folder / "points").iterdir()} == points


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
