"""Adapters alone, without subset sums: exact products put in their places are the model, to float32 rounding."""

import numpy as np
import pytest
import torch
from tests.pretrained.small_models import (
    HF_MODELS,
    hf_inputs,
    hf_model,
    outputs,
    with_exact_products,
)

from strongticket.pretrained.families import attention_of, every
from strongticket.pretrained.families.attention_map import logit_matrix


@pytest.mark.parametrize("name", HF_MODELS)
def test_exact_products_are_the_model(name):
    model = hf_model(name)
    inputs = hf_inputs(model)
    wanted = outputs(model, inputs)
    torch.testing.assert_close(outputs(with_exact_products(model), inputs), wanted, rtol=1e-4, atol=1e-4)


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

    wanted = np.einsum(
        "gtf,sf->gts", turned(np.einsum("td,gdk->gtk", x, queries)).conj(), turned(y @ key)
    ).real
    found = np.zeros_like(wanted)
    for f in range(pairs):
        halves = logit_matrix(queries, key, f, pairs)  # (key_dim, group, 2, query_dim)
        angle = (at[:, None] - at[None, :]) * frequency[f]
        bilinear = np.einsum("td,kghd,sk->hgts", x, halves, y)
        found += bilinear[0] * np.cos(angle) - bilinear[1] * np.sin(angle)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_every_class_belongs_to_one_family_and_names_are_unique():
    classes = [name for family in every() for name in family.classes]
    assert len(set(classes)) == len(classes)
    for name in HF_MODELS:
        model = hf_model(name)
        products = [p.name for each in attention_of(model) for p in each.products()]
        assert len(set(products)) == len(products)


def test_attention_products_count_as_the_paper_says():
    """One subset sum an entry of W_QK and of W_VO of each head; with RoPE two matrices a frequency."""
    model = hf_model("llama")
    config = model.config
    attention = attention_of(model)[0]
    d, heads, pairs = config.hidden_size, config.num_attention_heads, config.head_dim // 2
    assert sum(p.rows * p.columns for p in attention.products()) == heads * d * d * (2 * pairs + 1)
