"""What linear layers read on a batch, and that calibrated weights serve such inputs better."""

import numpy as np
import pytest
import torch
from tests.pretrained.small_models import hf_model
from torch import nn

from strongticket.models import batches
from strongticket.models.inputs import Batch
from strongticket.pretrained import build_ticket, calibration
from strongticket.pretrained.calibration import Calibration, grams, linear_weights


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bert"])
def test_grams_are_those_of_the_inputs(kind):
    """Against the outputs: a linear map's mean square output follows from its weight and its inputs' Gram matrix."""
    model = hf_model(kind)
    ids = torch.arange(24).reshape(2, 12) % 29
    mask = torch.ones_like(ids)
    if kind == "bert":
        mask[1, 7:] = 0
    batch = Batch({"input_ids": ids, "attention_mask": mask})
    weights = linear_weights(model)
    assert set(weights.values()) == ({1} if kind == "gpt2" else {0})
    outputs: dict[str, torch.Tensor] = {}
    for name in weights:
        module = model.get_submodule(name.removesuffix(".weight"))
        module.register_forward_hook(lambda _, inputs, y, name=name: outputs.update({name: y - 0}))
    found = grams(model, weights, [batch])
    for name, axis in weights.items():
        module = model.get_submodule(name.removesuffix(".weight"))
        y = outputs[name] if module.bias is None else outputs[name] - module.bias
        y = (y[mask.bool()] if y.ndim == 3 else y).double()
        weight = module.weight.detach().double().numpy()
        weight = weight.T if axis else weight
        expected = (y.T @ y / len(y)).numpy()
        assert weight @ found[name] @ weight.T == pytest.approx(expected, rel=1e-4, abs=1e-5)


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
    monkeypatch.setattr(calibration, "grams", lambda *given: runs.append(given) or grams(*given))
    parts = Calibration(model, weights, read)
    for name in weights:
        one, other = whole.takeover(name), parts.takeover(name)
        assert one is not None
        assert other is not None
        assert np.array_equal(one.shares, other.shares)
    assert 1 < len(runs) - 1 < len(weights)
    assert whole.takeover("model.norm.weight") is None


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_outputs_of_linear_layers_come_nearer(kind, tmp_path, monkeypatch):
    """On inputs that were not seen while building."""
    model = hf_model(kind)
    seen, unseen = (batches(model, None, None, sequences=16, seed=seed) for seed in (1, 2))
    monkeypatch.setattr("strongticket.pretrained.build.batches", lambda *_: seen)
    weights = linear_weights(model)
    found = grams(model, weights, unseen)

    def output_error(network: nn.Module) -> float:
        total = 0.0
        for name, axis in weights.items():
            of = [each.get_parameter(name).detach().double().numpy() for each in (model, network)]
            error = (of[1] - of[0]).T if axis else of[1] - of[0]
            total += float(np.einsum("ij,jk,ik", error, found[name], error))
        return total

    options = dict(units=5, workers=1)
    plain = build_ticket(model, **options)
    calibrated = build_ticket(model, calibrate=tmp_path / "text.txt", **options)
    assert len(calibrated.settings["layouts"]) == 2
    assert output_error(calibrated.network()) < output_error(plain.network()) / 1.3
