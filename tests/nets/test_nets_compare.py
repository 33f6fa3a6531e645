from copy import deepcopy

import pytest
import torch

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.nets import compare, output_error, probe_inputs


def attention(seed=0, **options):
    return nets.initialise(nets.MultiHeadAttention(3, 2, 2, 4, 4, **options), seed)


def transformer(seed=0):
    parts = [
        nets.Block(nets.MultiHeadAttention(3, 3, 1, 4, 4), nets.ReluNetwork([3, 4, 3], bias=True))
        for _ in range(2)
    ]
    return nets.initialise(nets.Transformer(parts), seed)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (attention(bias=True), ["query_key", "value_output"]),
        (
            nets.initialise(nets.ReluNetwork([3, 2], bias=True), 0),
            ["layers.0.weight", "layers.0.weight, negative side", "layers.0.bias"],
        ),
        (transformer(), None),
    ],
)
def test_measured_is_below_certified_and_every_matrix_is_named(target, names):
    source = build_network(target, per_row=24).network()
    found = compare(target, source, inputs=64, tokens=5)
    assert 0 < found.mean <= found.measured <= found.certificate.bound
    assert found.relative["measured"] == pytest.approx(found.measured / found.output)
    if names is None:
        names = [
            f"blocks.{b}.{part}"
            for b in range(2)
            for part in (
                "attention.query_key",
                "attention.value_output",
                "feed_forward.layers.0.weight",
                "feed_forward.layers.0.weight, negative side",
                "feed_forward.layers.0.bias",
                "feed_forward.layers.1.weight",
                "feed_forward.layers.1.bias",
            )
        ]
    assert [matrix.name for matrix in found.matrices] == names
    assert all(0 < matrix.error < 0.1 for matrix in found.matrices)


def test_a_matrix_error_is_the_largest_difference_of_its_products():
    target = attention()
    source = build_network(target, per_row=10).network()
    by_hand = [
        (net.query.double() @ net.key.double().transpose(1, 2) / net.key_dim**0.5)
        for net in (target, source.factors)
    ]
    assert compare(target, source).matrices[0].error == pytest.approx(
        (by_hand[0] - by_hand[1]).abs().max().item()
    )


def test_output_error_is_the_norm_at_every_position_and_changes_nothing():
    target, other = attention(0), attention(1)
    x = torch.randn(9, 4, 3, generator=torch.Generator().manual_seed(0))
    distance = output_error(target, other, x)
    assert distance.shape == (9, 4)
    torch.testing.assert_close(distance.float(), (other(x) - target(x)).norm(dim=-1).detach())
    assert target.query.dtype == torch.float32
    assert output_error(target, target, x).max() < 1e-6  # the source runs in float32, the target does not
    assert output_error(target, deepcopy(target).double(), x.double()).max() == 0


def test_probes_fill_the_ball_to_its_edge():
    lengths = probe_inputs(attention(), 2.0, 500, 3, 0).norm(dim=-1)
    assert lengths.max() <= 2.0 * (1 + 1e-12)
    assert (lengths > 1.999).double().mean() == pytest.approx(0.5, abs=0.05)
    assert lengths.min() < 0.1
    assert probe_inputs(nets.ReluNetwork([3, 2]), 1.0, 7, 4, 0).shape == (7, 3)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(StrongTicketError, match="same kind"):
        compare(attention(), transformer())
    with pytest.raises(StrongTicketError, match="inputs=0"):
        compare(attention(), attention(), inputs=0)
    cross = nets.initialise(nets.MultiHeadAttention(3, 2, 1, 4, 4, context_dim=5), 0)
    with pytest.raises(StrongTicketError, match="two inputs"):
        compare(cross, nets.Merged(cross))
    two, three = (nets.initialise(nets.MultiHeadAttention(4, 4, heads, 2, 2), 0) for heads in (2, 3))
    with pytest.raises(StrongTicketError, match=r"source's query_key has shape \(3, 4, 4\)"):
        nets.certify(two, nets.Merged(three))
    with pytest.raises(StrongTicketError, match="some hidden unit reads several inputs"):
        compare(nets.ReluNetwork([3, 2]), nets.Merged(nets.initialise(nets.ReluNetwork([3, 9, 2]), 0)))


@pytest.mark.parametrize("arithmetic", ["float32", "float64", "exact"])
@pytest.mark.parametrize(
    "target",
    [
        attention(bias=True),
        nets.initialise(nets.ReluNetwork([3, 2]), 0),
        transformer().blocks[0],
        transformer(),
    ],
)
def test_inputs_of_any_size_have_no_bound_and_huge_ones_a_huge_one(target, arithmetic):
    source = build_network(target, per_row=8).network()
    assert nets.certify(target, source, 1e300, arithmetic=arithmetic).bound > 1e200
    for ask in (nets.certify, compare):
        with pytest.raises(StrongTicketError, match="radius=inf"):
            ask(target, source, radius=float("inf"), arithmetic=arithmetic)


def test_a_bias_is_not_taken_for_an_input():
    """Three inputs and a bias have products of the same shape as four inputs without one."""
    narrow, wide = (
        nets.initialise(nets.MultiHeadAttention(dim, 2, 1, 2, 2, bias=dim == 3), seed=1) for dim in (3, 4)
    )
    with pytest.raises(StrongTicketError, match="one has biases"):
        nets.certify(narrow, wide, arithmetic="exact")


def test_a_parameter_of_another_shape_is_refused():
    target = nets.initialise(nets.MultiHeadAttention(4, 4, 1, 2, 2), seed=1)
    replaced = deepcopy(target)
    replaced.query = torch.nn.Parameter(torch.zeros(1, 4, 3))
    with pytest.raises(StrongTicketError, match=r"query has shape \(1, 4, 3\): expected \(1, 4, 2\)"):
        nets.certify(target, replaced, arithmetic="exact")
