"""strongticket search as a user runs it: tasks, settings from a file, and its help."""

import json
import re

import pytest
from typer.testing import CliRunner

from strongticket.cli import app
from strongticket.searching import SearchConfig
from strongticket.ticket import Ticket


def run(*words, columns=200):
    return CliRunner().invoke(app, ["search", *map(str, words)], env={"COLUMNS": str(columns)})


def test_settings_come_from_the_task_a_file_and_options(tmp_path):
    (tmp_path / "c.toml").write_text(
        'task = "images"\nsteps = 3\nwarmup = 1\nlr = 1\n[model]\ndim = 16\nheads = 2\npatch = 4\nlayers = 1\n'
        '[source]\nqk-scale = 2.4\ntrain = ["norm", "bias"]\n'
    )
    out = tmp_path / "a.ticket"
    done = run("--config", tmp_path / "c.toml", "--lr", 0.01, "--cpu", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["runs"]
    settings = found["settings"]
    assert (settings["architecture"], settings["dim"], settings["lr"]) == ("vit", 16, 0.01)
    assert (found["qk_scale"], found["measures"].keys()) == (2.4, {"accuracy"})
    assert settings["train"] == ["norm", "bias"]
    assert Ticket.load(out).metadata["search"] == settings
    shown = run("--config", tmp_path / "c.toml", "--cpu", "--out", out)
    assert re.search(r"accuracy +\d+\.\d\d%", shown.stdout)


def test_several_seeds_write_a_ticket_each(tmp_path):
    size = ("--dim", 8, "--heads", 1, "--layers", 1, "--context", 8, "--steps", 1, "--warmup", 0)
    done = run(*size, "--seed", 4, "--seeds", 2, "--cpu", "--out", tmp_path / "t.ticket", "--json")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["runs"]) == 2
    found = {path.name: Ticket.load(path).seed for path in tmp_path.glob("*.ticket")}
    assert found == {"t-seed4.ticket": 4, "t-seed5.ticket": 5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stepz = 3", "'stepz' is not a setting"),
        ("steps = 2.5", "steps=2.5: expected a whole number of at least 0"),
        ('train = "norm"', "train='norm': expected a tuple of strings"),
        ("preset = [1]", "preset must be one of"),
        ("[training]\ndim = 8", "dim is not a setting of [training]"),
        ("[weights]\nkept = 0.5", "kept is not a setting of [weights]"),
        ("steps =", "is not TOML"),
        ('task = "music"', "task='music': expected one of language"),
        ('preset = "desktop"', "preset must be one of"),
        ('method = "antigravity:fly"', "names code, which a settings file must not"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, said):
    (tmp_path / "c.toml").write_text(text)
    done = run("--config", tmp_path / "c.toml", "--out", tmp_path / "a.ticket")
    assert done.exit_code == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_options_become_what_their_settings_are(tmp_path):
    wrong = {
        "--lr": ("x", "lr='x': expected a number above 0"),
        "--qk-scale": ("big", "or a number above 0"),
    }
    for option, (value, said) in wrong.items():
        done = run(option, value, "--out", tmp_path / "a.ticket")
        assert done.exit_code == 1
        assert said in done.stderr
    size = ("--dim", 8, "--heads", 1, "--layers", 1, "--context", 8, "--steps", 0, "--cpu", "--json")
    done = run(*size, "--qk-scale", 2, "--lr", 1, "--train", "norm, bias", "--out", tmp_path / "a.ticket")
    (found,) = json.loads(done.stdout)["runs"]
    settings = found["settings"]
    assert (settings["qk_scale"], settings["lr"], settings["train"]) == (2.0, 1.0, ["norm", "bias"])


def test_help_has_groups_and_the_real_defaults():
    done = run("--help", columns=80)
    assert max(map(len, done.stdout.splitlines())) <= 80
    for group in (
        "Task and data",
        "Model",
        "Random weights and masks",
        "Training",
        "Progress and checkpoints",
    ):
        assert f"\n{group}:\n" in done.stdout
    wide = " ".join(run("--help", columns=200).stdout.split())
    for name in ("kept", "dim", "steps", "lr", "law"):
        assert re.search(rf"--{name} [^[]*\[default: {SearchConfig().settings()[name]}\]", wide), name
