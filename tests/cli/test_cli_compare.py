"""strongticket compare, one verb for every kind of ticket."""

import pytest
import torch
import transformers
from tests.cli.running import answer, refusal, run

from strongticket import hf, nets
from strongticket.builders import build_network
from strongticket.models import ModelComparison, comparing
from strongticket.searching import attach, preset, search, to_ticket


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A searched ticket, and the ordinary model that it exports to."""
    folder = tmp_path_factory.mktemp("found")
    (folder / "story.txt").write_text("once upon a time there was a little ticket. " * 100)
    sizes = {"steps": 1, "dim": 8, "heads": 1, "layers": 2, "context": 16}
    ticket = search(preset("laptop", data=str(folder / "story.txt"), **sizes), out=folder / "a.ticket").ticket
    hf.export(ticket, folder / "model")
    return folder


@pytest.mark.slow
def test_a_searched_ticket(found):
    prompts = ("--prompt", "once", "--prompt", "a little")
    result = answer("compare", found / "a.ticket", found / "model", "--sequences", 2, *prompts)
    assert result["ok"]
    assert result["agreement"] == 1.0
    assert result["layers"] == [0.0, 0.0]
    assert [row["prompt"] for row in result["answers"]] == ["once", "a little"]
    assert all(row["target"] == row["ticket"] != "" for row in result["answers"])


def test_a_searched_ticket_against_another_model(found):
    """Of another class, width or depth: refused with the tensor that does not fit."""
    config = transformers.AutoConfig.from_pretrained(found / "model")
    for name, change in (("wide", {"intermediate_size": 64}), ("deep", {"num_hidden_layers": 3})):
        for field, value in change.items():
            setattr(config, field, value)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(found / name)
        assert "has shape" in refusal("compare", found / "a.ticket", found / name)
    transformers.AutoModel.from_config(config).save_pretrained(found / "headless")
    said = refusal("compare", found / "a.ticket", found / "headless")
    assert "is a LlamaModel, the ticket belongs to a LlamaForCausalLM" in said


@pytest.mark.slow
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
    result = answer("compare", tmp_path / "task.ticket", tmp_path / "base", "--sequences", 2)
    assert 0 < result["layers"][0] < 1
    assert "language models" in refusal(
        "compare", tmp_path / "task.ticket", tmp_path / "base", "--prompt", "once"
    )
    transformers.BertModel(transformers.BertConfig(vocab_size=33, **sizes)).save_pretrained(
        tmp_path / "other"
    )
    assert "has no tensor" in refusal("compare", tmp_path / "task.ticket", tmp_path / "other")


@pytest.mark.parametrize("loss", [1000.0, float("inf")])
def test_a_perplexity_that_no_number_can_hold(found, monkeypatch, loss):
    measured = ModelComparison(8, loss, loss, loss, 0.5, 1.0, 1.0, (loss,))
    monkeypatch.setattr(comparing, "compare_models", lambda *_, **__: measured)
    command = ("compare", found / "a.ticket", found / "model", "--sequences", 1)
    result = answer(*command)
    assert result["target_perplexity"] is None
    assert result["layers"] == [loss if loss == 1000.0 else None]
    assert "nats at 8 positions" in run(*command).stdout


def test_a_network_of_the_theorems(tmp_path):
    target = nets.ReluNetwork([3, 2])
    nets.save(target, tmp_path / "target.net")
    build_network(target, per_row=8).save(tmp_path / "relu.ticket")
    result = answer("compare", tmp_path / "relu.ticket", tmp_path / "target.net")
    assert result["measured_error"] <= result["certificate"]["bound"]


def test_mistakes(found):
    assert "no such folder" in refusal("compare", found / "a.ticket", found / "nothing")
    message = refusal("compare", found / "a.ticket", found / "model", "--epsilon", 0.1)
    assert "epsilon does not apply" in message
    assert "base does not apply" in refusal("generate", found / "a.ticket", "--prompt", "a", "--base", "b")
