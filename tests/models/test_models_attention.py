"""Where attention has its matrices, and attention run from products alone."""

import numpy as np
import pytest
import torch
from tests.models.small_models import (
    BERT,
    BY_PRODUCTS,
    GPT2,
    HF_MODELS,
    LLAMA,
    VIT,
    hf_inputs,
    hf_model,
    outputs,
    run_attention,
    transformers,
    with_exact_products,
)

from strongticket.builders import build
from strongticket.errors import StrongTicketError
from strongticket.models.attention import attention_of
from strongticket.models.attention.attention_map import logit_matrix

SUBSET = dict(tolerance=1e-3, workers=1)
YARN = dict(rope_type="yarn", rope_theta=1e4, factor=2.0)


@pytest.mark.parametrize("name", BY_PRODUCTS)
def test_exact_products_are_the_model(name):
    model = hf_model(name)
    inputs = hf_inputs(model)
    wanted = outputs(model, inputs)
    torch.testing.assert_close(outputs(with_exact_products(model), inputs), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", HF_MODELS)
def test_projections_are_the_model_s_attention(name):
    """Plain softmax attention of the projections that were read, in float64, against the module itself."""
    model = hf_model(name).double()
    layer = attention_of(model)[1]
    s, p = layer.shape, layer.read(model)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 5, s.dim, generator=generator, dtype=torch.float64)
    positions = torch.zeros(1, 5, dtype=torch.long)  # no rotation
    tokens, wanted = x[0].numpy(), run_attention(model, layer, x, positions)[0].numpy()

    def of(matrix):
        return np.c_[tokens, np.ones(len(tokens))][:, : len(matrix)] @ matrix

    found = np.zeros_like(wanted) + p.output_bias
    for head in range(s.heads):
        g = head // s.group
        logits = of(p.query[head]) @ of(p.key[g]).T
        weights = np.exp(logits - logits.max(1, keepdims=True))
        values = of(p.value[g]) + p.value_bias[g]
        found += weights / weights.sum(1, keepdims=True) @ values @ p.output[head]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)  # softmax is float32 there


def test_rotated_logits_against_rotation_itself():
    """Independent oracle: complex numbers that turn by position times frequency."""
    rng = np.random.default_rng(0)
    pairs, dim, tokens = 3, 5, 6
    queries, key = rng.normal(size=(2, dim, 2 * pairs)), rng.normal(size=(dim, 2 * pairs))
    x, y = rng.normal(size=(tokens, dim)), rng.normal(size=(tokens, dim))
    frequency = rng.uniform(0.1, 2, pairs)
    at = np.arange(tokens)
    turn = np.exp(1j * at[:, None] * frequency)  # (tokens, pairs)

    def turned(vectors):
        return (vectors[..., :pairs] + 1j * vectors[..., pairs:]) * turn

    turned_x, turned_y = turned(np.einsum("td,gdk->gtk", x, queries)), turned(y @ key)
    wanted = np.einsum("gtf,sf->gts", turned_x.conj(), turned_y).real
    found = np.zeros_like(wanted)
    for f in range(pairs):
        halves = logit_matrix(queries, key, f, pairs)  # (key_dim, group, 2, query_dim)
        angle = (at[:, None] - at[None, :]) * frequency[f]
        bilinear = np.einsum("td,kghd,sk->hgts", x, halves, y)
        found += bilinear[0] * np.cos(angle) - bilinear[1] * np.sin(angle)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_attention_products_count_as_the_paper_says():
    """One subset sum an entry of W_QK and of W_VO of each head; with RoPE two matrices a frequency."""
    model = hf_model("llama")
    config = model.config
    attention = attention_of(model)[0]
    d, heads, pairs = config.hidden_size, config.num_attention_heads, config.head_dim // 2
    assert sum(rows * columns for rows, columns in attention.products().values()) == heads * d * d * (
        2 * pairs + 1
    )


@pytest.fixture(scope="module", params=["llama-bias", "llama-tied", "qwen2", "mistral", "gpt2"])
def built(request):
    model = hf_model(request.param)
    return model, build(model, attention="products", **SUBSET)


def test_a_ticket_of_products_is_near_the_model(built):
    model, ticket = built
    assert not ticket.floats
    assert not ticket.choices
    network = ticket.network()
    assert type(network) is type(model)
    inputs = hf_inputs(model)
    wanted, found = outputs(model, inputs), outputs(network, inputs)
    assert 0 < (found - wanted).norm() < 0.02 * wanted.norm()
    assert torch.equal(outputs(ticket.network(form="factors"), inputs), found)


def test_generation_with_a_cache_is_generation_without(built):
    model, ticket = built
    network, inputs = ticket.network(), hf_inputs(model, batch=2, tokens=5)
    options = dict(do_sample=False, max_new_tokens=6, pad_token_id=0)
    cached = network.generate(**inputs, **options)
    assert torch.equal(cached, network.generate(**inputs, **options, use_cache=False))
    assert network.generate(**inputs, **options, num_beams=2).shape[1] == cached.shape[1]


def test_a_module_of_ones_own_is_filled_with_products(built):
    """Whatever attention it runs by default: products read masks as numbers to add."""
    model, ticket = built
    inputs = hf_inputs(model)
    wanted = outputs(ticket.network(), inputs)
    fresh = type(model)(model.config)
    assert torch.equal(outputs(ticket.network(fresh), inputs), wanted)


def test_products_cannot_be_saved_as_the_class(built, tmp_path):
    """transformers would save them, and load random numbers for most weights."""
    model, ticket = built
    for save in (ticket.network().save_pretrained, ticket.save_pretrained):
        with pytest.raises(StrongTicketError, match=f"have the parameters of a {type(model).__name__}"):
            save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_layer_of_products_leaves_the_rest():
    model = hf_model("gpt2")
    ticket = build(model, attention="products", only="transformer.h.1.attn", **SUBSET)
    network, inputs = ticket.network(base=model), hf_inputs(model)
    assert type(network.transformer.h[0].attn) is type(model.transformer.h[0].attn)
    assert torch.equal(network.transformer.wte.weight, model.transformer.wte.weight)
    wanted, found = outputs(model, inputs), outputs(network, inputs)
    assert 0 < (found - wanted).norm() < 0.01 * wanted.norm()


@pytest.mark.parametrize(
    ("class_name", "options", "reason"),
    [
        ("MistralForCausalLM", LLAMA | dict(sliding_window=8), "sliding_window=8"),
        ("LlamaForCausalLM", LLAMA | dict(rope_parameters=YARN), "rope_type='yarn'"),
        ("GPT2LMHeadModel", GPT2 | dict(add_cross_attention=True), "add_cross_attention=True"),
        ("MixtralForCausalLM", LLAMA | dict(num_local_experts=2), "attention layers of a MixtralForCausalLM"),
        ("BertModel", BERT, "attention='products' does not support a BertModel"),
        ("ViTModel", VIT, "attention='products' does not support a ViTModel"),
    ],
)
def test_products_refuse_by_name_what_they_do_not_handle(class_name, options, reason):
    made_by = getattr(transformers, class_name)
    model = made_by(made_by.config_class(**options))
    with pytest.raises(StrongTicketError, match=reason):
        build(model, attention="products")
