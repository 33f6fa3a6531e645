"""Bits are spent where they lower the loss most, on a model that has learned something."""

import copy

import pytest
import torch
from tests.models.small_models import hf_model

from strongticket.builders import ModelOptions, build
from strongticket.builders.loss import NOISE, growth, halves, step_weights, with_noise
from strongticket.builders.targets import Targets
from strongticket.errors import StrongTicketError
from strongticket.models import OpenedModel, batches, compare_models
from strongticket.models.inputs import Batch
from strongticket.models.tokenizers import FromFiles


@pytest.fixture(scope="module")
def model(learned):
    return OpenedModel(str(learned / "target")).load()


@pytest.fixture(scope="module")
def read(learned, model):
    """Name of a text -> the batches that the model reads of it."""
    tokenizer = FromFiles(OpenedModel(str(learned / "target")).folder.tokenizer_files()).inner
    return lambda name: batches(model, learned / f"{name}.txt", tokenizer)


def network_bits(ticket, model) -> float:
    size = len(ticket.to_bytes()) - ticket.metadata["tokenizer_bytes"]
    return 8 * size / sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("loss", [0.02, 0.2])
def test_the_loss_asked_for_is_kept_to(learned, model, read, loss):
    ticket = build(learned / "target", loss=loss, data=learned / "text.txt", workers=1)
    network = ticket.network()
    held_out = growth(model, network, halves(read("text"))[1])
    assert 0.3 * loss < held_out <= loss
    assert growth(model, network, read("unseen")) < 1.2 * loss
    percent, text = ticket.metadata["loss_against_base"].split(" % ")
    assert float(percent) / 100 == pytest.approx(held_out, abs=1e-4)
    assert text == "on held-out text of text.txt"


def test_fewer_bits_than_the_same_everywhere(learned, model, read):
    ticket = build(learned / "target", loss=0.05, data=learned / "text.txt", workers=1)
    even = build(learned / "target", bits=network_bits(ticket, model), workers=1)
    ours, others = (growth(model, each.network(), read("unseen")) for each in (ticket, even))
    assert ours < 0.7 * others


def test_a_growing_loss_is_noticed_with_calibration_too(learned, model, read):
    options = dict(loss=0.1, data=learned / "text.txt", workers=1)
    plain = build(learned / "target", **options)
    calibrated = build(learned / "target", calibrate=learned / "text.txt", **options)
    assert growth(model, calibrated.network(), read("unseen")) < 0.12
    assert network_bits(calibrated, model) < network_bits(plain, model)


def test_steps_follow_from_what_noise_in_each_tensor_does(learned, model, read):
    """v ∝ n / s: a tensor that the predictions feel twice as much for its size has the smaller step."""
    found = halves(read("text"))[0]
    weights = step_weights(Targets.open(learned / "target", ModelOptions(only=("*",))), found)
    felt = {}
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            assert name not in weights
            continue
        noisy = with_noise(model, name)
        error = (noisy.get_parameter(name) - parameter).norm() / parameter.norm()
        assert float(error) == pytest.approx(NOISE, rel=0.1)
        felt[name] = compare_models(model, noisy, found).divergence / parameter.numel()
    most, least = max(felt, key=felt.get), min(felt, key=felt.get)
    assert weights[most] == min(weights.values())
    assert weights[least] == max(weights.values())
    assert weights[least] / weights[most] == pytest.approx((felt[most] / felt[least]) ** 0.5, rel=1e-6)


@pytest.mark.parametrize("rows", [[8, 8, 8, 3], [8, 8, 8], [5], [2]])
def test_both_halves_of_the_text_have_no_sequence_in_common(rows):
    numbers = torch.arange(sum(rows))[:, None].split(rows)
    parts = halves([Batch({"input_ids": ids}, ids) for ids in numbers])
    search, check = (torch.cat([batch.inputs["input_ids"] for batch in part]) for part in parts)
    assert torch.equal(torch.cat([search, check]), torch.arange(sum(rows))[:, None])
    assert len(search) > 0
    assert len(check) > 0
    assert all(torch.equal(batch.labels, batch.inputs["input_ids"]) for part in parts for batch in part)


def test_what_has_no_loss_says_so(learned, tmp_path, monkeypatch):
    with pytest.raises(StrongTicketError, match="makes one sequence"):
        halves([Batch({"input_ids": torch.zeros(1, 4)})])
    with pytest.raises(StrongTicketError, match="has no tokenizer"):
        build(hf_model("llama"), loss=0.1, data=learned / "text.txt")
    bare = copy.deepcopy(OpenedModel(str(learned / "target")).load()).model
    bare.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((learned / "target" / name).read_bytes())
    (tmp_path / "lines.txt").write_text("\n".join([(learned / "text.txt").read_text()[:2000]] * 8))
    with pytest.raises(StrongTicketError, match="a LlamaModel predicts no tokens, so it has no loss"):
        build(tmp_path, loss=0.1, data=tmp_path / "lines.txt", workers=1)
    monkeypatch.setattr("strongticket.builders.loss.growth", lambda *_: 0.2)
    with pytest.raises(StrongTicketError, match=r"loss=0\.1 was not reached"):
        build(learned / "target", loss=0.1, data=learned / "text.txt", workers=1)
