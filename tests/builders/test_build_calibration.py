"""What linear layers read on a text, and that calibrated weights serve such inputs better."""

import numpy as np
import pytest
import torch
from tests.models.small_models import hf_model, stories_like
from torch import nn

from strongticket.builders import build, build_file, calibration, targets
from strongticket.builders.calibration import Calibration, covariances, linear_weights
from strongticket.models import OpenedModel, batches, compare_models
from strongticket.models.inputs import Batch
from strongticket.models.tokenizers import FromFiles


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert"])
def test_covariances_are_those_of_inputs_of_norm_1(kind):
    """Recorded by hooks of our own, one vector at a time, without padding."""
    model = hf_model(kind)
    ids = torch.arange(24).reshape(2, 12) % 29
    mask = torch.ones_like(ids)
    if kind == "bert":
        mask[1, 7:] = 0
    batch = Batch({"input_ids": ids, "attention_mask": mask})
    weights = linear_weights(model)
    assert set(weights.values()) == ({1} if kind == "gpt2" else {0})
    inputs: dict[str, torch.Tensor] = {}
    hooks = [
        model.get_submodule(name.removesuffix(".weight")).register_forward_pre_hook(
            lambda _, given, name=name: inputs.update({name: given[0]})
        )
        for name in weights
    ]
    found = covariances(model, weights, [batch])
    for hook in hooks:
        hook.remove()
    for name in weights:
        x = inputs[name]
        vectors = x[mask.bool()] if x.ndim == 3 else x
        wanted = np.zeros((x.shape[-1], x.shape[-1]))
        for vector in vectors.double().numpy():
            wanted += np.outer(vector, vector) / (vector @ vector) / len(vectors)
        assert np.trace(found[name]) == pytest.approx(1, rel=1e-5)
        np.testing.assert_allclose(found[name], wanted, atol=1e-6)


def test_tied_weights_and_small_ones_are_left_alone():
    assert "lm_head.weight" not in linear_weights(hf_model("llama-tied"))
    assert "lm_head.weight" in linear_weights(hf_model("llama"))
    assert not linear_weights(nn.Linear(3, 100))


def test_a_large_model_is_read_in_parts(monkeypatch):
    model = hf_model("llama")
    weights, read = linear_weights(model), batches(model, None, None, sequences=2)
    whole = Calibration(model, weights, read)
    runs = []
    monkeypatch.setattr(calibration, "HELD", 4000)
    monkeypatch.setattr(calibration, "covariances", lambda *given: runs.append(given) or covariances(*given))
    parts = Calibration(model, weights, read)
    for name in weights:
        one, other = whole.feedback(name), parts.feedback(name)
        assert np.array_equal(one.order, other.order)
        assert np.array_equal(one.shares, other.shares)
    assert 1 < len(runs) - 1 < len(weights)
    assert whole.feedback("model.norm.weight") is None


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_outputs_of_linear_layers_come_nearer(kind, monkeypatch, tmp_path):
    """On inputs that were not seen while building; weights of Conv1D are fed along their rows."""
    model = hf_model(kind)
    seen, unseen = (batches(model, None, None, sequences=16, seed=seed) for seed in (1, 2))
    monkeypatch.setattr(targets, "batches", lambda *_: seen)
    weights = linear_weights(model)
    found = covariances(model, weights, unseen)

    def output_error(network: nn.Module) -> float:
        total = 0.0
        for name, axis in weights.items():
            of = [each.get_parameter(name).detach().double().numpy() for each in (model, network)]
            error = (of[1] - of[0]).T if axis else of[1] - of[0]
            total += float(np.einsum("ij,jk,ik", error, found[name], error))
        return total

    plain = build(model, tolerance=0.1, workers=1)
    calibrated = build(model, tolerance=0.1, calibrate=tmp_path / "text.txt", workers=1)
    assert {name for name, coded in calibrated.choices.items() if coded.transposed} == (
        set(weights) if kind == "gpt2" else set()
    )
    assert output_error(calibrated.network()) < output_error(plain.network()) / 1.3


@pytest.mark.parametrize(("bits", "near"), [(2.5, 0.03), (4, 0.01)])
def test_bits_are_kept_to(monkeypatch, bits, near):
    """Fed errors make numbers a little larger than those that the bits were counted on."""
    model = stories_like()
    seen = batches(model, None, None, sequences=16)
    monkeypatch.setattr(targets, "batches", lambda *_: seen)
    ticket = build(model, bits=bits, calibrate="text.txt", workers=1)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert 8 * len(ticket.to_bytes()) / numbers == pytest.approx(bits, rel=near)


def test_a_calibrated_ticket_predicts_better_and_is_as_large(learned, tmp_path):
    """The same bytes by two workers; its entries are further from the model's, its outputs nearer."""
    target, text = learned / "target", learned / "text.txt"
    opened = OpenedModel(str(target))
    model, tokenizer = opened.load(), FromFiles(opened.folder.tokenizer_files()).inner
    unseen = batches(model, learned / "unseen.txt", tokenizer)
    plain = build(target, bits=4, workers=1)
    build_file(target, tmp_path / "a.ticket", bits=4, calibrate=text, workers=2)
    calibrated = build(target, bits=4, calibrate=str(text), workers=1)
    assert calibrated.to_bytes() == (tmp_path / "a.ticket").read_bytes()
    assert calibrated.metadata["calibrated_on"] == "text.txt"
    assert "calibrated_on" not in plain.metadata
    assert len(calibrated.to_bytes()) == pytest.approx(len(plain.to_bytes()), rel=0.02)
    ours, others = (compare_models(model, t.network(), unseen).divergence for t in (calibrated, plain))
    assert ours < 0.8 * others
    linear = "model.layers.0.mlp.down_proj.weight"
    assert calibrated.metadata["errors"][linear][1] > plain.metadata["errors"][linear][1]
