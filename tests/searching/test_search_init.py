"""Frozen weights: schemes, residual scaling, and the query and key parts alone scaled."""

import math

import numpy as np
import pytest
import torch
from tests.searching.test_search_scores import TOKENS, bert, gpt2, llama
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.searching import Scheme, attach, calibrated_scale, logit_std, prepare_parameters
from strongticket.searching.masking.source import ScaledSlice, Source
from strongticket.seeds import Normal, Uniform, draw


def ratios(model, scale):
    """Each weight matrix against the same without scale."""
    plain, scaled = (prepare_parameters(model, seed=1, qk_scale=factor).sources for factor in (1.0, scale))
    return {name: scaled[name].weights() / plain[name].weights() for name in plain}


def test_gpt2_scales_two_thirds_of_c_attn():
    for name, ratio in ratios(gpt2(), 3.0).items():
        expected = np.ones_like(ratio)
        if name.endswith("c_attn.weight"):
            expected[:, :16] = 3.0  # (8, 24): queries, keys, values
        np.testing.assert_allclose(ratio, expected, rtol=1e-6)


@pytest.mark.parametrize(("make", "ends"), [(llama, ("q_proj", "k_proj")), (bert, ("query", "key"))])
def test_separate_projections(make, ends):
    found = ratios(make(), 3.0)
    scaled = {name for name, ratio in found.items() if np.allclose(ratio, 3.0)}
    assert scaled == {name for name in found if name.split(".")[-2] in ends}
    assert len(scaled) == 2
    assert all(np.allclose(ratio, 1.0) for name, ratio in found.items() if name not in scaled)


def test_torch_attention():
    fused = ratios(nn.MultiheadAttention(8, 2), 3.0)
    np.testing.assert_allclose(fused["in_proj_weight"][:16], 3.0, rtol=1e-6)
    np.testing.assert_allclose(fused["in_proj_weight"][16:], 1.0, rtol=1e-6)
    np.testing.assert_allclose(fused["out_proj.weight"], 1.0)
    apart = ratios(nn.MultiheadAttention(8, 2, kdim=6, vdim=4), 3.0)
    assert [round(float(apart[f"{part}_proj_weight"].mean()), 3) for part in "qkv"] == [3, 3, 1]


@pytest.mark.parametrize(
    ("make", "size"), [(gpt2, 4), (llama, 2), (bert, 4), (lambda: nn.MultiheadAttention(8, 2), 4)]
)
def test_the_papers_scale_is_the_fourth_root_of_the_head_size(make, size):
    frozen = prepare_parameters(make()).sources.values()
    factors = {part.factor for source in frozen for part in source.slices}
    assert factors == {size**0.25}


def test_b2_standard_deviations():
    frozen = prepare_parameters(gpt2()).sources
    residual = Normal(0.02 / math.sqrt(2 * 2))
    for name, source in frozen.items():
        assert source.law == (residual if ".c_proj." in name else Normal(0.02))
    plain = prepare_parameters(gpt2(), scheme=Scheme(residual_scaling=False, embedding_std=0.5)).sources
    assert plain["transformer.h.0.mlp.c_proj.weight"].law == Normal(0.02)
    assert plain["transformer.wte.weight"].law == Normal(0.5)


def test_other_schemes():
    layer = nn.Linear(6, 3)
    laws = {
        "kaiming-normal": Normal(math.sqrt(2 / 6)),
        "kaiming-uniform": Uniform(1.0),
        "xavier-normal": Normal(math.sqrt(2 / 9)),
        "xavier-uniform": Uniform(math.sqrt(6 / 9)),
    }
    for name, law in laws.items():
        assert prepare_parameters(layer, scheme=Scheme(name), qk_scale=1).sources["weight"].law == law
    with pytest.raises(StrongTicketError, match="init must be one of gpt2"):
        Scheme("glorot")


def test_biases_zero_norms_one():
    model = bert()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    attach(model, 0.3)
    for name, parameter in model.named_parameters():
        if "parametrizations" not in name:
            assert (parameter == (1.0 if "LayerNorm.weight" in name else 0.0)).all()
            assert not parameter.requires_grad


def test_slices_are_scaled_after_the_draw():
    source = Source(1, "w", (6, 4), Normal(1.0), (ScaledSlice(0, 1, 4, 2.0), ScaledSlice(1, 2, 3, 5.0)))
    expected = draw(1, "w", (6, 4), Normal(1.0))
    expected[1:4] *= 2
    expected[:, 2] *= 5
    np.testing.assert_array_equal(source.weights(), expected)
    expected = draw(1, "w", (6, 4), Normal(1.0))
    expected[1:4] *= 3
    expected[:, 2] *= 3
    np.testing.assert_array_equal(source.scaled(3.0).weights(), expected)


def test_every_tensor_is_drawn_once(monkeypatch):
    """A calibration rescales what is there."""
    drawn = []
    original = Source.weights
    monkeypatch.setattr(Source, "weights", lambda source: drawn.append(source.name) or original(source))
    model = gpt2()
    attachment = attach(model, 0.3, scheme=Scheme(std=0.3), qk_scale=1.0, train=["head", "norm"])
    scale = calibrated_scale(model, TOKENS)
    assert sorted(drawn) == sorted(attachment.sources)
    for matrix in attachment.masked:
        expected = original(attachment.sources[matrix.name].scaled(scale))
        np.testing.assert_array_equal(matrix.weights.frozen.numpy(), expected)
    with pytest.raises(StrongTicketError, match=r"has a query and key scale.*qk_scale=1"):
        calibrated_scale(model, TOKENS)


def test_logit_std_against_the_logits_themselves():
    """One layer, one head: q kᵀ / √n_K by hand."""
    model = gpt2()
    attach(model, 0.5, scheme=Scheme(std=0.3), qk_scale=2.0)
    seen = []
    attention = model.transformer.h[0].attn
    hook = attention.c_attn.register_forward_hook(lambda module, inputs, output: seen.append(output))
    model.transformer.h = model.transformer.h[:1]
    measured = logit_std(model, TOKENS)
    hook.remove()
    query, key, _ = torch.cat(seen).double().split(8, dim=-1)
    heads = lambda x: x.reshape(2, 8, 2, 4).transpose(1, 2)  # noqa: E731
    logits = heads(query) @ heads(key).transpose(-1, -2) / 2
    rows = [logits[:, :, i, : i + 1].var(-1, unbiased=False) for i in range(1, 8)]
    assert measured == pytest.approx(float(torch.stack(rows).mean().sqrt()), rel=1e-4)


def test_measuring_logits_is_deterministic_and_changes_nothing():
    model = gpt2().train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.5
    attach(model, 0.5, scheme=Scheme(std=0.3))
    state = torch.get_rng_state()
    assert logit_std(model, TOKENS) == logit_std(model, TOKENS)
    assert torch.equal(state, torch.get_rng_state())
    assert model.training


@pytest.mark.parametrize("make", [gpt2, llama])
def test_calibration_reaches_its_target(make):
    model = make()
    attach(model, 0.3, scheme=Scheme(std=0.1), qk_scale=1.0)
    scale = calibrated_scale(model, TOKENS)
    assert logit_std(model, TOKENS) == pytest.approx(0.7, rel=0.02)
    assert scale > 1


def test_an_unknown_fusion_is_refused_unless_unscaled():
    model = nn.ModuleDict({"query_key_value": nn.Linear(4, 12)})
    with pytest.raises(StrongTicketError, match=r"'query_key_value.weight' mixes queries.*Pass qk_scale=1"):
        attach(model, qk_scale=2.0)
    assert attach(model, qk_scale=1).masked[0].shape == (12, 4)


def test_bad_scales_are_refused():
    for scale in (0.0, -1.0, math.inf, math.nan, "twice"):
        with pytest.raises(StrongTicketError, match="qk_scale="):
            attach(gpt2(), qk_scale=scale)
    with pytest.raises(StrongTicketError, match="attention logits are measured on transformers models"):
        logit_std(nn.Linear(2, 2), TOKENS)
    with pytest.raises(StrongTicketError, match="no query sees two keys"):
        logit_std(gpt2(), TOKENS[:, :1])
