"""strongticket export, as a user runs it."""

import transformers
from tests.cli.running import answer, refusal

from strongticket.builders import build_network
from strongticket.nets import ReluNetwork
from strongticket.searching import preset, search


def test_export(tmp_path):
    (tmp_path / "story.txt").write_text("once upon a time there was a ticket. " * 100)
    size = dict(steps=1, dim=8, heads=1, layers=1, context=8, data=str(tmp_path / "story.txt"))
    search(preset("paper-laptop", **size), out=tmp_path / "found.ticket")
    model = answer("export", tmp_path / "found.ticket", "--out", tmp_path / "model")
    assert model["files"]["model.safetensors"] > 1000
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").config.n_embd == 8
    small = answer("export", tmp_path / "found.ticket", "--out", tmp_path / "small", "--ticket")
    assert small["dtype"] is None


def test_mistakes(tmp_path):
    build_network(ReluNetwork([2, 2]), per_row=4).save(tmp_path / "relu.ticket")
    said = refusal("export", tmp_path / "relu.ticket", "--out", tmp_path / "model")
    assert "not a transformers model" in said
    assert not (tmp_path / "model").exists()
