"""The driver, with an experiment of one file."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from quick_run import read_csv, silent

from strongticket.errors import StrongTicketError
from strongticket.experiments import catalogue, driver
from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.report import Page, Section


@dataclass(frozen=True)
class Squares:
    rows: list

    def settings(self):
        return {"numbers": len(self.rows)}

    def numbers(self):
        return {"largest": max(row["square"] for row in self.rows)}

    def tables(self):
        return {"squares.csv": self.rows}

    def headline(self):
        return [("largest square", str(self.numbers()["largest"]))]


def square(settings):
    return settings["x"] ** 2


def measure(run):
    points = [{"x": x} for x in range(4)]
    squares = run.compute("four squares", square, points, "1")
    return Squares([dict(point, square=y) for point, y in zip(points, squares, strict=True)])


def chart(result):
    x, y = ([row[name] for row in result.rows] for name in ("x", "square"))
    return Chart("squares", "x", "x^(2)", (Curve("measured", x, y, 1),), log_y=False)


def page(result):
    return Page("Squares", "They grow.", (Section("All", (plot(chart(result), "A parabola."),)),))


def prints(result):
    return (Print("squares", (chart(result),), "A parabola."),)


@pytest.fixture
def squares(monkeypatch):
    """A catalogue whose one entry is this file."""
    monkeypatch.setitem(sys.modules, "strongticket.experiments.studies.squares", sys.modules[__name__])
    entry = catalogue.Entry("studies.squares", "squares", frozenset({"init"}))
    monkeypatch.setattr(catalogue, "CATALOGUE", {"squares": entry})


def test_an_experiment_of_one_file_gets_everything(squares, tmp_path):
    seen = []

    def step(what):
        seen.append(what)
        return silent(what)

    options = driver.Options(tmp_path, seed=3, workers=1)
    answer = driver.reproduce("squares", options, step)
    assert answer["largest"] == 9
    assert answer["headline"] == [("largest square", "9")]
    assert seen == ["squares: four squares"]
    folder = tmp_path / "squares"
    files = {"squares.csv", "summary.json", "page.json", "index.html", "squares.png", "squares.pdf"}
    assert {path.name for path in folder.iterdir()} == files
    assert Path(answer["page"]) == folder / "index.html"
    assert read_csv(folder / "squares.csv")[3] == {"x": "3", "square": "9"}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["made_by"]["command"] == "strongticket reproduce squares --seed 3"
    assert summary["made_by"]["settings"] == {"numbers": 4}
    assert "For print" in (folder / "index.html").read_text()
    points = {path: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    assert len(points) == 4
    driver.reproduce("squares", options, silent)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()} == points


def test_names_of_the_command_line(squares):
    assert catalogue.names("squares") == catalogue.names("all") == catalogue.names("studies") == ("squares",)
    for unknown in ("figures", "figure9", ""):
        with pytest.raises(StrongTicketError, match="is not a figure or study"):
            catalogue.names(unknown)


def test_every_entry_of_the_catalogue_is_an_experiment():
    for name, entry in catalogue.CATALOGUE.items():
        module = catalogue.load(name)
        for function in ("measure", "page", "prints"):
            assert callable(getattr(module, function)), (name, function)
        assert entry.reads <= {"learning_rate", "init", "mip"}
