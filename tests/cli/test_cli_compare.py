"""strongticket compare and verify --against, one verb for every kind of ticket."""

import json

import pytest
import torch
import transformers
from typer.testing import CliRunner

from strongticket import hf, nets
from strongticket.build import build_relu
from strongticket.cli import app
from strongticket.search import attach, preset, search, to_ticket


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A searched ticket, and the ordinary model that it exports to."""
    folder = tmp_path_factory.mktemp("found")
    (folder / "story.txt").write_text("once upon a time there was a little ticket. " * 100)
    sizes = {"steps": 1, "dim": 8, "heads": 1, "layers": 2, "context": 16}
    ticket = search(preset("laptop", data=str(folder / "story.txt"), **sizes), out=folder / "a.ticket").ticket
    hf.export(ticket, folder / "model")
    return folder


def test_a_searched_ticket(found):
    result = answer(
        "compare", found / "a.ticket", "--against", found / "model", "--sequences", 2, "--out", found / "page",
        "--prompt", "once", "--prompt", "a little",
    )  # fmt: skip
    assert result["agreement"] == 1.0
    assert result["layers"] == [0.0, 0.0]
    assert [row["prompt"] for row in result["answers"]] == ["once", "a little"]
    assert all(row["target"] == row["ticket"] != "" for row in result["answers"])
    assert result["sizes"]["float32"] == 4 * result["sizes"]["int8"]
    page = (found / "page" / "index.html").read_text()
    for heading in ("Side by side", "Layer by layer", "Masks of a layer", "Bytes"):
        assert f"{heading}</h2>" in page
    checked = answer("verify", found / "a.ticket", "--against", found / "model")
    assert checked["against"]["relative_error"] == 0.0


def test_a_task_mask_against_its_base(tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    base = transformers.BertModel(transformers.BertConfig(vocab_size=32, max_position_embeddings=64, **sizes))
    base.save_pretrained(tmp_path / "base")
    config = transformers.BertConfig(vocab_size=32, max_position_embeddings=64, num_labels=2, **sizes)
    model = transformers.BertForSequenceClassification(config)
    model.bert.load_state_dict(base.state_dict())
    attachment = attach(model, kept=0.8, weights="pretrained", train=["classifier.*"])
    to_ticket(model, attachment).save(tmp_path / "task.ticket")
    result = answer("compare", tmp_path / "task.ticket", "--against", tmp_path / "base", "--sequences", 2)
    assert 0 < result["layers"][0] < 1
    checked = answer("verify", tmp_path / "task.ticket", "--against", tmp_path / "base")
    assert 0 < checked["against"]["relative_error"] < 0.5


def test_a_network_of_the_theorems(tmp_path):
    target = nets.ReluNetwork([3, 2])
    nets.save(target, tmp_path / "target.net")
    build_relu(target, per_row=8).save(tmp_path / "relu.ticket")
    result = answer("compare", tmp_path / "relu.ticket", "--against", tmp_path / "target.net")
    assert result["measured_error"] <= result["certificate"]["bound"]
    assert run(
        "compare", tmp_path / "relu.ticket", "--against", tmp_path / "target.net", "--out", tmp_path
    ).exit_code


def test_mistakes(found):
    assert run("compare", found / "a.ticket", "--against", found / "nothing").exit_code == 1
    result = run("verify", found / "a.ticket", "--against", found / "model", "--epsilon", 0.1)
    assert result.exit_code == 1
    assert "--epsilon" in result.stderr
