"""Networks in JavaScript compute what transformers computes, to float32 rounding."""

import numpy as np
import pytest
import torch
from tests.web.samples import TEXT, image_ticket, language_ticket, llama_ticket

from strongticket.models.tokenizers import BytePairs
from strongticket.searching import preset, to_ticket
from strongticket.searching.architectures import make_model
from strongticket.searching.registry import find_method
from strongticket.seeds import Normal
from strongticket.ticket import Ticket

TOKENS = [3, 0, 7, 7, 1, 9, 4, 2]
ROUNDING = 2e-6  # of the largest logit: some float32 steps


def relative_error(found, expected: torch.Tensor) -> float:
    return float((torch.tensor(found) - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize(
    "ticket",
    [
        language_ticket(),
        language_ticket(trained=True, activation_function="gelu_new"),
        language_ticket(trained=True, activation_function="gelu", n_inner=40, tie_word_embeddings=False),
        language_ticket(activation_function="silu", scale_attn_by_inverse_layer_idx=True),
        language_ticket(activation_function="tanh", scale_attn_weights=False, layer_norm_epsilon=1e-3),
        llama_ticket(),
        llama_ticket(trained=True, attention_bias=True, mlp_bias=True, head_dim=8),
        llama_ticket(rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
        llama_ticket("mistral", trained=True, tie_word_embeddings=False, hidden_act="gelu"),
        llama_ticket("qwen2", trained=True, num_key_value_heads=1),
    ],
    ids=lambda ticket: ticket.settings["config"]["model_type"],
)
def test_logits_at_every_position(javascript, ticket):
    with torch.no_grad():
        expected = ticket.network()(torch.tensor([TOKENS])).logits[0]
    (found,) = javascript({"do": "language", "file": ticket.to_bytes(), "tokens": TOKENS})
    assert relative_error(found, expected) < ROUNDING


@pytest.mark.parametrize("ticket", [language_ticket(), llama_ticket()], ids=["gpt2", "llama"])
def test_greedy_text_is_the_librarys_also_beyond_the_context(javascript, ticket):
    expected = "".join(ticket.generate("The quick", tokens=30, temperature=0))
    (found,) = javascript({"do": "write", "file": ticket.to_bytes(), "prompt": "The quick", "count": 30})
    assert found == expected


def test_byte_pair_tokens_are_the_librarys(javascript):
    text = "It's 12 naïve cafés,\n\n  they'll   say: «größe» 🦊!\t" + TEXT * 3
    tokenizer = BytePairs.trained(TEXT * 20 + text, 300)
    ticket = language_ticket(tokenizer=tokenizer)
    (found,) = javascript({"do": "tokens", "file": ticket.to_bytes(), "text": text})
    assert found == {"tokens": [int(token) for token in tokenizer.encode(text)], "text": text}


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_vit_logits(javascript, activation):
    ticket = image_ticket(hidden_act=activation)
    images = torch.rand((3, 1, 8, 8), generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.no_grad():
        expected = ticket.network()(images).logits
    job = {"do": "images", "file": ticket.to_bytes(), "images": images.reshape(3, -1).tolist()}
    assert relative_error(javascript(job)[0], expected) < ROUNDING


def test_networks_that_do_not_fit_are_refused(node):
    good = language_ticket()
    settings = good.settings
    config = settings["config"]

    def answer(settings=settings, masks=good.masks, kind="search"):
        laws = {name: good.laws.get(name, Normal(1.0)) for name in masks}
        ticket = Ticket(1, kind, settings, laws, masks)
        return node({"do": "refuses_network", "file": ticket.to_bytes()})[0]

    assert answer() == "accepted"
    assert 'does not run tickets of kind "relu"' in answer(kind="relu")
    assert "exactly config, parts and trained" in answer(settings | {"more": 1})
    assert 'networks of type "bert"' in answer(settings | {"config": {"model_type": "bert"}})
    assert 'an entry "auto_map"' in answer(settings | {"config": config | {"auto_map": {}}})
    assert "activation" in answer(settings | {"config": config | {"activation_function": "constructor"}})
    assert "n_embd must be a size" in answer(settings | {"config": config | {"n_embd": -1}})
    assert 'trained names "x"' in answer(settings | {"trained": ["x"]})
    assert 'parts names "x"' in answer(settings | {"parts": {"x": []}})
    wrong = {"transformer.wte.weight": [[2, 0, 1, 1.0]]}
    assert "axis 0 or 1" in answer(settings | {"parts": wrong})
    fewer = {name: mask for name, mask in good.masks.items() if "wpe" not in name}
    assert 'tensor "transformer.wpe.weight"' in answer(masks=fewer)
    assert 'tensor "extra"' in answer(masks=good.masks | {"extra": np.ones(3, bool)})


@pytest.mark.parametrize(
    ("method", "sparse"),
    [
        *(
            (name, {})
            for name in ("signed", "multicoat", "iterand", "biprop", "int8", "int4", "ternary", "binary")
        ),
        *((name, {"dropped": 0.4, "locked": 0.2}) for name in ("edge-popup", "signed", "iterand")),
    ],
)
def test_coded_weights(javascript, method, sparse):
    """Tickets of search methods that store more than one mask, and of sparse sources."""
    config = preset(
        "paper-laptop",
        method=method,
        dim=16,
        heads=2,
        layers=1,
        context=8,
        law="signed",
        qk_scale=2.0,
        **sparse,
    )
    model = make_model(config, 12)
    attachment = find_method(method)(model, config)
    if method == "iterand":
        attachment.before_step(2, 8)
        with torch.no_grad():
            for matrix in attachment.masked:
                matrix.parameter.copy_(torch.rand(matrix.shape))  # some of what was drawn again is kept
    ticket = to_ticket(model, attachment)
    with torch.no_grad():
        expected = ticket.network()(torch.tensor([TOKENS])).logits[0]
        assert torch.equal(model.eval()(torch.tensor([TOKENS])).logits[0], expected)
    (found,) = javascript({"do": "language", "file": ticket.to_bytes(), "tokens": TOKENS})
    assert relative_error(found, expected) < ROUNDING
