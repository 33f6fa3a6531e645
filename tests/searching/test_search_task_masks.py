"""Masks over trained weights: searched, saved over their base, put on and taken off."""

import copy

import numpy as np
import pytest
import torch
import transformers

from strongticket.errors import StrongTicketError, TicketError
from strongticket.searching import Scheme, TaskMasks, attach, masks, to_ticket
from strongticket.ticket import Ticket

TOKENS = torch.arange(24).view(2, 12)


def sizes(**more):
    return transformers.BertConfig(
        vocab_size=32, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def base():
    """A bare BERT with weights of its own, biases and norms included."""
    torch.manual_seed(3)
    model = transformers.BertModel(sizes()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def classifier(base, labels, seed=0):
    torch.manual_seed(seed)
    model = transformers.BertForSequenceClassification(sizes(num_labels=labels)).eval()
    model.bert.load_state_dict(base.state_dict())
    return model


def searched(base, labels, seed=0):
    """A model whose scores and head have moved, and its attachment."""
    model = classifier(base, labels, seed)
    attachment = attach(model, kept=0.9, weights="pretrained", scope="global", train=["classifier.*"])
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for _ in range(5):
        model(input_ids=TOKENS, labels=torch.tensor([0, labels - 1])).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return model, attachment


def test_what_is_trained_is_the_scores_and_the_head(base):
    model = classifier(base, 3)
    before = model(input_ids=TOKENS).logits
    attachment = attach(model, kept=1.0, weights="pretrained", train=["classifier.*"])
    assert torch.equal(model(input_ids=TOKENS).logits, before)
    assert attachment.trained.keys() == {"classifier.weight", "classifier.bias"}
    learnt = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name for name in learnt if "parametrizations" not in name} == attachment.trained.keys()
    assert not any("embeddings" in name for name in masks(model))


def test_the_first_mask_drops_the_smallest_weights(base):
    model = classifier(base, 3)
    name = "bert.encoder.layer.0.output.dense.weight"
    sizes = model.get_parameter(name).detach().abs().flatten()
    attach(model, kept=0.75, weights="pretrained", train=["classifier.*"])
    dropped = torch.from_numpy(~masks(model)[name]).flatten()
    assert int(dropped.sum()) == sizes.numel() // 4
    assert sizes[dropped].max() <= sizes[~dropped].min()


def test_a_ticket_over_its_base(base, tmp_path):
    model, attachment = searched(base, 3)
    assert any(not np.array_equal(mask, first) for mask, first in zip(
        masks(model).values(), _first_masks(base).values(), strict=True))  # fmt: skip
    assert to_ticket(model) == to_ticket(model, attachment)
    path = to_ticket(model, attachment, metadata={"task": "tiny"}).save(tmp_path / "task.ticket")
    base.save_pretrained(tmp_path / "base")
    ticket = Ticket.load(path)
    assert ticket.verify().kept
    expected = model(input_ids=TOKENS).logits
    whole = classifier(base, 3)  # a model with another head has the same base
    for given in (base, tmp_path / "base", whole):
        network = ticket.network(base=given)
        assert type(network) is transformers.BertForSequenceClassification
        assert torch.equal(network(input_ids=TOKENS).logits, expected)


def _first_masks(base):
    model = classifier(base, 3)
    attach(model, kept=0.9, weights="pretrained", scope="global", train=["classifier.*"])
    return masks(model)


def test_another_base_is_refused(base):
    ticket = to_ticket(*searched(base, 3))
    with pytest.raises(StrongTicketError, match="a mask over a trained model"):
        ticket.network()
    with pytest.raises(StrongTicketError, match=r"export F\.ticket --base MODEL"):
        ticket.save_pretrained("nowhere")
    other = copy.deepcopy(base)
    other.encoder.layer[0].output.dense.bias.data[0] += 1e-6
    with pytest.raises(TicketError, match="belongs to the model with"):
        ticket.network(base=other)
    with pytest.raises(TicketError, match="has no tensor"):
        ticket.network(base=transformers.BertModel(sizes(), add_pooling_layer=False))


def test_tasks_are_swapped_on_one_base(base):
    kept = copy.deepcopy(base.state_dict())
    models = {"three": searched(base, 3), "two": searched(base, 2, seed=1)}
    tasks = TaskMasks(base)
    for name, found in models.items():
        tasks.add(name, to_ticket(*found))
    assert tasks.names == ["three", "two"]
    for name in ("three", "two", "two", "three"):
        logits = tasks.use(name)(input_ids=TOKENS).logits
        assert torch.equal(logits, models[name][0](input_ids=TOKENS).logits)
    three, two = (
        tasks.use(name).bert.encoder.layer[1].intermediate.dense.weight for name in ("three", "two")
    )
    assert three is two
    tasks.release()
    model = tasks._models["two"].bert
    assert all(torch.equal(tensor, kept[name]) for name, tensor in model.state_dict().items())
    assert all(torch.equal(tensor, kept[name]) for name, tensor in base.state_dict().items())
    with pytest.raises(StrongTicketError, match="no task 'four'"):
        tasks.use("four")
    with pytest.raises(StrongTicketError, match="already"):
        tasks.add("two", to_ticket(*models["two"]))


def test_settings_of_a_file_are_checked(base):
    ticket = to_ticket(*searched(base, 3))
    for changed in (
        {"masked": [*ticket.settings["masked"], "bert.nothing"]},
        {"class": "Bert"},
        {"masked": "x"},
    ):
        wrong = Ticket(0, "task", ticket.settings | changed, ticket.laws, ticket.masks, ticket.floats)
        with pytest.raises(TicketError):
            wrong.verify()


@pytest.mark.timeout(60)  # it would take hours, and all memory
def test_a_huge_network_is_refused_before_it_is_made(base):
    ticket = to_ticket(*searched(base, 3))
    for changed in (
        {"num_hidden_layers": 99_999},
        {"vocab_size": 1 << 32},
        {"max_position_embeddings": 1 << 36},
    ):
        settings = ticket.settings | {"config": ticket.settings["config"] | changed}
        wrong = Ticket(0, "task", settings, ticket.laws, ticket.masks, ticket.floats)
        with pytest.raises(StrongTicketError, match=r"the limit|has no tensor"):
            TaskMasks(base).add("x", wrong)
        with pytest.raises(StrongTicketError, match=r"the limit|has no tensor"):
            wrong.network(base=base)


def test_mistakes(base):
    with pytest.raises(StrongTicketError, match="one of random, pretrained"):
        attach(classifier(base, 2), weights="trained")
    with pytest.raises(StrongTicketError, match="for random weights"):
        attach(classifier(base, 2), weights="pretrained", scheme=Scheme())
    with pytest.raises(StrongTicketError, match="not a mask over"):
        TaskMasks(base).add("x", Ticket(0, "relu", {"dims": [1, 1]}, {}, {}))
