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


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
