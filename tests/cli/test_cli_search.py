"""strongticket search as a user runs it: tasks, settings from a file, and its help."""

import re

import pytest
from tests.cli.running import answer, refusal, run

from strongticket.searching import SearchConfig
from strongticket.ticket import Ticket


def test_settings_come_from_the_task_a_file_and_options(tmp_path):
    (tmp_path / "c.toml").write_text(
        'task = "images"\nsteps = 3\nwarmup = 1\nlr = 1\n[model]\ndim = 16\nheads = 2\npatch = 4\nlayers = 1\n'
        '[source]\nqk-scale = 2.4\ntrain = ["norm", "bias"]\n'
    )
    out = tmp_path / "a.ticket"
    command = ("search", "--config", tmp_path / "c.toml", "--cpu", "--out", out)
    (found,) = answer(*command, "--lr", 0.01)["runs"]
    settings = found["settings"]
    assert (settings["architecture"], settings["dim"], settings["lr"]) == ("vit", 16, 0.01)
    assert (found["qk_scale"], found["measures"].keys()) == (2.4, {"accuracy"})
    assert settings["train"] == ["norm", "bias"]
    assert Ticket.load(out).metadata["search"] == settings
    assert re.search(r"accuracy +\d+\.\d\d%", run(*command).stdout)


def test_several_seeds_write_a_ticket_each(tmp_path):
    size = ("--dim", 8, "--heads", 1, "--layers", 1, "--context", 8, "--steps", 1, "--warmup", 0)
    done = answer("search", *size, "--seed", 4, "--seeds", 2, "--cpu", "--out", tmp_path / "t.ticket")
    assert len(done["runs"]) == 2
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
    assert said in refusal("search", "--config", tmp_path / "c.toml", "--out", tmp_path / "a.ticket")


def test_options_become_what_their_settings_are(tmp_path):
    out = ("--out", tmp_path / "a.ticket")
    assert "lr='x': expected a number above 0" in refusal("search", "--lr", "x", *out)
    assert "or a number above 0" in refusal("search", "--qk-scale", "big", *out)
    size = ("--dim", 8, "--heads", 1, "--layers", 1, "--context", 8, "--steps", 0, "--cpu")
    (found,) = answer("search", *size, "--qk-scale", 2, "--lr", 1, "--train", "norm, bias", *out)["runs"]
    settings = found["settings"]
    assert (settings["qk_scale"], settings["lr"], settings["train"]) == (2.0, 1.0, ["norm", "bias"])


def test_help_has_groups_and_the_real_defaults():
    shown, wide = (run("search", "--help", env={"COLUMNS": columns}).stdout for columns in ("80", "200"))
    assert max(map(len, shown.splitlines())) <= 80
    for group in (
        "Task and data",
        "Model",
        "Random weights and masks",
        "Training",
        "Progress and checkpoints",
    ):
        assert f"\n{group}:\n" in shown
    wide = " ".join(wide.split())
    for name in ("kept", "dim", "steps", "lr", "law"):
        assert re.search(rf"--{name} [^[]*\[default: {SearchConfig().settings()[name]}\]", wide), name
