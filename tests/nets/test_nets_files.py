"""Settings rebuild a network, files bring it back, targets are drawn as the theory assumes."""

import json

import pytest
import torch
from safetensors.torch import save_file

from strongticket import nets
from strongticket.errors import StrongTicketError


def examples():
    attention = nets.MultiHeadAttention(3, 3, 4, 2, 5, kv_heads=2, bias=True, output_bias=True)
    cross = nets.MultiHeadAttention(3, 2, 1, 2, 5, context_dim=4)
    relu = nets.ReluNetwork([3, 7, 3], bias=[True, False])
    block = nets.Block(attention, relu)
    return [cross, relu, block, nets.Transformer([block])]


@pytest.mark.parametrize("net", examples(), ids=lambda net: net.kind)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_save_and_load(net, dtype, tmp_path):
    nets.initialise(net, 5).to(dtype)
    back = nets.load(nets.save(net, tmp_path / "net.safetensors"))
    assert type(back) is type(net)
    assert back.settings() == net.settings() == json.loads(json.dumps(net.settings()))
    for (name, a), (other, b) in zip(net.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == other
        assert a.dtype == b.dtype == dtype
        assert torch.equal(a, b)
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]
    fresh = nets.make(net.kind, net.settings())
    assert all(not t.any() for t in fresh.state_dict().values())


def test_non_contiguous_weights_are_saved(tmp_path):
    net = nets.ReluNetwork([2, 3])
    net.layers[0].weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).T)
    assert torch.equal(nets.load(nets.save(net, tmp_path / "n")).layers[0].weight, net.layers[0].weight)


def test_files_that_are_not_ours(tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(StrongTicketError, match="no such file"):
        nets.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(StrongTicketError, match="not a readable safetensors file"):
        nets.load(path)
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(StrongTicketError, match="format None"):
        nets.load(path)
    good = {"format": "strongticket network 1", "kind": "relu", "settings": '{"dims": [2, 3]}'}
    save_file({"a": torch.zeros(2)}, path, good)
    with pytest.raises(StrongTicketError, match="tensors do not fit"):
        nets.load(path)
    save_file({"a": torch.zeros(2)}, path, good | {"settings": '{"dims": '})
    with pytest.raises(StrongTicketError, match="does not describe a network"):
        nets.load(path)
    with pytest.raises(StrongTicketError, match="cannot save a Linear"):
        nets.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(StrongTicketError, match="kind='conv' is unknown"):
        nets.make("conv", {})
    with pytest.raises(StrongTicketError, match="do not describe a network of kind 'relu'"):
        nets.make("relu", {"width": 3})


def test_failed_save_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(StrongTicketError, match="disk full"):
        nets.save(nets.ReluNetwork([2, 3]), tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


def test_targets_follow_the_theory():
    net = nets.initialise(nets.MultiHeadAttention(8, 8, 4, 16, 16, bias=True), 3)
    for name, tensor in net.state_dict().items():
        half_width = 2.0 if name.startswith(("query", "key")) else 1.0
        assert 0.9 * half_width < tensor.abs().max() <= half_width
    again = nets.initialise(nets.make(net.kind, net.settings()), 3)
    other = nets.initialise(nets.make(net.kind, net.settings()), 4)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), again.parameters(), strict=True))
    assert not torch.equal(net.query, other.query)


def test_normalised_targets_have_norm_at_most_one():
    for net in examples():
        nets.initialise(net, 3, normalised=True)
        for name, tensor in net.state_dict().items():
            if not name.endswith("bias"):
                assert torch.linalg.matrix_norm(tensor.double(), 2).max() <= 1
    attention = nets.initialise(nets.MultiHeadAttention(8, 8, 2, 16, 16, bias=True), 3, normalised=True)
    whole = torch.cat([attention.query, attention.query_bias[:, None]], 1).double()
    norms = torch.linalg.matrix_norm(whole, 2)
    assert torch.all(norms <= 1)
    assert torch.all(norms > 0.9999)


def test_initialise_wants_one_of_ours():
    with pytest.raises(StrongTicketError, match="cannot initialise a Linear"):
        nets.initialise(torch.nn.Linear(2, 2), 0)
