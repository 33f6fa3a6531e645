"""The networks of built tickets: whole and partial, of transformers' classes and one's own, merged and as factors."""

import copy
import json

import numpy as np
import pytest
import torch
from tests.models.small_models import hf_inputs, hf_model, outputs, trained, transformers
from torch import nn

from strongticket.builders import build
from strongticket.choice.source import many_weights
from strongticket.errors import StrongTicketError, TicketError
from strongticket.models.tensors import state_checksum
from strongticket.seeds import draw
from strongticket.ticket import Ticket, summarise
from strongticket.ticket.container import FORMAT

OPTIONS = dict(tolerance=4e-3, workers=1)


@pytest.fixture(scope="module")
def gpt2():
    return hf_model("gpt2")


@pytest.fixture(scope="module", params=["choice", "subset"])
def ticket(gpt2, request):
    return build(gpt2, by=request.param, **OPTIONS)


@pytest.fixture(scope="module", params=["choice", "subset"])
def partial(gpt2, request):
    return build(gpt2, by=request.param, only="transformer.h.1.*", **OPTIONS)


def test_settings_of_another_type_are_refused(gpt2):
    ticket = build(gpt2, **OPTIONS)
    changed = Ticket(0, "model", ticket.settings | {"rebuilt": 3}, {}, {}, choices=ticket.choices)
    with pytest.raises(StrongTicketError, match="rebuilt=3: expected checksums by name"):
        changed.network()


def test_the_network_is_an_ordinary_model(gpt2, ticket, tmp_path):
    network = ticket.network()
    assert network.lm_head.weight is network.transformer.wte.weight
    assert network.state_dict().keys() == gpt2.state_dict().keys()
    inputs = hf_inputs(gpt2)
    wanted, found = outputs(gpt2, inputs), outputs(network, inputs)
    assert 0 < (found - wanted).norm() < 0.02 * wanted.norm()
    network.save_pretrained(tmp_path)
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
    assert torch.equal(outputs(again.eval(), inputs), found)
    ids = torch.arange(3, 8)[None]
    assert network.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0).shape == (1, 8)
    assert network.half()(ids).logits.dtype == torch.float16
    assert ticket.network(dtype=torch.bfloat16)(ids).logits.dtype == torch.bfloat16


def test_a_saved_ticket_gives_the_same_network(gpt2, ticket, tmp_path):
    ticket.save(tmp_path / "a.ticket")
    loaded = Ticket.load(tmp_path / "a.ticket")
    assert loaded == ticket
    inputs = hf_inputs(gpt2)
    assert torch.equal(outputs(loaded.network(), inputs), outputs(ticket.network(), inputs))
    summary = summarise(tmp_path / "a.ticket")
    assert (summary.kind, summary.settings) == ("model", ticket.settings)
    assert {tensor.name for tensor in summary.tensors} == ticket.shapes().keys()


def test_a_summary_of_a_damaged_file_is_an_error(tmp_path):
    path = tmp_path / "wrong.ticket"
    for wrong in ({"__metadata__": [1]}, {"index": {"data_offsets": [0, 1 << 62]}}, {"index": 3}):
        header = json.dumps({"__metadata__": {"format": FORMAT}} | wrong).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(TicketError):
            summarise(path)


def test_a_whole_ticket_refuses_a_base(gpt2, ticket):
    with pytest.raises(StrongTicketError, match="the ticket is whole"):
        ticket.network(base=gpt2)


def test_a_partial_ticket_needs_its_base_model(gpt2, partial):
    assert partial.settings["base"] == state_checksum(gpt2.state_dict())
    assert {name.split(".")[2] for name in partial.shapes()} == {"1"}
    with pytest.raises(StrongTicketError, match=r"is partial.*Give that model as base"):
        partial.network()
    with pytest.raises(StrongTicketError, match="give the trained model as base, not a new module"):
        partial.network(copy.deepcopy(gpt2))
    other = copy.deepcopy(gpt2)
    with torch.no_grad():
        other.transformer.wte.weight[0, 0] += 1e-3
    with pytest.raises(TicketError, match=f"checksum {state_checksum(gpt2.state_dict())}. Give that model"):
        partial.network(base=other)
    with pytest.raises(TicketError, match="base is a BertModel"):
        partial.network(base=hf_model("bert"))


def test_a_partial_ticket_leaves_the_rest_and_the_base_alone(gpt2, partial, tmp_path):
    before = copy.deepcopy(gpt2.state_dict())
    network, inputs = partial.network(base=gpt2), hf_inputs(gpt2)
    wanted, found = outputs(gpt2, inputs), outputs(network, inputs)
    assert 0 < (found - wanted).norm() < 0.02 * wanted.norm()
    assert torch.equal(network.transformer.h[0].ln_1.weight, gpt2.transformer.h[0].ln_1.weight)
    assert not torch.equal(network.transformer.h[1].ln_1.weight, gpt2.transformer.h[1].ln_1.weight)
    assert before.keys() == gpt2.state_dict().keys()
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())
    assert torch.equal(outputs(partial.network(base=gpt2, form="factors"), inputs), found)
    gpt2.save_pretrained(tmp_path)
    assert torch.equal(outputs(partial.network(base=tmp_path), inputs), found)


@pytest.mark.parametrize("states", [1, 8])
def test_the_factors_of_choices_are_many_random_weights_and_a_mask_that_keeps_one(gpt2, states):
    ticket = build(gpt2, tolerance=0.02, states=states, seed=5, workers=1)
    network, inputs = ticket.network(form="factors"), hf_inputs(gpt2)
    assert torch.equal(outputs(network, inputs), outputs(ticket.network(), inputs))
    name = "transformer.h.1.mlp.c_fc.weight"
    (source,) = network.transformer.h[1].mlp.c_fc.parametrizations.weight
    weights, mask = source.factors
    wanted = many_weights(ticket.choices[name], 5, name)
    assert all(map(np.array_equal, (weights, mask), wanted))
    assert (mask.sum(0) == 1).all()
    assert len(weights) > 50


def test_the_factors_of_subset_sums_are_pruned_random_matrices(gpt2):
    ticket = build(gpt2, by="subset", seed=5, only="transformer.h.0.*", **OPTIONS)
    network = ticket.network(base=gpt2, form="factors")
    for name, shape in ticket.shapes().items():
        drawn = draw(5, name, shape, ticket.laws[name])
        assert np.array_equal(ticket.weights(name), drawn * ticket.masks[name])
    name = "transformer.h.0.attn.c_attn.weight.0"
    left, right = ticket.weights(f"{name}.left"), ticket.weights(f"{name}.right")
    product = torch.from_numpy((left.astype(np.float64) @ right.T).astype(np.float32))
    assert torch.equal(network.transformer.h[0].attn.c_attn.weight, product)
    # One subset sum for each entry, of 24 products of its own: every unit serves one row.
    assert (np.count_nonzero(ticket.masks[f"{name}.left"], axis=0) <= 1).all()


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
        pooled = self.norm(self.convolution(x)).mean((-1, -2))
        return self.out(pooled + self.table(self.order[0])) * self.scale


def trained_small() -> Small:
    model = trained(Small())
    with torch.no_grad():
        model.norm.running_mean.normal_(generator=torch.Generator().manual_seed(0))
        model.norm.running_var.copy_(torch.tensor([1e-8, 1e-4, 0.1, 1.0, 30.0]))
    return model


@pytest.mark.parametrize("by", ["choice", "subset"])
def test_a_module_of_one_s_own_is_filled(by):
    model = trained_small()
    ticket = build(model, by=by, tolerance=1e-3, workers=1)
    with pytest.raises(StrongTicketError, match=r"ticket\.network\(Small\(\.\.\.\)\)"):
        ticket.network()
    fresh = Small()
    network = ticket.network(fresh)
    assert network is fresh
    assert network.out.weight is network.table.weight
    x = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(network(x), model(x), rtol=0.02, atol=0.02)
    torch.testing.assert_close(network.norm.running_var, model.norm.running_var, rtol=1e-2, atol=1e-7)
    assert torch.equal(ticket.network(Small(), form="factors")(x), network(x))
    with pytest.raises(TicketError, match="the buffer 'order'"):
        ticket.network(Small(first=1))
    other = Small()
    other.table = nn.Embedding(8, 5)
    with pytest.raises(TicketError, match="the ticket has shape"):
        ticket.network(other)


def test_tampered_settings_make_no_network(ticket):
    def changed(**changes):
        settings = ticket.settings | changes
        return Ticket(ticket.seed, "model", settings, ticket.laws, ticket.masks, choices=ticket.choices)

    with pytest.raises(TicketError, match="settings must have exactly"):
        changed(more=1).network()
    with pytest.raises(StrongTicketError, match="'os' is not a model class"):
        changed(**{"class": "os"}).network()
    with pytest.raises(StrongTicketError, match="'MultiheadAttention' is not a model class"):
        changed(**{"class": "MultiheadAttention", "library": "torch"}).network()
    for by in ("magic", ["choice"], {"choice": 1}, None):
        with pytest.raises(TicketError, match="is not a way to build a ticket"):
            changed(by=by).network()
    larger = ticket.settings["config"] | {"n_embd": 15 << 16}
    with pytest.raises(TicketError, match="the ticket has shape"):
        changed(config=larger).network()
    for shape in ([1 << 40, 1 << 40], [-1], "ab", [1.0], [True]):
        with pytest.raises(TicketError, match=r"shape|numbers|limit"):
            changed(tensors={"w": shape}).network()
    if ticket.masks:
        for per_row in (0, 1 << 40, "24", None, 2.0):
            with pytest.raises(TicketError, match="per_row"):
                changed(per_row=per_row).network()


def test_zeros_are_built_exactly():
    module = trained(nn.MultiheadAttention(6, 2))
    with torch.no_grad():
        module.out_proj.weight.zero_()
        module.out_proj.bias.zero_()
        module.in_proj_bias.zero_()
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    for by in ("choice", "subset"):
        network = build(module, by=by, **OPTIONS).network(nn.MultiheadAttention(6, 2))
        assert network(x, x, x)[0].abs().max() == 0


def test_large_biases_do_not_spoil_the_rest():
    """Qwen2's key biases are hundreds of times its weights."""
    model = hf_model("qwen2")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.k_proj.bias *= 300
    inputs = hf_inputs(model)
    wanted = outputs(model, inputs)
    found = outputs(build(model, tolerance=1e-3, workers=1).network(), inputs)
    assert (found - wanted).norm() < 0.02 * wanted.norm()
