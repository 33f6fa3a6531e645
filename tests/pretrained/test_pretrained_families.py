"""Attention by products, whole models: merged is near the target, faithful is merged, nothing trained is left."""

import pytest
import torch
from tests.pretrained.small_models import HF_MODELS, hf_inputs, hf_model, outputs

from strongticket.pretrained import build_ticket

OPTIONS = dict(units=16, tolerance=1e-3, workers=1, attention="products")


@pytest.mark.parametrize("name", HF_MODELS)
def test_whole_model(name):
    model = hf_model(name)
    ticket = build_ticket(model, **OPTIONS)
    assert not ticket.floats
    assert ticket.settings["base"] is None
    merged, faithful = ticket.network(), ticket.network(form="factors")
    assert type(merged) is type(model)
    inputs = hf_inputs(model)
    wanted, found = outputs(model, inputs), outputs(merged, inputs)
    assert (found - wanted).norm() < 0.02 * wanted.norm()
    torch.testing.assert_close(outputs(faithful, inputs), found, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["llama-bias", "qwen2", "gpt2", "mistral"])
def test_generation_with_a_cache_is_generation_without(name):
    model = hf_model(name)
    network = build_ticket(model, **OPTIONS).network()
    inputs = hf_inputs(model, batch=2, tokens=5)
    options = dict(do_sample=False, max_new_tokens=6, pad_token_id=0)
    cached = network.generate(**inputs, **options)
    assert torch.equal(cached, network.generate(**inputs, **options, use_cache=False))
    beams = network.generate(**inputs, **options, num_beams=2)
    assert beams.shape[1] == cached.shape[1]
