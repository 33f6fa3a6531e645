"""Attention by products, whole models: merged is near the target, faithful is merged, nothing trained is left."""

import pytest
import torch
from tests.pretrained.small_models import HF_MODELS, hf_inputs, hf_model, outputs, trained
from torch import nn

from strongticket.pretrained import build_ticket

OPTIONS = dict(units=16, tolerance=1e-3, workers=1, attention="products")


@pytest.mark.parametrize("name", HF_MODELS)
def test_whole_model(name):
    model = hf_model(name)
    ticket = build_ticket(model, **OPTIONS)
    assert not ticket.floats
    assert ticket.settings["base"] is None
    merged, faithful = ticket.network(), ticket.network(faithful=True)
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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("sizes", [(None, None), (7, 11)])
def test_torch_attention(bias, batch_first, sizes):
    kdim, vdim = sizes
    module = trained(nn.MultiheadAttention(9, 3, bias=bias, kdim=kdim, vdim=vdim, batch_first=batch_first))
    ticket = build_ticket(module, **OPTIONS)
    network = ticket.network()
    generator = torch.Generator().manual_seed(0)
    shape = (2, 5) if batch_first else (5, 2)
    context = (2, 6) if batch_first else (6, 2)
    query = torch.randn(*shape, 9, generator=generator)
    key, value = (torch.randn(*context, size or 9, generator=generator) for size in sizes)
    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[1, 4:] = True
    forbidden = torch.zeros(5, 6, dtype=torch.bool)
    forbidden[0, 1:] = True
    per_head = torch.randn(2 * 3, 5, 6, generator=generator)
    for options in (
        {},
        {"key_padding_mask": padding, "attn_mask": forbidden},
        {"attn_mask": per_head, "average_attn_weights": False},
        {"need_weights": False},
    ):
        wanted, wanted_weights = module(query, key, value, **options)
        found, weights = network(query, key, value, **options)
        torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)
        if wanted_weights is None:
            assert weights is None
        else:
            torch.testing.assert_close(weights, wanted_weights, rtol=0.02, atol=0.02)
        faithful, _ = ticket.network(faithful=True)(query, key, value, **options)
        torch.testing.assert_close(faithful, found, rtol=1e-3, atol=1e-4)


def test_torch_attention_without_a_batch():
    module = trained(nn.MultiheadAttention(6, 2))
    network = build_ticket(module, **OPTIONS).network()
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    padding = torch.tensor([False, False, False, True])
    wanted, wanted_weights = module(x, x, x, key_padding_mask=padding)
    found, weights = network(x, x, x, key_padding_mask=padding)
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)
    torch.testing.assert_close(weights, wanted_weights, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False])
def test_torch_encoder_layer(norm_first, activation, bias):
    layer = nn.TransformerEncoderLayer(
        10, 2, 13, activation=activation, batch_first=True, norm_first=norm_first, bias=bias
    )
    module = trained(layer)
    ticket = build_ticket(module, **OPTIONS)
    x = torch.randn(3, 5, 10, generator=torch.Generator().manual_seed(0))
    padding = torch.arange(5) >= torch.tensor([[5], [3], [4]])
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    network = ticket.network()
    for options in ({}, {"src_key_padding_mask": padding}, {"src_mask": causal}):
        wanted, found = module(x, **options), network(x, **options)
        assert (found - wanted).norm() < 0.01 * wanted.norm()
    torch.testing.assert_close(ticket.network(faithful=True)(x), network(x), rtol=1e-3, atol=1e-4)
