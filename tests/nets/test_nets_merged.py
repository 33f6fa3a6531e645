"""Merged networks and certificates: each module runs as it is written, and a bound names what it holds for."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.nets.certifying import certify_weights
from strongticket.nets.weights import read
from strongticket.ticket import Ticket

ATTENTION = nets.MultiHeadAttention(4, 4, 2, 40, 40, bias=True)
BLOCK = nets.Block(deepcopy(ATTENTION), nets.ReluNetwork([4, 8, 4], bias=True))
NETWORKS = [ATTENTION, nets.ReluNetwork([4, 3]), BLOCK, nets.Transformer([deepcopy(BLOCK)], norm="rms")]
each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.kind)


def tokens(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)) / 4


@each_network
def test_merged_is_the_same_function_with_less_rounding(network):
    nets.initialise(network, 0)
    x = tokens(20, 3, 4)
    written, merged = network(x), nets.Merged(network)
    exact = deepcopy(network).double()(x.double())
    found = merged(x)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, written, rtol=1e-3, atol=1e-3)
    error, rounding = (found - exact).abs().max(), (exact.float() - exact).abs().max()
    assert error <= 1.01 * rounding
    if network.kind != "relu":  # one short layer has no long sums
        assert error < (written - exact).abs().max()
    assert merged(x.double()).dtype == torch.float64
    assert nets.Merged(deepcopy(network).double())(x).dtype == torch.float64


@each_network
def test_a_forward_does_not_depend_on_gradients(network):
    nets.initialise(network, 0)
    x, merged = tokens(5, 3, 4), nets.Merged(network)
    written, found = network(x), merged(x)
    network.requires_grad_(False)
    assert torch.equal(network(x), written)
    assert torch.equal(nets.Merged(network)(x), found)
    network.requires_grad_(True)
    assert torch.equal(nets.Merged(network)(x), found)


def test_merged_gives_gradients_to_its_inputs_alone():
    merged = nets.Merged(nets.initialise(deepcopy(BLOCK), 0))
    x = torch.ones(2, 4, requires_grad=True)
    merged(x).sum().backward()
    assert x.grad.any()
    assert not any(parameter.requires_grad for parameter in merged.parameters())


def test_a_trainable_network_is_not_certified_for_what_another_form_computes():
    """Its bound was 9.6e-5, its float32 error 1.9e-3: certify believed in merged products that did not run."""
    target = nets.initialise(nets.MultiHeadAttention(4, 4, 1, 4, 4), 3, normalised=True)
    factors = build_network(target, per_row=32, seed=1, certificate=False).network(form="factors")
    x = tokens(2000, 3, 4)
    x = x / x.norm(dim=-1, keepdim=True) * 2 * (1 - 1e-6)
    for trainable in (True, False):
        factors.requires_grad_(trainable)
        with pytest.raises(StrongTicketError, match="factors one by one") as caught:
            nets.certify(target, factors)
        assert "Merged(source)" in caught.value.hint
        merged = nets.Merged(factors)
        found = nets.certify(target, merged)
        assert (found.form, found.arithmetic) == ("merged", "float32")
        error = nets.output_error(target, merged, x).max()
        assert error <= found.bound < nets.output_error(target, factors, x).max() / 10
    assert nets.certify(target, factors, arithmetic="exact").form == "any"


@pytest.mark.parametrize(
    "change", [lambda n: n.factors.output.mul_(2), lambda n: n.half(), lambda n: n.float()]
)
def test_a_merged_network_that_changed_is_not_certified(change):
    network = nets.initialise(nets.MultiHeadAttention(3, 3, 1, 9, 9), 0)
    merged, target = nets.Merged(network), deepcopy(network)
    nets.certify(target, merged)
    with torch.no_grad():
        change(merged)
    with pytest.raises(StrongTicketError, match="changed since it was merged"):
        nets.certify(target, merged)


def test_a_certificate_is_for_the_sources_own_type_unless_asked_otherwise():
    target = nets.initialise(nets.MultiHeadAttention(3, 2, 2, 2, 2), seed=1)
    ticket = build_network(target, per_row=12)
    single, double = ticket.network(), ticket.network(dtype=torch.float64)
    assert nets.certify(target, single).arithmetic == "float32"
    assert nets.certify(target, double).arithmetic == "float64"
    assert nets.certify(target, double) == nets.certify(target, single, arithmetic="float64")
    with pytest.raises(StrongTicketError, match="bfloat16"):
        nets.certify(target, ticket.network(dtype=torch.bfloat16))


@each_network
def test_arrays_are_certified_as_the_network_that_is_made_of_them(network):
    nets.initialise(network, 0)
    ticket = build_network(network, per_row=8)
    state = {name: tensor.detach().numpy() for name, tensor in network.state_dict().items()}
    wanted = read(network.kind, network.settings(), state)
    arrays = {name: ticket.weights(name) for name in ticket.masks}
    built = read(ticket.kind, ticket.settings, arrays)
    found = certify_weights(wanted, built, arithmetic="float32")
    assert found == nets.certify(network, ticket.network())


@pytest.fixture(scope="module")
def tickets():
    target = nets.initialise(nets.MultiHeadAttention(3, 2, 2, 2, 2), seed=1)
    return {
        name: build_network(target, per_row=8, arithmetic=name) for name in ("float32", "float64", "exact")
    }


def test_a_checked_network_runs_in_the_form_and_arithmetic_of_its_certificate(tickets):
    x = tokens(2, 5, 3)
    single = tickets["float32"].network(check=True)
    assert torch.equal(single(x), tickets["float32"].network()(x))
    double = tickets["float64"].network(check=True, dtype=torch.float64)
    assert double(x).dtype == double(x.double()).dtype == torch.float64
    for asked in (x.double(), x[:0].double()):
        with pytest.raises(StrongTicketError, match=r"in float32 arithmetic.*inputs of torch\.float64"):
            single(asked)
    for convert in (nets.Checked.half, nets.Checked.float):
        with pytest.raises(StrongTicketError, match="weights of"):
            convert(deepcopy(single))(x)
    for name, options in (
        ("float32", dict(form="factors")),
        ("float32", dict(dtype=torch.float16)),
        ("float32", dict(dtype=torch.float64)),
        ("float64", dict()),
        ("exact", dict()),
    ):
        with pytest.raises(StrongTicketError, match="the certificate holds for"):
            tickets[name].network(check=True, **options)


@pytest.mark.parametrize("held", ["float32", "float64", "exact"])
@pytest.mark.parametrize("form", ["merged", "factors"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_nothing_but_what_a_certificate_names_runs(tickets, held, form, dtype):
    """Every certificate with every form and arithmetic, both when the network is made and when it runs."""
    x = tokens(2, 5, 3)
    fits = form == "merged" and str(dtype) == f"torch.{held}"
    if fits:
        network = tickets[held].network(dtype=dtype, check=True)
        assert torch.equal(network(x), tickets[held].network(dtype=dtype)(x))
    else:
        with pytest.raises(StrongTicketError, match="the certificate holds for the"):
            tickets[held].network(form=form, dtype=dtype, check=True)
    if held != "exact":  # made as it should be, converted afterwards
        network = tickets[held].network(dtype=getattr(torch, held), check=True).to(dtype)
        if dtype == torch.float64:
            network(x)
        else:
            with pytest.raises(StrongTicketError, match="the certificate holds for the"):
                network(x)


def test_a_checked_network_refuses_other_devices_weights_and_inputs(tickets):
    made, x = tickets["float32"].network(check=True), tokens(2, 5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(made(x), tickets["float32"].network()(x))
    with pytest.raises(StrongTicketError, match=r"holds on cpu and cuda.*this network is on meta"):
        deepcopy(made).to("meta")(x.to("meta"))
    for change in (lambda n: n.half().double(), lambda n: n.network.body.query_key.data.mul_(2)):
        change(changed := deepcopy(made))
        with pytest.raises(StrongTicketError, match="weights have changed"):
            changed(x)
    with pytest.raises(StrongTicketError, match=r"inputs of torch\.int64"):
        made(torch.ones(2, 5, 3, dtype=torch.int64))
    with pytest.raises(StrongTicketError, match="65,537 tokens: the certificate holds up to 65,536"):
        made(torch.zeros(2**16 + 1, 3))
    if torch.set_flush_denormal(True):
        try:
            with pytest.raises(StrongTicketError, match="rounds such numbers to zero"):
                made(x)
        finally:
            torch.set_flush_denormal(False)


@each_network
def test_an_empty_batch_gets_an_empty_answer(network):
    ticket = build_network(nets.initialise(network, 0), per_row=8)
    shape = (0, network.width) if network.kind == "relu" else (0, 5, network.width)
    assert ticket.network(check=True)(torch.zeros(shape)).shape[0] == 0


def test_long_tokens_are_refused(tickets):
    network = tickets["float32"].network(check=True)
    for wrong in (10.0, torch.nan):
        with pytest.raises(StrongTicketError, match="an input token has norm"):
            network(torch.full((1, 5, 3), wrong))


def test_tickets_name_the_form_and_older_ones_mean_merged(tickets, tmp_path):
    ticket = Ticket.load(tickets["float32"].save(tmp_path / "a.ticket"))
    assert ticket.certificate["form"] == "merged"
    older = {name: value for name, value in ticket.certificate.items() if name != "form"}
    older = Ticket.load(replace(ticket, certificate=older).save(tmp_path / "b.ticket"))
    older.network(check=True)
    with pytest.raises(StrongTicketError, match="form is 'folded'"):
        replace(ticket, certificate=ticket.certificate | {"form": "folded"})
    with pytest.raises(StrongTicketError, match="form='folded'"):
        ticket.network(form="folded")
