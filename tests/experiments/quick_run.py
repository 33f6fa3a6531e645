"""Experiments at the tests' scale."""

import csv
import json
from contextlib import contextmanager

from strongticket.experiments import driver


@contextmanager
def silent(what):
    """A step that shows nothing."""
    yield lambda done, total: None


def reproduce(folder, *names):
    """Make these experiments in a folder."""
    for name in names:
        answer = driver.reproduce(name, driver.Options(folder, "test", workers=1), silent)
        json.dumps(answer, allow_nan=False)
        assert answer["headline"]
    return folder


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
