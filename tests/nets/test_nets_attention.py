"""Attention against a slow loop over heads and rows, its masks and its folded form."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from strongticket import nets
from strongticket.errors import StrongTicketError


def by_hand(net, x, context, mask):
    """The formula of section 2.2, one head and one row at a time."""
    p = {name: t.detach().double().numpy() for name, t in net.state_dict().items()}
    group = net.heads // net.kv_heads
    out = np.zeros((len(x), net.dim_out))
    for h in range(net.heads):
        g = h // group
        q, k, v = x @ p["query"][h], context @ p["key"][g], context @ p["value"][g]
        if net.bias:
            q, k, v = q + p["query_bias"][h], k + p["key_bias"][g], v + p["value_bias"][g]
        for i in range(len(x)):
            seen = [j for j in range(len(context)) if mask is None or mask[i, j]]
            logits = np.array([q[i] @ k[j] / np.sqrt(net.key_dim) for j in seen])
            weights = np.exp(logits - logits.max())
            weights /= weights.sum()
            out[i] += sum(w * v[j] for w, j in zip(weights, seen, strict=True)) @ p["output"][h]
    return out + p.get("output_bias", 0)


@given(
    dims=st.tuples(*[st.integers(1, 4)] * 4),
    groups=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    context_dim=st.none() | st.integers(1, 4),
    flags=st.tuples(st.booleans(), st.booleans()),
    masked=st.booleans(),
    tokens=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    seed=st.integers(0, 99),
)
def test_faithful_and_merged_follow_the_formula(dims, groups, context_dim, flags, masked, tokens, seed):
    (dim_in, dim_out, key_dim, value_dim), (kv_heads, group) = dims, groups
    net = nets.MultiHeadAttention(
        dim_in,
        dim_out,
        kv_heads * group,
        key_dim,
        value_dim,
        kv_heads=kv_heads,
        context_dim=context_dim,
        bias=flags[0],
        output_bias=flags[1],
    )
    nets.initialise(net, seed).double()
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(tokens[0], dim_in))
    context = rng.normal(size=(tokens[1], net.context_dim))
    mask = None
    if masked:
        mask = rng.random((tokens[0], tokens[1])) < 0.5
        mask[np.arange(tokens[0]), rng.integers(tokens[1], size=tokens[0])] = True
    tensors = torch.from_numpy(x), torch.from_numpy(context), None if mask is None else torch.from_numpy(mask)
    expected = by_hand(net, x, context, mask)
    assert np.allclose(net(*tensors).detach(), expected, rtol=0, atol=1e-11)
    assert np.allclose(nets.merge(net)(*tensors).detach(), expected, rtol=0, atol=1e-11)


def test_merged_float32_agrees_to_float_precision():
    net = nets.initialise(nets.MultiHeadAttention(8, 8, 4, 64, 64, kv_heads=2, bias=True), 0)
    x = torch.rand(3, 7, 8, generator=torch.Generator().manual_seed(0))
    faithful, merged = net(x), nets.merge(net)(x)
    assert merged.dtype == torch.float32
    assert (faithful - merged).abs().max() < 1e-5 * faithful.abs().max()


def test_batch_and_masks():
    net = nets.initialise(nets.MultiHeadAttention(3, 2, 2, 5, 4), 1).double()
    x = torch.rand(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    causal = net(x, mask=nets.causal_mask(4))
    assert torch.allclose(causal[0], net(x[0], mask=nets.causal_mask(4)))
    assert torch.allclose(causal[:, :2], net(x[:, :2], mask=nets.causal_mask(2)))  # the future is not seen
    padded = net(x, mask=(torch.arange(4) < torch.tensor([[2], [4]]))[:, None, None])
    assert torch.allclose(padded[0], net(x[0], context=x[0, :2]))
    assert torch.allclose(padded[1], net(x[1]))
    own = torch.eye(4, dtype=torch.bool)
    assert torch.allclose(net(x, mask=own)[:, 2:3], net(x[:, 2:3]))


def test_bias_of_the_key_changes_nothing():
    net = nets.initialise(nets.MultiHeadAttention(3, 2, 2, 5, 4, bias=True), 1).double()
    x = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    before = net(x)
    net.key_bias.data.mul_(-7)
    assert torch.allclose(before, net(x))


def test_wrong_inputs_are_named():
    net = nets.MultiHeadAttention(3, 2, 2, 5, 4)
    x = torch.rand(2, 4, 3)
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[1, 0, 2] = False
    with pytest.raises(StrongTicketError, match="in which 2 rows attend to nothing"):
        net(x, mask=mask)
    with pytest.raises(StrongTicketError, match="does not broadcast"):
        net(x, mask=torch.ones(5, 4, dtype=torch.bool))
    with pytest.raises(StrongTicketError, match=r"x has shape \(2, 4, 2\)"):
        net(x[..., :2])
    with pytest.raises(StrongTicketError, match="at least one token"):
        net(x[:, :0])
    with pytest.raises(StrongTicketError, match=r"context has shape \(3, 4, 3\).*same batch"):
        net(x, context=torch.rand(3, 4, 3))
    with pytest.raises(StrongTicketError, match=r"context has shape \(2, 4, 3\): expected \(tokens, 6\)"):
        nets.MultiHeadAttention(3, 2, 2, 5, 4, context_dim=6)(x)
    with pytest.raises(StrongTicketError, match="heads=3 cannot share"):
        nets.MultiHeadAttention(3, 2, 3, 5, 4, kv_heads=2)
    with pytest.raises(StrongTicketError, match="key_dim=0"):
        nets.MultiHeadAttention(3, 2, 3, 0, 4)
    with pytest.raises(StrongTicketError, match="context_tokens=2 is less"):
        nets.causal_mask(3, 2)


def test_additive_mask_is_refused():
    from strongticket.nets.attention import prepare

    layer = nets.MultiHeadAttention(3, 2, 1, 2, 2)
    with pytest.raises(StrongTicketError, match=r"dtype torch\.float32.*expected torch\.bool"):
        prepare(layer, torch.zeros(4, 3), None, torch.zeros(4, 4))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("context_dim", [8, 5])
def test_from_torch_computes_what_torchs_layer_does(bias, context_dim):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(
        8, 2, bias=bias, kdim=context_dim, vdim=context_dim, batch_first=True, dtype=torch.float64
    )
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    ours = nets.MultiHeadAttention.from_torch(theirs)
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    context = torch.randn(3, 7, context_dim, dtype=torch.float64)
    expected = theirs(x, context, context, need_weights=False)[0]
    torch.testing.assert_close(ours(x, context), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("option", [{"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 4}])
def test_from_torch_refuses_what_it_cannot_do(option):
    with pytest.raises(StrongTicketError, match="without add_bias_kv"):
        nets.MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, **option))


def test_from_torch_names_a_layer_of_another_kind():
    with pytest.raises(StrongTicketError, match="layer is a Linear: expected torch's MultiheadAttention"):
        nets.MultiHeadAttention.from_torch(nn.Linear(8, 2))
