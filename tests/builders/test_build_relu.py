"""ReLU tickets: two random layers for one, 2L for L."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strongticket import nets
from strongticket.builders import build_network
from strongticket.builders.relu import paper_owner
from strongticket.errors import StrongTicketError
from strongticket.seeds import Uniform


def target_relu(dims, bias=False, seed=1):
    return nets.initialise(nets.ReluNetwork(dims, bias=bias), seed, normalised=True)


@settings(max_examples=10)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.booleans(),
    st.sampled_from(["balanced", "paper"]),
    st.integers(0, 99),
)
def test_the_source_is_what_its_errors_say(dims, bias, assignment, seed):
    """One pair's output is the target's layer up to the stated error of each entry."""
    target = target_relu(dims, bias, seed)
    ticket = build_network(target, per_row=12, seed=seed, assignment=assignment)
    source = ticket.network(form="factors")
    assert source.dims[::2] == dims
    assert source.biases == [flag for layer in target.biases for flag in (layer, False)]
    merged = nets.merge(source, torch.float64)
    assert isinstance(merged, nets.MergedRelu)  # every unit keeps one input
    for index, layer in enumerate(target.layers):
        error = ticket.certificate["errors"][f"layers.{2 * index + 1}"]
        found = [(merged.positive[index] - layer.weight).abs().max().item()]
        if index == 0:
            found.append((merged.negative[index] + layer.weight).abs().max().item())
        if layer.bias is not None:
            found.append((merged.constant[index] - layer.bias).abs().max().item())
        assert max(found) == pytest.approx(error, rel=1e-5, abs=1e-7)


def test_network_computes_the_target():
    target = target_relu([4, 6, 5, 3], bias=True)
    x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    errors = [(build_network(target, per_row=n).network()(x) - target(x)).abs().max().item() for n in (8, 20)]
    assert errors[1] < 0.02 < errors[0]


def test_paper_assignment_keeps_to_contiguous_groups():
    ticket = build_network(target_relu([3, 2], bias=True), per_row=8, assignment="paper")
    kept = np.hstack([ticket.masks["layers.0.weight"], ticket.masks["layers.0.bias"][:, None]])
    assert not kept[~np.kron(np.eye(4, dtype=bool), np.ones((8, 1), bool))].any()
    # Two units for each of three rows and one left over: (0, +), (0, −), (1, +), (1, −), constant, none, none.
    units = np.tile([1.0, -1.0], 4)[None, :7].repeat(3, 0)
    assert paper_owner(units, 2).tolist() == [0, 3, 1, 4, 2, -1, -1]


@pytest.mark.slow
def test_rows_out_of_reach_take_units_of_the_right_sign():
    """With plenty of units, one source in fifty once ended with an entry that all its row's units did not reach."""
    target = nets.ReluNetwork([2, 2])
    target.layers[0].weight.data = torch.tensor([[0.09, 0.09], [-0.67, -0.51]])
    x = torch.cat([torch.eye(2), -torch.eye(2)])
    for seed in range(150):
        made = build_network(target, width=80, seed=seed, certificate=False).network()
        assert (made(x) - target(x)).abs().max() < 1e-2, seed


@pytest.mark.slow
def test_a_unit_serves_one_row_whatever_was_moved():
    """A row that gave and took in the same round once left a unit to two rows."""
    target = nets.ReluNetwork([2, 2])
    target.layers[0].weight.data = torch.tensor([[0.7, -0.17], [0.32, 0.47]])
    for width in (20, 32, 56):
        for seed in range(150):
            made = build_network(target, width=width, seed=seed, certificate=False).network(form="factors")
            assert ((made.layers[0].weight != 0).sum(dim=1) <= 1).all(), (width, seed)


def test_inputs_after_a_relu_use_positive_units_alone():
    ticket = build_network(target_relu([3, 4, 2]), per_row=10)
    source = ticket.network(form="factors")
    assert (source.layers[0].weight < 0).any()
    assert not (source.layers[2].weight < 0).any()


def test_certificate_holds_and_can_be_asked_for():
    target = target_relu([3, 4, 2], bias=True)
    ticket = build_network(target, epsilon=0.3, radius=1.0)
    assert ticket.certificate["bound"] <= 0.3
    x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=-1, keepdim=True)
    assert (ticket.network()(x) - target(x)).norm(dim=-1).max() <= ticket.certificate["bound"]
    width = ticket.settings["dims"][1]
    assert build_network(target, per_row=width // 4 - 1, radius=1.0).certificate["bound"] > 0.3


def test_xavier_and_widths_a_layer():
    ticket = build_network(target_relu([3, 4, 2]), width=[60, 50], init="xavier")
    assert ticket.settings["dims"] == [3, 60, 4, 50, 2]
    assert ticket.laws["layers.0.weight"] == Uniform((6 / 63) ** 0.5)
    assert ticket.laws["layers.3.weight"] == Uniform((6 / 52) ** 0.5)


def test_wrong_requests_are_named():
    target = target_relu([3, 4, 2])
    with pytest.raises(StrongTicketError, match=r"layers\.0: .*smallest"):
        build_network(target, width=3)
    with pytest.raises(StrongTicketError, match=r"width=\[20, 20, 20\]: expected one number, or 2"):
        build_network(target, width=[20, 20, 20])
