"""Tickets of modules of any class: convolutions, BatchNorm, class tokens, classification heads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset
from transformers import BertConfig, BertForSequenceClassification, ResNetConfig, ResNetForImageClassification

from strongticket.errors import StrongTicketError, TicketError
from strongticket.searching import SearchConfig, Task, attach, masks, search, to_ticket
from strongticket.ticket import Ticket


class Small(nn.Module):
    """Convolutions of several kinds, BatchNorm, a class token and a raw scale."""

    def __init__(self, channels=4):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3)
        self.grouped = nn.Conv2d(channels, 2 * channels, 3, groups=2)
        self.norm = nn.BatchNorm2d(2 * channels)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2)
        self.cls_token = nn.Parameter(torch.zeros(1, channels))
        self.head = nn.Linear(channels, 3)

    def forward(self, x):
        x = self.up(self.norm(self.grouped(self.first(x).relu())).relu())
        return self.head(x.mean((2, 3)) + self.cls_token)


def trained(model, steps=3):
    attach(model, 0.4, seed=3, qk_scale=1)
    images = torch.linspace(-1, 1, 8 * 64).sin().reshape(8, 1, 8, 8)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(steps):
        functional.cross_entropy(model(images), torch.arange(8) % 3).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, images


def test_an_own_module_is_filled_to_the_last_bit(tmp_path):
    model, images = trained(Small())
    ticket = to_ticket(model)
    ticket.save(tmp_path / "small.ticket")
    loaded = Ticket.load(tmp_path / "small.ticket")
    loaded.verify()
    mine = Small()
    assert loaded.network(mine) is mine
    with torch.no_grad():
        assert torch.equal(mine(images), model.eval()(images))
    assert not mine.training
    for name, mask in masks(model).items():
        np.testing.assert_array_equal(loaded.masks[name], mask)
    assert {"first.weight", "grouped.weight", "up.weight", "cls_token", "head.weight"} == ticket.masks.keys()


def test_running_statistics_are_stored_and_counted():
    model, _ = trained(Small())
    ticket = to_ticket(model)
    assert ticket.floats.keys() == {"norm.running_mean", "norm.running_var"}
    assert ticket.floats["norm.running_mean"].any()
    more = len(ticket.to_bytes()) - len(
        Ticket(ticket.seed, ticket.kind, ticket.settings, ticket.laws, ticket.masks).to_bytes()
    )
    assert more >= 4 * sum(tensor.size for tensor in ticket.floats.values())


def test_fans_of_convolutions():
    attachment = attach(Small(), 0.5, qk_scale=1)
    fans = {matrix.name: (matrix.fan_in, matrix.fan_out) for matrix in attachment.masked}
    # torch computes a transposed convolution's fans from the same axes, which are swapped there
    for name in ("first", "grouped"):
        expected = nn.init._calculate_fan_in_and_fan_out(getattr(Small(), name).weight)[0]
        assert fans[f"{name}.weight"][0] == expected
    assert fans["up.weight"] == (8 * 4, 4 * 4)


def test_a_ticket_holds_no_code_and_says_so():
    ticket = to_ticket(trained(Small(), 0)[0])
    with pytest.raises(StrongTicketError, match=r"of a Small, and a ticket file never.*network\(Small\(\)\)"):
        ticket.network()
    with pytest.raises(
        StrongTicketError, match=r"'cls_token': the network has shape \(1, 8\), the ticket \(1, 4\)"
    ):
        ticket.network(Small(8))
    with pytest.raises(
        StrongTicketError, match=r"tensor '0.weight': the network has shape \(1, 1\), the ticket None"
    ):
        ticket.network(nn.Sequential(nn.Linear(1, 1)))
    relu = Ticket(
        0, "relu", {"dims": [2, 1], "bias": False}, {}, {}, {"layers.0.weight": np.ones((1, 2), np.float32)}
    )
    with pytest.raises(TicketError, match="'relu' takes no module"):
        relu.network(nn.Linear(2, 1))


def test_an_unsearched_model_has_no_ticket():
    with pytest.raises(StrongTicketError, match="no scores"):
        to_ticket(Small())


@pytest.mark.parametrize("family", ["bert", "resnet"])
def test_known_classifiers_are_rebuilt_by_themselves(tmp_path, family):
    torch.manual_seed(0)
    if family == "bert":
        sizes = dict(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=9
        )
        model = BertForSequenceClassification(BertConfig(**sizes, num_labels=5))
        inputs = torch.arange(8)[None]
    else:
        model = ResNetForImageClassification(
            ResNetConfig(
                num_channels=1,
                embedding_size=8,
                hidden_sizes=[8, 16],
                depths=[1, 1],
                layer_type="basic",
                num_labels=5,
            )
        )
        inputs = torch.linspace(-1, 1, 2 * 256).reshape(2, 1, 16, 16)
    attach(model, 0.5, qk_scale=2.0 if family == "bert" else 1)
    model(inputs)  # moves the running statistics
    to_ticket(model).save(tmp_path / "a.ticket")
    again = Ticket.load(tmp_path / "a.ticket").network()
    assert type(again) is type(model)
    with torch.no_grad():
        assert torch.equal(again(inputs).logits, model.eval()(inputs).logits)


class Eighth(nn.Module):
    """Keeps 64 summed features of size one at size one."""

    def forward(self, x):
        return x / 8


class Pairs(TensorDataset):
    """x and y by name."""

    def __getitem__(self, index):
        return dict(zip("xy", super().__getitem__(index), strict=True))


@pytest.mark.parametrize("batch", [8, 16])
def test_own_data_loss_and_module(tmp_path, batch):
    x = torch.linspace(-3, 3, 96)[:, None]
    data = Pairs(x, x.sin())

    def make():
        return nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.BatchNorm1d(64), nn.Linear(64, 1), Eighth())

    def loss(model, batch):
        return functional.mse_loss(model(batch["x"]), batch["y"])

    config = SearchConfig().changed(
        steps=60,
        batch=16,
        micro_batch=batch,
        lr=0.02,
        law="normal",
        std=1.0,
        qk_scale=1.0,
        cpu=True,
        cache=str(tmp_path),
    )
    task = Task("sine", data, data, loss=loss)
    found = search(config, task=task, model=make(), out=tmp_path / "sine.ticket")
    assert found.loss < 0.25 * float(x.sin().var())
    assert found.bits_per_byte is None
    again = Ticket.load(tmp_path / "sine.ticket").network(make())
    assert float(loss(again, {"x": x, "y": x.sin()})) == pytest.approx(found.loss, rel=1e-4)


def test_an_own_module_resumes_to_the_same_ticket(tmp_path):
    x = torch.linspace(-3, 3, 32)[:, None]
    task = Task(
        "sine", Pairs(x, x.sin()), Pairs(x, x.sin()), loss=lambda m, b: (m(b["x"]) - b["y"]).square().mean()
    )

    def run(**options):
        config = SearchConfig().changed(
            steps=6,
            batch=8,
            micro_batch=8,
            qk_scale=1.0,
            cpu=True,
            cache=str(tmp_path),
            save_every=2,
            **options,
        )
        model = nn.Sequential(nn.Linear(1, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
        return lambda on_step=None: search(config, task=task, model=model, on_step=on_step)

    def stop(done, loss):
        if done == 5:
            raise KeyboardInterrupt

    whole = run()().ticket
    with pytest.raises(KeyboardInterrupt):
        run()(stop)
    steps = []
    resumed = run(resume=True)(lambda done, loss: steps.append(done)).ticket
    assert steps == [5, 6]
    assert resumed.to_bytes() == whole.to_bytes()


def test_the_documented_search_works_in_under_15_lines(tmp_path, monkeypatch, capsys):
    """The example of docs/search-your-own.md as it stands."""
    document = (Path(__file__).parents[2] / "docs" / "search-your-own.md").read_text(encoding="utf-8")
    example = document.split("```python\n")[1].split("```")[0]
    assert len(example.strip().splitlines()) < 15
    monkeypatch.chdir(tmp_path)
    exec(compile(example.replace("steps=200", "steps=5"), "search-your-own.md", "exec"), {})
    searched, loaded = map(float, capsys.readouterr().out.split())
    assert searched == pytest.approx(loaded, rel=1e-4)


def test_a_network_without_norms_learns_with_the_defaults():
    """With the paper's σ = 0.02 its signal would vanish, and the loss would stay at log 10."""
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
    attach(model, qk_scale=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for start in range(0, 1400, 20):
        nn.functional.cross_entropy(model(x[start : start + 20]), y[start : start + 20]).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        assert nn.functional.cross_entropy(model(x[1400:]), y[1400:]) < 1.6
