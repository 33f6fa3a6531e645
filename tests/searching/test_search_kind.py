"""Tickets of found networks: what is stored, what is rebuilt, what is refused."""

import dataclasses

import numpy as np
import pytest
import torch
import transformers
from tests.searching.test_search_scores import TOKENS, bert, gpt2, llama, steps

from strongticket import choice
from strongticket.errors import StrongTicketError, TicketError
from strongticket.models import describe, new_model
from strongticket.searching import attach, masks, to_ticket
from strongticket.searching.kind import KINDS
from strongticket.ticket import Ticket


@pytest.mark.parametrize("family", [gpt2, llama, bert])
@pytest.mark.parametrize("train", [(), ("norm", "embedding")])
def test_a_reloaded_ticket_computes_the_same_bits(tmp_path, family, train):
    model = family()
    attachment = attach(model, 0.3, seed=2, qk_scale=3.0, train=train)
    steps(model, 2)
    ticket = to_ticket(model, attachment)
    ticket.save(tmp_path / "found.ticket")
    loaded = Ticket.load(tmp_path / "found.ticket")
    loaded.verify()
    again = loaded.network()
    assert type(again) is type(model)
    model.eval()
    with torch.no_grad():
        assert torch.equal(again(TOKENS).logits, model(TOKENS).logits)
    assert all(not parameter.requires_grad for parameter in again.parameters())
    for name, mask in masks(model).items():
        np.testing.assert_array_equal(loaded.masks[name], mask)
    assert bool(loaded.floats) == bool(train)


def test_nothing_but_seed_and_masks_is_stored():
    model = gpt2()
    attachment = attach(model, 0.3)
    ticket = to_ticket(model, attachment)
    assert ticket.floats == {}
    assert ticket.masks.keys() == attachment.sources.keys()
    assert "lm_head.weight" not in ticket.masks
    assert len(ticket.to_bytes()) < sum(mask.size for mask in ticket.masks.values()) / 8 + 4096


def test_choices_are_filled_in_as_well():
    """A tensor of any kind of ticket may be choices: none is left with the numbers that memory happened to have."""
    model = gpt2()
    ticket = to_ticket(model, attach(model, 0.3))
    name = "transformer.h.0.mlp.c_fc.weight"
    numbers = np.random.default_rng(0).standard_normal(ticket.masks[name].shape).astype(np.float32)
    changed = dataclasses.replace(
        ticket,
        laws={each: law for each, law in ticket.laws.items() if each != name},
        masks={each: mask for each, mask in ticket.masks.items() if each != name},
        choices={name: choice.encode(numbers, ticket.seed, name, 0.1)},
    )
    made = dict(Ticket.from_bytes(changed.to_bytes()).state())
    assert made.keys() == dict(ticket.state()).keys()
    np.testing.assert_allclose(made[name], numbers, atol=0.11)


def test_rebuilding_leaves_the_callers_random_numbers_alone():
    model = gpt2()
    ticket = to_ticket(model, attach(model, 0.3))
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    ticket.network()
    assert torch.equal(torch.rand(3), expected)


def test_only_known_architectures_are_rebuilt():
    with pytest.raises(StrongTicketError, match=r"model_type is 'os\.system'"):
        new_model({"model_type": "os.system"})
    with pytest.raises(StrongTicketError, match="exactly config, parts and trained"):
        KINDS["search"].shapes({"config": {"model_type": "gpt2"}})
    small = {"model_type": "gpt2", "vocab_size": 5, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 1}
    with pytest.raises(StrongTicketError, match="parts names 'x'"):
        KINDS["search"].shapes({"config": small, "parts": {"x": [[0, 0, 1, 2.0]]}, "trained": []})
    with pytest.raises(StrongTicketError, match="trained names 'x'"):
        KINDS["search"].shapes({"config": small, "parts": {}, "trained": ["x"]})
    with pytest.raises(StrongTicketError, match="must be axis 0 or 1"):
        KINDS["search"].shapes({"config": small, "parts": {"x": [[2, 0, 1, 2.0]]}, "trained": []})


def test_a_ticket_that_does_not_fit_its_model_is_refused():
    model = gpt2()
    ticket = to_ticket(model, attach(model, 0.3))
    smaller = {name: mask for name, mask in ticket.masks.items() if "h.1" not in name}
    laws = {name: ticket.laws[name] for name in smaller}
    with pytest.raises(TicketError, match=r"transformer.h.1.attn.c_attn.weight.*None"):
        Ticket(0, "search", ticket.settings, laws, smaller).network()


@pytest.mark.parametrize(
    "changes", [{"hidden_size": [1]}, {"num_hidden_layers": "x"}, {"num_attention_heads": 0}]
)
def test_a_config_of_odd_types_is_refused(changes):
    with pytest.raises(StrongTicketError, match="does not describe a llama model"):
        new_model({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2} | changes)


def test_any_class_of_transformers_is_rebuilt_by_itself():
    sizes = dict(
        vocab_size=37, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4
    )
    model = transformers.PhiForCausalLM(transformers.PhiConfig(**sizes))
    bare = transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False)
    for each in (model, bare):
        found = to_ticket(each, attach(each, 0.5, qk_scale=1))
        again = Ticket.from_bytes(found.to_bytes()).network()
        assert type(again) is type(each)
        with torch.no_grad():
            assert torch.equal(again(TOKENS)[0], each.eval()(TOKENS)[0])
    assert "class" not in to_ticket(model).settings
    assert found.settings["class"] == "BertModel"
    assert found.settings["options"] == {"add_pooling_layer": False}


def test_a_changed_model_is_refused_before_training():
    model = gpt2()
    model.transformer.h[0].ln_1.eps = 0.5
    refused = r"does not rebuild the module 'transformer\.h\.0\.ln_1'"
    with pytest.raises(StrongTicketError, match=refused):
        describe(model)
    attach(model, 0.3)
    with pytest.raises(StrongTicketError, match=refused):
        describe(model)


def test_state_is_what_the_network_holds():
    model = gpt2()
    ticket = to_ticket(model, attach(model, 0.3, qk_scale=3.0))
    own = ticket.network().state_dict()
    state = dict(ticket.state())
    assert state.keys() == ticket.masks.keys()
    assert all(np.array_equal(own[name].numpy(), array) for name, array in state.items())
