"""Pre-norm blocks: torch's own norms as oracle, files and tickets, inputs outside of the certified set."""

import pytest
import torch
from benchmarks.random_tickets import respects_floors

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.ticket import Ticket


def transformer(norm, dim=4, blocks=2, seed=0):
    parts = [
        nets.Block(nets.MultiHeadAttention(dim, dim, 2, 2, 2), nets.ReluNetwork([dim, dim]), norm=norm)
        for _ in range(blocks)
    ]
    return nets.initialise(nets.Transformer(parts, norm=norm), seed, normalised=True)


def tokens(count, dim=4, seed=0):
    x = torch.randn(count, 3, dim, generator=torch.Generator().manual_seed(seed))
    return x / x.norm(dim=-1, keepdim=True) * dim**0.5 * (1 - 1e-6)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_are_those_of_torch(kind):
    x = torch.randn(7, 5)
    own = {"layer": torch.nn.functional.layer_norm, "rms": torch.nn.functional.rms_norm}[kind]
    torch.testing.assert_close(nets.Norm(kind, 1e-5)(x), own(x, (5,), eps=1e-5))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_ticket_with_norms_is_built_certified_saved_and_checked(kind, tmp_path):
    target = transformer(kind).requires_grad_(False)
    ticket = build_network(target, per_row=24)
    assert len(ticket.certificate["floors"]) == 5
    ticket = Ticket.load(ticket.save(tmp_path / "t.ticket"))
    source, x = ticket.network(check=True), tokens(200)
    assert [norm.rule.kind for norm in nets.find_norms(source)] == [kind] * 5
    kept = respects_floors(ticket.network(), ticket.certificate["floors"])(x)
    assert kept.float().mean() > 0.5
    error = (source(x[kept]) - target(x[kept])).norm(dim=-1).max()
    assert 0 < error <= ticket.certificate["bound"]
    with pytest.raises(
        StrongTicketError, match="a norm reads a token of length 0: the certificate holds from"
    ):
        source(torch.zeros(1, 3, 4))
    with pytest.raises(StrongTicketError, match="an input token has norm 20: the certificate holds up to 2"):
        source(torch.full((1, 3, 4), 10.0))
    ticket.network()(torch.zeros(1, 3, 4))


def test_networks_without_norms_have_the_settings_they_always_had(tmp_path):
    plain = nets.Transformer([nets.Block(nets.MultiHeadAttention(2, 2, 1, 2, 2), nets.ReluNetwork([2, 2]))])
    assert plain.settings().keys() == {"blocks"}
    assert plain.settings()["blocks"][0].keys() == {"attention", "feed_forward"}
    again = nets.load(nets.save(transformer("rms"), tmp_path / "net.safetensors"))
    assert again.settings() == transformer("rms").settings()
    x = tokens(3)
    torch.testing.assert_close(again(x), transformer("rms")(x))


def test_checking_needs_a_certificate():
    ticket = build_network(transformer("rms"), per_row=6, certificate=False)
    with pytest.raises(StrongTicketError, match="the ticket has no certificate"):
        ticket.network(check=True)
