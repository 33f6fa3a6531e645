"""Whole and partial tickets, refusals, plans, comparisons and certificates."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.pretrained.small_models import (
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
from strongticket.models import batches, compare_models, load_model
from strongticket.models.tensors import matrix_shape, state_checksum
from strongticket.pretrained import (
    build_file,
    build_ticket,
    certify_layers,
    plan,
)
from strongticket.pretrained._certify import attention_bound, input_radius
from strongticket.pretrained.families import attention_of
from strongticket.pretrained.options import ModelOptions
from strongticket.ticket import Ticket, summarise
from strongticket.ticket.container import FORMAT

OPTIONS = dict(units=16, tolerance=1e-3, workers=1)


@pytest.fixture(scope="module")
def gpt2():
    return hf_model("gpt2")


@pytest.fixture(scope="module")
def ticket(gpt2):
    return build_ticket(gpt2, **OPTIONS)


@pytest.fixture(scope="module")
def partial(gpt2):
    return build_ticket(gpt2, **OPTIONS, only="transformer.h.1.*")


def test_a_partial_ticket_needs_its_base_model(gpt2, partial):
    assert partial.settings["base"] == state_checksum(gpt2.state_dict())
    assert {name.split(".")[2] for name in partial.masks} == {"1"}
    with pytest.raises(StrongTicketError, match=r"is partial.*Give that model as base"):
        partial.network()
    other = copy.deepcopy(gpt2)
    with torch.no_grad():
        other.transformer.wte.weight[0, 0] += 1e-3
    with pytest.raises(TicketError, match=f"checksum {state_checksum(gpt2.state_dict())}. Give that model"):
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
    assert not torch.equal(network.transformer.h[1].ln_1.weight, gpt2.transformer.h[1].ln_1.weight)
    assert before.keys() == gpt2.state_dict().keys()
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())
    faithful = outputs(partial.network(base=gpt2, form="factors"), inputs)
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
    build_ticket(gpt2, **OPTIONS, only="*.wpe.*")
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())


def test_tampered_settings_make_no_network(ticket):
    def changed(**changes):
        settings = ticket.settings | changes
        return Ticket(ticket.seed, ticket.kind, settings, ticket.laws, ticket.masks)

    with pytest.raises(TicketError, match="settings must have exactly"):
        changed(more=1).network()
    with pytest.raises(StrongTicketError, match="'os' is not a model class"):
        changed(**{"class": "os"}).network()
    with pytest.raises(StrongTicketError, match="'MultiheadAttention' is not a model class"):
        changed(**{"class": "MultiheadAttention", "library": "torch"}).network()
    larger = ticket.settings["config"] | {"n_embd": 15 << 16}
    with pytest.raises(TicketError, match="the ticket has shape"):
        changed(config=larger).network()
    for shape in ([1 << 40, 1 << 40], [-1], "ab"):
        with pytest.raises(TicketError, match=r"shape|numbers"):
            changed(tensors={"w": [0, shape]}).network()


@pytest.mark.parametrize(
    ("class_name", "options", "reason"),
    [
        ("MistralForCausalLM", LLAMA | dict(sliding_window=8), "sliding_window=8"),
        (
            "LlamaForCausalLM",
            LLAMA | dict(rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=2.0)),
            "rope_type='yarn'",
        ),
        ("GPT2LMHeadModel", GPT2 | dict(add_cross_attention=True), "add_cross_attention=True"),
        ("MixtralForCausalLM", LLAMA | dict(num_local_experts=2), "no adapter for a MixtralForCausalLM"),
    ],
)
def test_products_refuse_by_name_what_they_do_not_handle(class_name, options, reason):
    made_by = getattr(transformers, class_name)
    model = made_by(made_by.config_class(**options))
    with pytest.raises(StrongTicketError, match=reason):
        build_ticket(model, attention="products")


def test_wrong_options_of_attention_are_refused():
    with pytest.raises(StrongTicketError, match="no adapter for a MultiheadAttention"):
        build_ticket(nn.MultiheadAttention(4, 2), attention="products")
    with pytest.raises(StrongTicketError, match="attention='heads': expected one of linear, products"):
        build_ticket(nn.MultiheadAttention(4, 2), attention="heads")


class Small(nn.Module):
    """A module of the user's own: a convolution, batch norm, a tied table, a table of whole numbers."""

    def __init__(self, first: int = 0) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 5, 3)
        self.norm = nn.BatchNorm2d(5)
        self.table = nn.Embedding(7, 5)
        self.out = nn.Linear(5, 7, bias=False)
        self.out.weight = self.table.weight
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.register_buffer("order", torch.arange(first, first + 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (
            self.out(self.norm(self.convolution(x)).mean((-1, -2)) + self.table(self.order[0])) * self.scale
        )


def trained_small() -> Small:
    model = trained(Small())
    with torch.no_grad():
        model.norm.running_mean.normal_(generator=torch.Generator().manual_seed(0))
        model.norm.running_var.copy_(torch.tensor([1e-8, 1e-4, 0.1, 1.0, 30.0]))
    return model


def test_a_module_of_one_s_own_is_filled():
    model = trained_small()
    ticket = build_ticket(model, **OPTIONS)
    with pytest.raises(StrongTicketError, match=r"ticket\.network\(Small\(\.\.\.\)\)"):
        ticket.network()
    fresh = Small()
    network = ticket.network(fresh)
    assert network is fresh
    assert network.out.weight is network.table.weight
    x = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(network(x), model(x), rtol=0.02, atol=0.02)
    torch.testing.assert_close(network.norm.running_var, model.norm.running_var, rtol=5e-3, atol=1e-7)
    faithful = ticket.network(Small(), form="factors")
    torch.testing.assert_close(faithful(x), network(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(TicketError, match="the buffer 'order'"):
        ticket.network(Small(first=1))
    other = Small()
    other.table = nn.Embedding(8, 5)
    with pytest.raises(TicketError, match="the ticket has shape"):
        ticket.network(other)


def test_what_the_class_cannot_rebuild_is_refused_by_name_before_any_work(gpt2):
    changed = copy.deepcopy(gpt2)
    changed.transformer.h[0].ln_1.eps = 0.1
    with pytest.raises(StrongTicketError, match=r"does not rebuild the module 'transformer\.h\.0\.ln_1'"):
        build_ticket(changed)
    changed = copy.deepcopy(gpt2)
    changed.extra = nn.Parameter(torch.ones(3))
    with pytest.raises(StrongTicketError, match="does not rebuild the parameter 'extra'"):
        build_ticket(changed)
    changed = copy.deepcopy(gpt2)
    changed.lm_head.weight = nn.Parameter(changed.lm_head.weight.detach().clone())
    with pytest.raises(StrongTicketError, match="does not rebuild the parameter"):
        build_ticket(changed)
    changed = copy.deepcopy(gpt2)
    changed.transformer.h[0].mlp.act = nn.Tanh()
    with pytest.raises(StrongTicketError, match=r"the module 'transformer\.h\.0\.mlp\.act'"):
        build_ticket(changed)


def test_the_network_is_an_ordinary_model(ticket, tmp_path):
    network = ticket.network()
    assert network.lm_head.weight is network.transformer.wte.weight
    network.save_pretrained(tmp_path)
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
    ids = torch.arange(3, 8)[None]
    torch.testing.assert_close(again(ids).logits, network(ids).logits)
    assert network.half()(ids).logits.dtype == torch.float16
    assert network.float().generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0).shape == (1, 8)


def test_a_network_with_other_parameters_cannot_be_saved_as_its_class(ticket, gpt2, tmp_path):
    """transformers would save it, and load random numbers for most of its weights."""
    products = build_ticket(gpt2, **OPTIONS, attention="products")
    for network in (ticket.network(form="factors"), products.network()):
        with pytest.raises(StrongTicketError, match="does not have the parameters of a GPT2LMHeadModel"):
            network.save_pretrained(tmp_path)
    with pytest.raises(StrongTicketError, match="does not have the parameters of a GPT2LMHeadModel"):
        products.save_pretrained(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("shape", "sides"),
    [((), (1, 1)), ((5,), (1, 5)), ((4, 9), (4, 9)), ((64, 3, 7, 7), (64, 147)), ((8, 32, 16), (256, 16))],
)
def test_tensors_as_matrices(shape, sides):
    assert matrix_shape(shape) == sides


def test_bits_are_kept_to(gpt2, tmp_path):
    build_file(gpt2, tmp_path / "a.ticket", bits=20, workers=1)
    size = (tmp_path / "a.ticket").stat().st_size
    assert 8 * size / sum(p.numel() for p in gpt2.parameters()) < 20 * 1.2
    with pytest.raises(StrongTicketError, match="bits is too small"):
        build_file(gpt2, tmp_path / "b.ticket", bits=1.5, workers=1)


def test_options_are_one_object():
    assert ModelOptions.of(ModelOptions(seed=3), {"bits": 8}) == ModelOptions(seed=3, bits=8)


def test_a_target_that_is_not_finite_is_refused():
    module = trained(nn.MultiheadAttention(4, 2))
    with torch.no_grad():
        module.out_proj.weight[1, 2] = torch.nan
    with pytest.raises(StrongTicketError, match=r"out_proj.weight\[1, 2\] is not finite"):
        build_ticket(module)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(StrongTicketError, match="is not a Hugging Face model"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text(
        json.dumps(dict(model_type="gpt2", architectures=["GPT2LMHeadModel"]))
    )
    with pytest.raises(StrongTicketError, match="has no model"):
        load_model(tmp_path)


def test_large_biases_do_not_spoil_the_rest():
    """Qwen2's key biases are hundreds of times its weights."""
    model = hf_model("qwen2")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.k_proj.bias *= 300
    inputs = hf_inputs(model)
    wanted = outputs(model, inputs)
    found = outputs(build_ticket(model, tolerance=1e-3, workers=1).network(), inputs)
    assert (found - wanted).norm() < 0.02 * wanted.norm()


def test_zeros_are_built_exactly():
    module = trained(nn.MultiheadAttention(6, 2))
    with torch.no_grad():
        module.out_proj.weight.zero_()
        module.out_proj.bias.zero_()
        module.in_proj_bias.zero_()
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    network = build_ticket(module, **OPTIONS).network(nn.MultiheadAttention(6, 2))
    assert network(x, x, x)[0].abs().max() == 0


def test_plan_counts_what_is_built(gpt2, tmp_path):
    options = dict(tolerance=1e-2, only=["transformer.h.*", "transformer.wte.*"])
    planned = plan(gpt2, **options, workers=1)
    build_file(gpt2, tmp_path / "a.ticket", workers=1, **options)
    built = Ticket.load(tmp_path / "a.ticket")
    assert 2 * planned.pieces == len(built.masks)
    assert planned.tensors == len(built.settings["tensors"])
    assert planned.error == pytest.approx(built.metadata["relative_error"], rel=0.3)
    assert not planned.whole
    assert planned.seconds > 0


def test_plan_needs_no_weights(tmp_path):
    config = transformers.LlamaConfig(**LLAMA, architectures=["LlamaForCausalLM"])
    config.save_pretrained(tmp_path)
    assert plan(str(tmp_path), workers=2).whole


def test_plan_counts_tied_weights_once():
    model = hf_model("llama-tied")
    planned = plan(model, workers=1)
    assert planned.model_bytes == 4 * planned.numbers == 4 * sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", ["gpt2", "bert-mlm", "vit", "llama-bare"])
def test_compare_of_a_network_with_itself_finds_no_difference(name):
    model = hf_model(name)
    found = compare_models(model, model, batches(model, None, None, sequences=8))
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
    found = compare_models(gpt2, network, inputs)
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
    built = build_ticket(
        model, **OPTIONS, attention="products", only=[each.path for each in attention_of(model)]
    )
    found = certify_layers(built, model)
    assert [each.layer for each in found] == [0, 1]
    assert {each.arithmetic for each in found} == {"float32"}
    network = built.network(base=model)
    exact = with_exact_products(model)
    every = attention_of(model)
    for each in found:
        path, shape = next((m.path, m.shape) for m in every if m.layer == each.layer)
        goal, made = exact.get_submodule(path), network.get_submodule(path)
        generator = torch.Generator().manual_seed(each.layer)
        x = torch.randn(64, 5, shape.dim, generator=generator)
        x = x / x.norm(dim=-1, keepdim=True) * each.radius
        rotation = None
        if shape.pairs:
            angles = torch.rand(64, 5, shape.pairs, generator=generator) * 6
            rotation = (angles.cos(), angles.sin())
        both = None if rotation is None else (rotation, rotation)
        error = (made.attend(x, x, None, both)[0] - goal.attend(x, x, None, both)[0]).norm(dim=-1).max()
        assert 0 < error < each.bound
        assert np.isfinite(each.bound)


@pytest.mark.parametrize("name", ["gpt2", "llama-bias", "vit", "qwen2"])
def test_certificates_count_the_rounding_of_float32(name, monkeypatch):
    """Weights without any error: all that is left is the arithmetic that the network runs in."""
    model = hf_model(name)
    layer = attention_of(model)[0]
    weights = {p: w.astype(np.float32).astype(np.float64) for p, w in layer.targets(model)}
    radius = input_radius(layer, model)
    bound = attention_bound(layer, weights, weights, radius)
    single = with_exact_products(model).get_submodule(layer.path)
    double = copy.deepcopy(single).double()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 30, layer.shape.dim, generator=generator)
    x = x / x.norm(dim=-1, keepdim=True) * radius
    angles = torch.rand(200, 30, max(layer.shape.pairs, 1), generator=generator) * 6
    rotations = ((angles.cos(), angles.sin()),) * 2 if layer.shape.pairs else None
    made = single.attend(x, x, None, rotations)[0]
    monkeypatch.setattr(torch.Tensor, "softmax", lambda logits, dim, dtype: torch.softmax(logits, dim))
    doubled = rotations and tuple(tuple(angle.double() for angle in both) for both in rotations)
    wanted = double.attend(x.double(), x.double(), None, doubled)[0]
    assert 0 < (made - wanted).norm(dim=-1).max() <= bound < 1e-2 * wanted.norm(dim=-1).max()


def test_text_is_read_by_the_target_s_tokenizer(tmp_path):
    config = transformers.GPT2Config(**GPT2)
    with pytest.raises(StrongTicketError, match="has no tokenizer"):
        batches(transformers.GPT2LMHeadModel(config), tmp_path / "a.txt", None)


def test_a_folder_name_is_no_model():
    with pytest.raises(StrongTicketError, match=r"model is a str.*load_model"):
        build_ticket("stories260K")
