"""strongticket export, as a user runs it."""

import json

import transformers
from typer.testing import CliRunner

from strongticket.builders import build_network
from strongticket.cli import app
from strongticket.nets import ReluNetwork
from strongticket.searching import preset, search


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_export(tmp_path):
    (tmp_path / "story.txt").write_text("once upon a time there was a ticket. " * 100)
    config = preset(
        "paper-laptop", steps=1, dim=8, heads=1, layers=1, context=8, data=str(tmp_path / "story.txt")
    )
    search(config, out=tmp_path / "found.ticket")
    answer = run("export", tmp_path / "found.ticket", "--out", tmp_path / "model", "--json")
    assert json.loads(answer.stdout)["files"]["model.safetensors"] > 1000
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").config.n_embd == 8
    small = run("export", tmp_path / "found.ticket", "--out", tmp_path / "small", "--ticket", "--json")
    assert json.loads(small.stdout)["dtype"] is None


def test_mistakes(tmp_path):
    build_network(ReluNetwork([2, 2]), per_row=4).save(tmp_path / "relu.ticket")
    answer = run("export", tmp_path / "relu.ticket", "--out", tmp_path / "model")
    assert answer.exit_code == 1
    assert "not a transformers model" in answer.stderr
    assert not (tmp_path / "model").exists()
