"""A ticket's network beside its model, and what the kind of ticket says of both."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.models.small_models import GPT2, hf_model, transformers
from torch import nn

from strongticket.builders import build
from strongticket.errors import StrongTicketError
from strongticket.models import batches, compare_models, load_model
from strongticket.models.rounding import round_tensor, rounded_model
from strongticket.ticket import kinds, summarise


@pytest.fixture(scope="module")
def gpt2():
    return hf_model("gpt2")


@pytest.fixture(scope="module")
def folder(gpt2, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    gpt2.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", ["gpt2", "bert-mlm", "vit", "llama-bare"])
def test_a_network_beside_itself_has_no_difference(name):
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


def test_against_plain_computation(gpt2):
    network = build(gpt2, tolerance=4e-3, workers=1).network()
    inputs = batches(gpt2, None, None, sequences=8)
    found = compare_models(gpt2, network, inputs)
    ids = inputs[0].inputs["input_ids"]
    with torch.no_grad():
        wanted, made = gpt2(ids, labels=ids), network(ids, labels=ids)
    assert found.target_loss == pytest.approx(wanted.loss.item(), rel=1e-5)
    assert found.source_loss == pytest.approx(made.loss.item(), rel=1e-5)
    divergence = nn.functional.kl_div(
        *(each.logits.double().log_softmax(-1) for each in (made, wanted)), reduction="none", log_target=True
    )
    assert found.divergence == pytest.approx(divergence.sum(-1).mean().item(), rel=5e-2)  # float32 logits
    with torch.no_grad():
        states = [model(ids, output_hidden_states=True).hidden_states[1] for model in (gpt2, network)]
    relative = float((states[1] - states[0]).norm() / states[0].norm())
    assert found.layers[0] == pytest.approx(relative, rel=1e-3)


def test_text_is_read_by_the_target_s_tokenizer(tmp_path):
    with pytest.raises(StrongTicketError, match="has no tokenizer"):
        batches(transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)), tmp_path / "a.txt", None)


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_rounding_to_nearest_against_plain_loops(bits):
    rng = np.random.default_rng(bits)
    numbers = rng.standard_t(4, (7, 13)).astype(np.float32)
    flat, top = numbers.reshape(-1), 2 ** (bits - 1) - 1
    wanted = np.empty_like(flat)
    for first in range(0, flat.size, 32):
        group = flat[first : first + 32]
        scale = np.float32(np.float16(np.abs(group).max() / np.float32(top)))
        wanted[first : first + 32] = np.clip(np.rint(group / scale), -top - 1, top) * scale
    found = round_tensor(torch.from_numpy(numbers), bits).numpy()
    np.testing.assert_array_equal(found, wanted.reshape(numbers.shape))
    assert round_tensor(torch.zeros(3, 5), bits).abs().max() == 0


def test_a_rounded_model_counts_its_bits(gpt2):
    before = copy.deepcopy(gpt2.state_dict())
    rounded, bits = rounded_model(gpt2, 4)
    assert all(torch.equal(before[name], tensor) for name, tensor in gpt2.state_dict().items())
    matrices = [p for p in gpt2.parameters() if p.ndim > 1]
    vectors = sum(p.numel() for p in gpt2.parameters() if p.ndim < 2)
    total = 16 * vectors + sum(4 * p.numel() + 16 * -(-p.numel() // 32) for p in matrices)
    assert bits == pytest.approx(total / sum(p.numel() for p in gpt2.parameters()))
    assert torch.equal(rounded.transformer.ln_f.weight, gpt2.transformer.ln_f.weight.half().float())
    assert rounded.lm_head.weight is rounded.transformer.wte.weight


def test_a_ticket_is_compared_with_its_model_and_with_rounding(gpt2, folder):
    ticket = build(gpt2, tolerance=4e-3, workers=1)
    found = ticket.compare(folder, sequences=8)
    facts = found.facts
    assert not found.problems
    total = 0.0
    for made, wanted in zip(ticket.network().parameters(), gpt2.parameters(), strict=True):
        error = (made.double() - wanted.double()).norm() / wanted.double().norm()
        total += wanted.numel() * float(error) ** 2
    numbers = sum(p.numel() for p in gpt2.parameters())
    assert facts["relative_error"] == pytest.approx((total / numbers) ** 0.5)
    assert facts["relative_error"] == pytest.approx(facts["stated_error"], rel=0.01)
    assert facts["stated_error"] == pytest.approx(ticket.metadata["relative_error"], rel=0.01)
    assert list(facts["rivals"]) == ["int8", "int6", "int4"]
    assert facts["rivals"]["int8"]["divergence"] < facts["rivals"]["int4"]["divergence"]
    assert [each["layer"] for each in facts["certificates"]] == [0, 1]
    for here, anywhere in zip(facts["certificates"], facts["certificates_for_any_target"], strict=True):
        assert here["bound"] < anywhere["bound"]
    headings = ("after layer", "relative error", "attention certified to", "for any target")
    assert found.details[0] == headings
    assert {len(row) for row in found.details} == {4}
    assert facts["bits_per_weight"] == pytest.approx(8 * len(ticket.to_bytes()) / numbers)


def test_rounding_is_of_the_tensors_that_a_partial_ticket_makes(gpt2, folder):
    ticket = build(gpt2, tolerance=4e-3, only="transformer.h.0.*", workers=1)
    rounded, bits = rounded_model(gpt2, 4, ticket.shapes().keys())
    for name, parameter in rounded.named_parameters():
        assert torch.equal(parameter, gpt2.get_parameter(name)) == (name not in ticket.shapes()), name
    rivals = ticket.compare(folder, sequences=1).facts["rivals"]
    assert rivals["int4"]["bits"] == pytest.approx(bits)


def test_a_model_without_certificates_says_so(tmp_path):
    config = transformers.MambaConfig(vocab_size=37, hidden_size=16, state_size=4, num_hidden_layers=1)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    found = build(load_model(tmp_path), workers=1).compare(tmp_path, sequences=2)
    assert found.facts["certificates"] == []
    said = dict(found.rows)["attention certified to"]
    assert "attention layers of a MambaForCausalLM are not supported" in said


def test_errors_that_cannot_be_read_are_an_error(gpt2, folder):
    ticket = build(gpt2, workers=1)
    for wrong in ({"w": 1}, {"w": ["a", "b"]}, [1], {"w": [10**400, 10**400]}):
        changed = replace(ticket, metadata={"errors": wrong})
        with pytest.raises(StrongTicketError, match="states errors that cannot be read"):
            changed.compare(folder, sequences=1)


@pytest.mark.parametrize("by", ["choice", "subset"])
def test_what_a_ticket_says_of_itself(gpt2, tmp_path, by):
    """From its index alone, tensor by tensor: bits that add up to its data, errors that are true."""
    ticket = build(gpt2, by=by, tolerance=4e-3, workers=1)
    path = ticket.save(tmp_path / "a.ticket")
    said = kinds.describe(summarise(path))
    assert said.facts["numbers"] == sum(p.numel() for p in gpt2.parameters())
    assert said.facts["bits_per_weight"] == pytest.approx(8 * path.stat().st_size / said.facts["numbers"])
    network = ticket.network()
    bits = 0.0
    for tensor in said.facts["model_tensors"]:
        wanted, made = (each.get_parameter(tensor["name"]).double() for each in (gpt2, network))
        assert tensor["shape"] == list(wanted.shape)
        assert tensor["largest_error"] == pytest.approx(float((made - wanted).abs().max()), rel=6e-3)
        relative = float((made - wanted).norm() / wanted.norm())
        assert tensor["relative_error"] == pytest.approx(relative, rel=6e-3)
        bits += tensor["bits"] * wanted.numel()
    assert 0.5 < bits / 8 / path.stat().st_size < 1
    assert len(said.tensors) == 1 + len(said.facts["model_tensors"])
    rows = dict(said.rows)
    stored = "choices" if by == "choice" else "masks"
    assert rows["whole"].startswith(f"no trained number is stored, but {stored}")
    assert ("every number" in rows) == (by == "choice")


@pytest.mark.parametrize(
    ("states", "bound"), [(1, "within Δ/2 + (1 − a)·|w|"), (8, "within Δ + (1 − a)·|w|")]
)
def test_the_bound_of_low_rates_has_the_factor(states, bound, tmp_path):
    """See tests/choice for the bound itself."""
    path = build(nn.Linear(400, 400), bits=1, states=states, workers=1).save(tmp_path / "a.ticket")
    assert dict(kinds.describe(summarise(path)).rows)["every number"].startswith(bound)
