"""ReLU networks, blocks and transformers: the formula, the folded form, settings and refusals."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from strongticket import nets
from strongticket.errors import StrongTicketError


def small_block(seed, dim=3, hidden=5, **attention):
    attention = nets.MultiHeadAttention(dim, dim, 2, 4, 3, **attention)
    return nets.initialise(nets.Block(attention, nets.ReluNetwork([dim, hidden, dim], bias=True)), seed)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=5), st.booleans(), st.integers(0, 99))
def test_relu_network_follows_the_formula(dims, bias, seed):
    net = nets.initialise(nets.ReluNetwork(dims, bias=bias), seed).double()
    p = {name: t.detach().numpy() for name, t in net.state_dict().items()}
    x = np.random.default_rng(seed).normal(size=(6, dims[0]))
    expected = x
    for layer in range(len(dims) - 1):
        expected = np.maximum(expected, 0) if layer else expected
        expected = expected @ p[f"layers.{layer}.weight"].T + p.get(f"layers.{layer}.bias", 0)
    assert np.allclose(net(torch.from_numpy(x)).detach(), expected)
    assert np.allclose(nets.merge(net)(torch.from_numpy(x)).detach(), expected)


@given(st.integers(1, 2), st.booleans(), st.integers(0, 99))
def test_pairs_that_keep_one_input_fold_exactly(pairs, bias, seed):
    rng = np.random.default_rng(seed)
    dims = [3, *[9, 3] * pairs]
    net = nets.initialise(nets.ReluNetwork(dims, bias=[bias, False] * pairs), seed)
    for first in list(net.layers)[::2]:
        keep = torch.from_numpy(rng.integers(4 if bias else 3, size=9))
        first.weight.data[keep[:, None] != torch.arange(3)] = 0
        if bias:
            first.bias.data[keep != 3] = 0
    folded = nets.merge(net)
    assert isinstance(folded, nets.MergedRelu)
    x = torch.from_numpy(rng.normal(size=(6, 3))).float()
    assert torch.allclose(folded(x), net(x), rtol=1e-5, atol=1e-5)
    assert folded.dims == [3] * (pairs + 1)


def test_dense_pairs_do_not_fold():
    net = nets.initialise(nets.ReluNetwork([3, 9, 3]), 0)
    assert isinstance(nets.merge(net), nets.ReluNetwork)
    assert nets.merge(net) is not net


def test_block_and_transformer():
    blocks = [small_block(seed, bias=True, output_bias=True) for seed in (0, 1)]
    net = nets.Transformer(blocks).double()
    x = torch.rand(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mask = nets.causal_mask(4)
    expected = x
    for block in blocks:
        y = block.attention(expected, mask=mask) + expected
        expected = block.feed_forward(y) + y
    assert torch.allclose(net(x, mask), expected)
    assert torch.allclose(nets.merge(net)(x, mask), expected)
    with pytest.raises(StrongTicketError, match="merged block has no settings"):
        nets.merge(net).settings()


def test_widths_that_do_not_fit_are_refused():
    with pytest.raises(StrongTicketError, match="residuals need one width"):
        nets.Block(nets.MultiHeadAttention(3, 2, 1, 4, 3), nets.ReluNetwork([3, 5, 3]))
    with pytest.raises(StrongTicketError, match=r"blocks\[1\] has width 2"):
        nets.Transformer([small_block(0), small_block(0, dim=2)])
    with pytest.raises(StrongTicketError, match="blocks is empty"):
        nets.Transformer([])
    with pytest.raises(StrongTicketError, match="the input's and the output's"):
        nets.ReluNetwork([3])
    with pytest.raises(StrongTicketError, match=r"dims\[1\]=0"):
        nets.ReluNetwork([3, 0, 2])
    with pytest.raises(StrongTicketError, match="3 flags for 2 layers"):
        nets.ReluNetwork([3, 4, 2], bias=[True] * 3)
    with pytest.raises(StrongTicketError, match=r"width 3 \(dims\[0\]\)"):
        nets.ReluNetwork([3, 2])(torch.rand(4, 2))
    with pytest.raises(StrongTicketError, match="cannot merge a Linear"):
        nets.merge(torch.nn.Linear(2, 2))
