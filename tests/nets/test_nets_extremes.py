"""Certificates where numbers are extreme: they hold, or say that they cannot."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.random_tickets import respects_floors

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer


def network(kind, dim, *, style="plain", norm_epsilon=1e-5):
    attention = MultiHeadAttention(dim, dim, 1, 2, 2, bias=True, output_bias=True)
    if kind == "attention":
        target = attention
    elif kind == "relu":
        target = ReluNetwork([dim, 2, dim], bias=True)
    else:
        norm = None if kind == "block" else kind
        block = Block(attention, ReluNetwork([dim, dim]), norm=norm, norm_epsilon=norm_epsilon)
        target = Transformer([block])
    nets.initialise(target.double(), 1)
    with torch.no_grad():
        for parameter in target.parameters():
            if style == "zero":
                parameter.zero_()
            elif style == "bounds":
                parameter.copy_(parameter.sign())
    return target.requires_grad_(False)


def largest_error(target, ticket, dim, radius, dtype):
    """On random tokens on the sphere and on zeros, without squaring what would overflow."""
    x = torch.randn(64, 3, dim, generator=torch.Generator().manual_seed(0)).double()
    x = x / x.norm(dim=-1, keepdim=True) * radius
    x[:8, 1] = 0
    x = x[:, 0] if isinstance(target, ReluNetwork) else x
    x = x.to(dtype)
    source = ticket.network(dtype=dtype)
    floors = ticket.certificate.get("floors")
    if floors:
        x = x[respects_floors(nets.merge(source, torch.float64), floors)(x.double())]
        if not len(x):
            return 0.0
    difference = source(x).double() - nets.merge(target, torch.float64)(x.double())
    scale = difference.abs().max().clamp_min(1e-300)
    return float((difference / scale).norm(dim=-1).max() * scale)


@pytest.mark.parametrize("radius", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("kind", ["attention", "relu", "block", "rms"])
@pytest.mark.parametrize(("dim", "style"), [(1, "bounds"), (2, "zero")])
def test_a_certificate_holds_at_any_radius(kind, dim, style, radius):
    target = network(kind, dim, style=style)
    for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
        ticket = build_network(target, per_row=6, radius=radius, arithmetic=name)
        bound = ticket.certificate["bound"]
        if bound is not None:
            assert largest_error(target, ticket, dim, radius, dtype) <= bound


@pytest.mark.parametrize("kind", ["attention", "relu", "block"])
@pytest.mark.parametrize("radius", [1e-38, 1e-42, 1e-200, 1e-310])
def test_a_certificate_counts_underflow(kind, radius):
    """Outputs of this size lose more to float32's smallest step than any relative rounding says."""
    attention, layer = MultiHeadAttention(3, 3, 2, 2, 2), ReluNetwork([3, 3])
    target = {"attention": attention, "relu": layer, "block": Block(attention, layer)}[kind]
    nets.initialise(target.double(), 1, normalised=True).requires_grad_(False)
    for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
        ticket = build_network(target, per_row=16, radius=radius, arithmetic=name)
        bound = ticket.certificate["bound"]
        assert bound <= 0.1 * radius + 1e-44
        assert largest_error(target, ticket, 3, radius, dtype) <= bound


@pytest.mark.parametrize("kind", ["attention", "block", "relu"])
def test_too_large_for_a_bound_is_infinite_and_stored_as_none(kind):
    ticket = build_network(network(kind, 2), per_row=4, radius=1e300, arithmetic="float32")
    assert ticket.certificate["bound"] is None
    with pytest.raises(StrongTicketError, match="no certificate to check inputs by"):
        ticket.network(check=True)


def test_outputs_beyond_float32_have_no_float32_bound():
    target = network("relu", 2)
    source = build_network(target, per_row=8).network()
    assert nets.certify(target, source, 1e39).bound == np.inf
    assert nets.certify(target, source, 1e39, arithmetic="float64").bound < np.inf


def test_a_norm_without_epsilon_needs_a_floor():
    target = network("rms", 2, norm_epsilon=0.0)
    source = build_network(target, per_row=8).network()
    assert nets.certify(target, source, 1.0, floors=(0.0, 0.0)).bound == np.inf
    assert nets.certify(target, source, 1.0).bound < np.inf
    centred = network("layer", 1, norm_epsilon=0.0)
    with pytest.raises(StrongTicketError, match="a norm reads zeros"):
        nets.certify(centred, nets.Merged(centred), 1.0)


def test_checked_networks_refuse_nan_and_floors_that_do_not_fit():
    ticket = build_network(network("rms", 2), per_row=8, radius=1.0)
    with pytest.raises(StrongTicketError, match="norm nan"):
        ticket.network(check=True)(torch.full((1, 1, 2), torch.nan))
    odd = replace(ticket, certificate=ticket.certificate | {"floors": [0.1]})
    with pytest.raises(StrongTicketError, match="1 floors for 2 norms"):
        odd.network(check=True)


def test_tokens_that_float32_makes_a_little_longer_are_covered():
    """In one dimension and without queries the certificate is sharp: a longer token would break it."""
    target = network("attention", 1)
    target.query.zero_(), target.query_bias.zero_()
    ticket = build_network(target, per_row=8, radius=1.0, arithmetic="float64")
    source, x = ticket.network(dtype=torch.float64, check=True), torch.tensor([[1 + 9e-7]]).double()
    errors = [float((source(s * x) - target(s * x)).abs().max()) for s in (1, -1)]
    assert 0 < max(errors) <= ticket.certificate["bound"] < max(errors) * (1 + 1e-4)
    with pytest.raises(StrongTicketError, match="an input token has norm"):
        source(x * (1 + 1e-6))
