"""Blocks and transformers: every part built, named, certified; fitting to what the source blocks give."""

import pytest
import torch

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.nets import certify


def target_block(dim=3, hidden=5, heads=2, seed=1, **options):
    attention = nets.MultiHeadAttention(dim, dim, heads, 4, 4, **options)
    feed_forward = nets.ReluNetwork([dim, hidden, dim], bias=options.get("bias", False))
    return nets.initialise(nets.Block(attention, feed_forward), seed, normalised=True)


def tokens(dim=3, batch=20, count=5, seed=0):
    return torch.randn(batch, count, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("options", [dict(), dict(bias=True, kv_heads=1, output_bias=True)], ids=str)
def test_transformer_is_built(options):
    target = nets.Transformer([target_block(seed=1, **options), target_block(seed=2, hidden=4, **options)])
    ticket = build_network(target, per_row=24)
    source = ticket.network(form="factors")
    assert isinstance(source, nets.Transformer)
    assert source.blocks[1].feed_forward.dims[::2] == [3, 4, 3]
    x, mask = tokens(), nets.causal_mask(5)
    assert (source(x, mask) - target(x, mask)).abs().max() < 0.05
    assert torch.allclose(nets.merge(source)(x, mask), source(x, mask), atol=1e-4)


def test_block_alone_and_smallest_sizes():
    target = target_block(dim=1, hidden=1, heads=1)
    ticket = build_network(target, per_row=40)
    assert ticket.kind == "block"
    x = tokens(dim=1, count=1)
    assert (ticket.network()(x) - target(x)).abs().max() < 1e-3


def test_certificate_holds():
    target = nets.Transformer([target_block(seed=1), target_block(seed=2)])
    ticket = build_network(target, per_row=12, radius=1.5)
    x = tokens(batch=200)
    x = 1.5 * x / x.norm(dim=-1, keepdim=True)
    found = (ticket.network()(x) - target(x)).norm(dim=-1).max().item()
    assert 0 < found <= ticket.certificate["bound"]
    assert ticket.certificate["paper_bound"] is None  # too large for a float
    attention, forward = ("attention.query_key", "attention.value_output"), "feed_forward.layers."
    parts = (*attention, f"{forward}1", f"{forward}3")
    named = {f"blocks.{block}.{part}" for block in (0, 1) for part in parts}
    assert set(ticket.certificate["errors"]) == named


def test_the_bias_of_keys_changes_neither_network_nor_certificate():
    target = target_block(bias=True)
    source = build_network(target, per_row=8, certificate=False).network(form="factors")
    merged, x = nets.Merged(source), torch.ones(3, source.width) / source.width
    before, output = certify(target, merged, 1.0).bound, source(x)
    source.attention.key_bias.data += 100
    assert certify(target, merged, 1.0).bound == before
    torch.testing.assert_close(source(x), output)
    with pytest.raises(StrongTicketError, match="ask the block it was merged from"):
        certify(nets.merge(target), merged)


def test_widths():
    target = nets.Transformer([target_block(), target_block()])
    ticket = build_network(target, width=(24, 40), certificate=False)
    for block in ticket.settings["blocks"]:
        assert block["attention"]["key_dim"] == block["attention"]["value_dim"] == 24
        assert block["feed_forward"]["dims"] == [3, 40, 5, 40, 3]


def test_wrong_requests_are_named():
    target = nets.Transformer([target_block(), target_block()])
    for width, message in (
        ((24, 40, 40), "expected one number, or 2: n_MHA and n_FC"),
        (2, r"blocks\.0\.attention\.query_key of head 0.*smallest"),
        ((24, 3), r"blocks\.0\.feed_forward\.layers\.0.*smallest"),
    ):
        with pytest.raises(StrongTicketError, match=message):
            build_network(target, width=width)
