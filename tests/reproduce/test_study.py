"""The driver, with a study of one file."""

import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from tests.reproduce.runs import read_csv
from typer.testing import CliRunner

from strongticket.cli import app
from strongticket.errors import StrongTicketError
from strongticket.reproduce import catalogue, plots, study


@dataclass(frozen=True)
class Squares:
    numbers: int


def square(settings):
    return settings["x"] ** 2


def measure(run, settings):
    points = [{"x": x} for x in range(settings.numbers)]
    squares = run.map("four squares", square, points, "1")
    return {"squares": [dict(point, square=y) for point, y in zip(points, squares, strict=True)]}


def answer(tables, settings):
    largest = max(row["square"] for row in tables["squares"])
    return study.Answer(f"They reach {largest}.", {"largest": largest}, tables["squares"])


def plot(tables, settings, axes):
    plots.curve(axes[0], tables["squares"], x="x", y="square", label="measured")
    plots.label(axes[0], "squares", "x", "x²", log="")


STUDY = study.Study("How large are squares?", {"laptop": Squares(4)}, measure, answer, plot)


@pytest.fixture
def squares(monkeypatch):
    """A catalogue whose one entry is this file."""
    monkeypatch.setitem(sys.modules, "strongticket.reproduce.squares", sys.modules[__name__])
    monkeypatch.setattr(catalogue, "CATALOGUE", {"squares": ("squares", "")})


def test_a_study_of_one_file_gets_everything(squares, tmp_path):
    seen = []

    def step(what):
        seen.append(what)
        return nullcontext(lambda done, total: None)

    run = study.Run(tmp_path, seed=3, workers=1, step=step)
    summary = study.reproduce("squares", run)
    assert summary["numbers"] == {"largest": 9}
    assert seen == ["four squares"]
    folder = tmp_path / "squares"
    files = {"squares.csv", "summary.json", "README.md", "squares.png", "squares.pdf"}
    assert {path.name for path in folder.iterdir()} == files
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert read_csv(folder / "squares.csv")[3] == {"x": "3", "square": "9"}
    assert summary["command"] == "strongticket reproduce squares --seed 3"
    assert summary["settings"] == {"numbers": 4}
    page = (folder / "README.md").read_text()
    assert "How large are squares?" in page
    assert "They reach 9." in page
    assert "| 3 | 9 |" in page
    assert summary["command"] in page
    points = {path: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    assert len(points) == 4
    study.reproduce("squares", run)
    assert {path: path.stat().st_mtime_ns for path in points} == points


def test_unknown_names_and_scales_are_refused(squares, tmp_path):
    with pytest.raises(StrongTicketError, match="'figure9' is not a figure or study"):
        study.reproduce("figure9", study.Run(tmp_path))
    with pytest.raises(StrongTicketError, match=r"unknown scale 'huge'. Use one of quick, laptop, paper"):
        study.reproduce("squares", study.Run(tmp_path, "huge"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", catalogue.CATALOGUE)
def test_every_entry_of_the_catalogue_is_a_study_at_every_scale(name):
    assert set(study.SCALES) <= set(catalogue.load(name).STUDY.settings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2**64 - 1, 2**63, 1_000_000])
def test_every_seed_that_the_help_allows_is_taken(tmp_path, seed):
    options = ["--scale", "test", "--out", str(tmp_path), "--workers", "1", "--json", "--seed", str(seed)]
    done = CliRunner().invoke(app, ["reproduce", "figure5", *options])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["figure5"]["seed"] == seed


@pytest.mark.parametrize(
    ("package", "extra"),
    [("matplotlib", "figures"), ("transformers", "huggingface"), ("accelerate", "huggingface")],
)
def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    names = ["figure4", "figure7"]  # the first could begin, but for matplotlib
    done = CliRunner().invoke(app, ["reproduce", *names, "--scale", "test", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert f"{package} is not installed" in done.stderr
    assert f'pip install "strongticket[{extra}]"' in done.stderr
    assert not list(tmp_path.iterdir())
