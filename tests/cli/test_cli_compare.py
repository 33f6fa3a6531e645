"""strongticket compare and verify --against, one verb for every kind of ticket."""

import json
import re

import pytest
import torch
import transformers
from typer.testing import CliRunner

from strongticket import hf, nets
from strongticket.builders import build_relu
from strongticket.cli import app
from strongticket.cli.answers import answers
from strongticket.data.models import tokenizer_files
from strongticket.data.tokenizers import FromFiles
from strongticket.searching import attach, preset, search, to_ticket


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
    result = answer(
        "compare", tmp_path / "task.ticket", "--against", tmp_path / "base", "--sequences", 2,
        "--out", tmp_path / "page",
    )  # fmt: skip
    assert 0 < result["layers"][0] < 1
    assert "with and without its mask" in (tmp_path / "page" / "index.html").read_text()
    checked = answer("verify", tmp_path / "task.ticket", "--against", tmp_path / "base")
    assert 0 < checked["against"]["relative_error"] < 0.5


def test_what_encoders_and_classifiers_answer(found):
    tokenizer = FromFiles(tokenizer_files(str(found / "model")))
    config = transformers.BertConfig(
        vocab_size=len(tokenizer.inner), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )  # fmt: skip
    t5 = transformers.T5Config(
        vocab_size=len(tokenizer.inner), d_model=8, d_kv=8, d_ff=8, num_layers=1, num_heads=1, decoder_start_token_id=0
    )  # fmt: skip
    prompts = ("once", "a time", "a ticket")
    for head, expected in (
        (transformers.BertModel, r"(once|a time|a ticket) \(\d\.\d{3}\)"),
        (transformers.BertForMaskedLM, r"[a-z .]{4,8}"),
        (transformers.BertForTokenClassification, r"LABEL_\d( LABEL_\d){3,7}"),
        (transformers.BertForSequenceClassification, r"LABEL_\d \(\d\d%\)"),
        (transformers.T5ForConditionalGeneration, r"[a-z .]*"),
    ):
        model = head(t5 if head is transformers.T5ForConditionalGeneration else config).eval()
        rows = answers(model, model, tokenizer, prompts)
        assert tuple(row["prompt"] for row in rows) == prompts
        assert all(re.fullmatch(expected, row["ticket"]) and row["target"] == row["ticket"] for row in rows)


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
