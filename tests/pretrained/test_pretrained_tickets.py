"""Whole and partial tickets, refusals, plans, comparisons and certificates."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import (
    GPT2,
    LLAMA,
    hf_inputs,
    hf_model,
    outputs,
    trained,
    transformers,
    with_exact_products,
)
from torch import nn

from strongticket.errors import StrongTicketError, TicketError
from strongticket.pretrained import (
    batches,
    build_file,
    build_ticket,
    certify_layers,
    compare,
    load_target,
    plan,
)
from strongticket.pretrained.attention_map import AttentionMap
from strongticket.pretrained.families import check, family_of
from strongticket.pretrained.target import checksum
from strongticket.ticket import Ticket, summarise
from strongticket.ticket.format import FORMAT

OPTIONS = dict(per_row=16, tolerance=1e-3, workers=1)


@pytest.fixture(scope="module")
def gpt2():
    return hf_model("gpt2")


@pytest.fixture(scope="module")
def ticket(gpt2):
    return build_ticket(gpt2, **OPTIONS)


@pytest.fixture(scope="module")
def partial(gpt2):
    return build_ticket(gpt2, **OPTIONS, parts=["attention", "feed-forward"], layers=[1])


def test_a_partial_ticket_needs_its_base_model(gpt2, partial):
    assert partial.settings["base"] == checksum(gpt2)
    assert {name.split(".")[1] for name in partial.masks} == {"1"}
    with pytest.raises(StrongTicketError, match=r"is partial.*Give that model as base"):
        partial.network()
    other = copy.deepcopy(gpt2)
    with torch.no_grad():
        other.transformer.wte.weight[0, 0] += 1e-3
    with pytest.raises(TicketError, match=f"checksum {checksum(gpt2)}. Give that one"):
        partial.network(base=other)
    with pytest.raises(TicketError, match="base is a BertModel"):
        partial.network(base=hf_model("bert"))


def test_a_partial_ticket_leaves_the_rest_and_the_base_alone(gpt2, partial):
    before = copy.deepcopy(gpt2.state_dict())
    network, inputs = partial.network(base=gpt2), hf_inputs(gpt2)
    wanted = outputs(gpt2, inputs)
    found = outputs(network, inputs)
    assert 0 < (found - wanted).norm() < 0.02 * wanted.norm()
    assert torch.equal(network.transformer.h[0].ln_1.weight, gpt2.transformer.h[0].ln_1.weight)
    assert (network.transformer.h[1].ln_1.weight == 1).all()
    assert before.keys() == gpt2.state_dict().keys()
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())
    faithful = outputs(partial.network(base=gpt2, faithful=True), inputs)
    torch.testing.assert_close(faithful, found, rtol=1e-3, atol=1e-4)


def test_a_whole_ticket_refuses_a_base(gpt2, ticket):
    with pytest.raises(StrongTicketError, match="the ticket is whole"):
        ticket.network(base=gpt2)


def test_a_saved_ticket_gives_the_same_network(gpt2, ticket, tmp_path):
    ticket.save(tmp_path / "a.ticket")
    loaded = Ticket.load(tmp_path / "a.ticket")
    assert loaded == ticket
    inputs = hf_inputs(gpt2)
    assert torch.equal(outputs(loaded.network(), inputs), outputs(ticket.network(), inputs))
    summary = summarise(tmp_path / "a.ticket")
    assert (summary.kind, summary.settings) == ("pretrained", ticket.settings)
    assert {tensor.name for tensor in summary.tensors} == ticket.masks.keys()
    with pytest.raises(TicketError):
        summarise(Path(__file__))
    for wrong in ({"__metadata__": [1]}, {"index": {"data_offsets": [0, 1 << 62]}}, {"index": 3}):
        header = json.dumps({"__metadata__": {"format": FORMAT}} | wrong).encode()
        (tmp_path / "wrong.ticket").write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(TicketError):
            summarise(tmp_path / "wrong.ticket")


def test_the_target_is_not_changed_and_the_global_generator_not_touched(gpt2):
    before, state = copy.deepcopy(gpt2.state_dict()), torch.get_rng_state()
    build_ticket(gpt2, **OPTIONS, parts=["head"])
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())


def test_tampered_settings_make_no_network(ticket):
    broken = dict(ticket.settings, base="0" * 32)
    with pytest.raises(TicketError, match="name a base model exactly if"):
        Ticket(ticket.seed, ticket.kind, broken, ticket.laws, ticket.masks).network()
    wrong = dict(ticket.settings, **{"class": "os"})
    with pytest.raises(TicketError, match="os is not supported"):
        Ticket(ticket.seed, ticket.kind, wrong, ticket.laws, ticket.masks).network()


def config_of(name: str, **options):
    return getattr(transformers, name)(**options)


@pytest.mark.parametrize(
    ("class_name", "config", "reason"),
    [
        (
            "MistralForCausalLM",
            ("MistralConfig", dict(sliding_window=8, max_position_embeddings=32)),
            "sliding_window=8",
        ),
        ("MixtralForCausalLM", ("MixtralConfig", {}), "a mixture of experts"),
        ("BloomForCausalLM", ("BloomConfig", {}), "ALiBi"),
        (
            "LlamaForCausalLM",
            ("LlamaConfig", dict(rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=2.0))),
            "rope_type='yarn'",
        ),
        ("LlamaForCausalLM", ("LlamaConfig", dict(hidden_act="xielu")), "hidden_act='xielu'"),
        ("GPT2LMHeadModel", ("GPT2Config", dict(add_cross_attention=True)), "add_cross_attention=True"),
        ("BertModel", ("BertConfig", dict(is_decoder=True)), "is_decoder=True"),
        ("LlamaForSequenceClassification", ("LlamaConfig", {}), "not supported. Supported are"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(class_name, config, reason):
    with pytest.raises(StrongTicketError, match=reason):
        check(class_name, config_of(config[0], **config[1]))


def test_unsupported_modules_are_refused_by_name():
    with pytest.raises(StrongTicketError, match="LSTM is not supported"):
        build_ticket(nn.LSTM(3, 3))
    with pytest.raises(StrongTicketError, match="add_bias_kv=True"):
        build_ticket(nn.MultiheadAttention(4, 2, add_bias_kv=True))
    with pytest.raises(StrongTicketError, match="add_zero_attn=True"):
        build_ticket(nn.MultiheadAttention(4, 2, add_zero_attn=True))
    with pytest.raises(StrongTicketError, match="attention='heads': expected one of products, projections"):
        build_ticket(nn.MultiheadAttention(4, 2), attention="heads")
    with pytest.raises(StrongTicketError, match=r"torch's attention has none\. Leave it at 'products'"):
        build_ticket(nn.MultiheadAttention(4, 2), attention="projections")
    with pytest.raises(StrongTicketError, match="Expected relu or gelu"):
        build_ticket(nn.TransformerEncoderLayer(4, 2, 5, activation=torch.tanh))


def test_a_target_that_is_not_finite_is_refused():
    module = trained(nn.MultiheadAttention(4, 2))
    with torch.no_grad():
        module.out_proj.weight[1, 2] = torch.nan
    with pytest.raises(StrongTicketError, match=r"out_proj.weight\[1, 2\] is not finite"):
        build_ticket(module)


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(StrongTicketError, match="is not a Hugging Face model"):
        load_target(str(tmp_path))
    (tmp_path / "config.json").write_text(
        json.dumps(dict(model_type="gpt2", architectures=["GPT2LMHeadModel"]))
    )
    with pytest.raises(StrongTicketError, match="has no model"):
        load_target(str(tmp_path))


def test_large_biases_do_not_spoil_the_rest():
    """Qwen2's key biases are hundreds of times its weights."""
    model = hf_model("qwen2")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.k_proj.bias *= 300
    inputs = hf_inputs(model)
    wanted = outputs(model, inputs)
    found = outputs(build_ticket(model, per_row=24, workers=1).network(), inputs)
    assert (found - wanted).norm() < 0.02 * wanted.norm()


def test_zeros_are_built_exactly():
    module = trained(nn.MultiheadAttention(6, 2))
    with torch.no_grad():
        module.out_proj.weight.zero_()
        module.out_proj.bias.zero_()
        module.in_proj_bias.zero_()
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    assert build_ticket(module, **OPTIONS).network()(x, x, x)[0].abs().max() == 0


def test_plan_counts_what_is_built(gpt2, tmp_path):
    options = dict(per_row=16, tolerance=1e-3, parts=["attention", "embedding"])
    planned = plan(gpt2, **options, workers=1)
    build_file(gpt2, tmp_path / "a.ticket", workers=1, **options)
    built = Ticket.load(tmp_path / "a.ticket")
    assert planned.problems == built.metadata["problems"]
    assert 2 * planned.pieces == len(built.masks)
    assert sum(part.weights for part in planned.parts) == sum(mask.size for mask in built.masks.values())
    assert not planned.whole
    assert planned.seconds > 0
    sizes = {part.part: part.trained for part in planned.parts}
    embedding = gpt2.transformer.wte.weight.numel() + gpt2.transformer.wpe.weight.numel()
    assert sizes["embedding"] == embedding


def test_plan_reads_no_weights(tmp_path):
    config = transformers.LlamaConfig(**LLAMA, architectures=["LlamaForCausalLM"])
    config.save_pretrained(tmp_path)
    assert plan(str(tmp_path), workers=2).whole


def test_plan_counts_tied_weights_once():
    model = hf_model("llama-tied")
    assert plan(model, workers=1).model_bytes == 4 * sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", ["gpt2", "bert-mlm", "vit", "llama-bare"])
def test_compare_sees_no_difference_where_there_is_none(name):
    model = hf_model(name)
    found = compare(model, model, batches(model, None, None, sequences=8))
    assert found.layers == (0.0, 0.0)
    assert found.cosine_min == pytest.approx(1)
    if name in ("gpt2", "bert-mlm"):
        assert found.divergence == 0
        assert found.agreement == 1
        assert found.source_loss == found.target_loss


@pytest.mark.parametrize("name", ["gpt2", "bert", "vit"])
def test_no_more_inputs_are_made_up_than_asked_for(name):
    model = hf_model(name)
    sizes = [len(next(iter(batch.inputs.values()))) for batch in batches(model, None, None, sequences=11)]
    assert sizes == [8, 3]


def test_compare_against_plain_computation(gpt2, ticket):
    network = ticket.network()
    inputs = batches(gpt2, None, None, sequences=8)
    found = compare(gpt2, network, inputs)
    ids = inputs[0].inputs["input_ids"]
    with torch.no_grad():
        goal, made = gpt2(ids, labels=ids), network(ids, labels=ids)
    assert found.target_loss == pytest.approx(goal.loss.item(), rel=1e-5)
    assert found.source_loss == pytest.approx(made.loss.item(), rel=1e-5)
    divergence = nn.functional.kl_div(
        *(each.logits.double().log_softmax(-1) for each in (made, goal)), reduction="none", log_target=True
    )
    assert found.divergence == pytest.approx(divergence.sum(-1).mean().item(), rel=5e-2)  # float32 logits
    with torch.no_grad():
        states = [model(ids, output_hidden_states=True).hidden_states[1] for model in (gpt2, network)]
    assert found.layers[0] == pytest.approx(
        float((states[1] - states[0]).norm() / states[0].norm()), rel=1e-3
    )


@pytest.mark.parametrize("name", ["gpt2", "llama-bias", "bert", "vit", "qwen2"])
def test_certificates_hold_for_inputs_in_their_ball(name):
    model = hf_model(name)
    built = build_ticket(model, **OPTIONS, parts=["attention"])
    found = certify_layers(built, model)
    assert [each.layer for each in found] == [0, 1]
    network = built.network(base=model)
    exact = with_exact_products(model, lambda each: isinstance(each, AttentionMap))
    every = family_of(type(model).__name__).maps(model)
    for each in found:
        path, shape = next(
            (m.path, m.shape) for m in every if isinstance(m, AttentionMap) and m.layer == each.layer
        )
        goal, made = exact.get_submodule(path), network.get_submodule(path)
        generator = torch.Generator().manual_seed(each.layer)
        x = torch.randn(64, 5, shape.query_dim, generator=generator)
        x = x / x.norm(dim=-1, keepdim=True) * each.radius
        rotation = None
        if shape.pairs:
            angles = torch.rand(64, 5, shape.pairs, generator=generator) * 6
            rotation = (angles.cos(), angles.sin())
        both = None if rotation is None else (rotation, rotation)
        error = (made.attend(x, x, x, None, both)[0] - goal.attend(x, x, x, None, both)[0]).norm(dim=-1).max()
        assert 0 < error < each.bound
        assert np.isfinite(each.bound)


def test_text_is_read_by_the_target_s_tokenizer(tmp_path):
    config = transformers.GPT2Config(**GPT2)
    with pytest.raises(StrongTicketError, match="has no tokenizer"):
        batches(transformers.GPT2LMHeadModel(config), tmp_path / "a.txt", None)
