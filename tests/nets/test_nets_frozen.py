"""Frozen networks run merged in float64; trained ones as they are written."""

from copy import deepcopy

import pytest
import torch

from strongticket import nets
from strongticket.builders import build_attention
from strongticket.errors import StrongTicketError


def networks():
    attention = nets.MultiHeadAttention(4, 4, 2, 40, 40, bias=True)
    block = nets.Block(deepcopy(attention), nets.ReluNetwork([4, 8, 4], bias=True))
    return [attention, block, nets.Transformer([deepcopy(block)])]


@pytest.mark.parametrize("network", networks(), ids=lambda network: network.kind)
def test_frozen_is_the_same_function_with_less_rounding(network):
    nets.initialise(network, 0)
    x = torch.randn(20, 3, 4, generator=torch.Generator().manual_seed(0)) / 4
    trained = network(x)
    exact = deepcopy(network).double()(x.double())
    network.requires_grad_(False)
    frozen = network(x)
    assert frozen.dtype == torch.float32
    torch.testing.assert_close(frozen, trained, rtol=1e-3, atol=1e-3)
    error, rounding = (frozen - exact).abs().max(), (exact.float() - exact).abs().max()
    assert error <= 1.01 * rounding < (trained - exact).abs().max()
    assert network.to(torch.float64)(x).dtype == torch.float64


def test_changed_weights_are_seen():
    network = nets.initialise(nets.MultiHeadAttention(3, 3, 1, 9, 9), 0).requires_grad_(False)
    x = torch.ones(2, 3)
    before = network(x)
    network.output.mul_(2)
    torch.testing.assert_close(network(x), 2 * before)
    network.load_state_dict({name: 0 * tensor for name, tensor in network.state_dict().items()})
    assert not network(x).any()
    copy = deepcopy(network)
    copy.value.data += 1
    copy.output.data += 1
    assert copy(x).any()
    assert not network(x).any()


def test_a_frozen_network_still_gives_gradients_to_its_inputs():
    network = nets.initialise(nets.Block(nets.MultiHeadAttention(3, 3, 1, 9, 9), nets.ReluNetwork([3, 3])), 0)
    network.requires_grad_(False)
    x = torch.ones(2, 3, requires_grad=True)
    network(x).sum().backward()
    assert x.grad is not None
    assert x.grad.any()


def test_a_certificate_is_for_the_sources_own_type_unless_asked_otherwise():
    target = nets.initialise(nets.MultiHeadAttention(3, 2, 2, 2, 2), seed=1)
    ticket = build_attention(target, per_row=12)
    single, double = ticket.network(), ticket.network(dtype=torch.float64)
    assert nets.certify(target, single).arithmetic == "float32"
    assert nets.certify(target, double).arithmetic == "float64"
    assert nets.certify(target, double) == nets.certify(target, single, arithmetic="float64")
    with pytest.raises(StrongTicketError, match="bfloat16"):
        nets.certify(target, single.bfloat16())
