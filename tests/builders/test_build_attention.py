"""Attention tickets: the pruned source computes the target, in every shape attention comes in."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.seeds import Uniform, draw
from strongticket.ticket import Ticket


def target_attention(*args, seed=1, **options):
    return nets.initialise(nets.MultiHeadAttention(*args, **options), seed, normalised=True)


def inputs(net, tokens=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, tokens, net.dim_in, generator=generator), torch.randn(
        2, tokens + 1, net.context_dim, generator=generator
    )


SHAPES = [
    dict(),
    dict(bias=True),
    dict(output_bias=True),
    dict(kv_heads=2),
    dict(kv_heads=1, bias=True, output_bias=True),
    dict(context_dim=3, bias=True),
    dict(context_dim=5, kv_heads=2),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_is_built(shape):
    target = target_attention(4, 3, 4, 6, 5, **shape)
    ticket = build_network(target, per_row=14)
    source = ticket.network(form="factors")
    assert isinstance(source, nets.MultiHeadAttention)
    x, context = inputs(target)
    mask = nets.causal_mask(5, 6)
    assert (source(x, context, mask) - target(x, context, mask)).abs().max() < 0.02
    # The products are the target's, and the bias of the key stays pruned.
    made, wanted = (nets.merge(net, torch.float64) for net in (source, target))
    assert (made.query_key - wanted.query_key).abs().max() < 0.01
    assert (made.value_output - wanted.value_output).abs().max() < 0.01
    if source.bias:
        assert not source.key_bias.any()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_only_pruning_and_one_input_per_unit(shape):
    ticket = build_network(target_attention(4, 3, 4, 6, 5, **shape), per_row=6, seed=7)
    state = ticket.network(form="factors").state_dict()
    assert state.keys() == ticket.masks.keys()
    for name, tensor in state.items():
        full = draw(7, name, tuple(tensor.shape), ticket.laws[name])
        assert np.array_equal(tensor.numpy(), np.where(ticket.masks[name], full, 0))

    # Shared sides are structured; else the smaller one: the key's 3 or 4 inputs against the query's 4 and its
    # bias, the 3 outputs against the value's inputs.
    shared, biased = "kv_heads" in shape, "bias" in shape
    assert inputs_kept(ticket, "key" if shared or biased else "query") <= 1
    assert (inputs_kept(ticket, "value") if shared else ticket.masks["output"].sum(2).max()) <= 1


def inputs_kept(ticket, name):
    """The most inputs that a hidden unit of that matrix keeps, the bias counted."""
    kept = ticket.masks[name].sum(1)
    return (kept + ticket.masks[f"{name}_bias"] if f"{name}_bias" in ticket.masks else kept).max()


NARROW = [
    dict(key_dim=2, value_dim=2),
    dict(key_dim=2, value_dim=2, bias=True, output_bias=True),
    dict(key_dim=3, value_dim=1, kv_heads=2, output_bias=True),
    dict(key_dim=2, value_dim=9),  # values as one product
    dict(key_dim=9, value_dim=2, context_dim=8),  # queries and keys as one product
]


@pytest.mark.parametrize("shape", NARROW, ids=str)
def test_narrow_heads_through_their_own_factors_need_fewer_units(shape, tmp_path):
    target = target_attention(10, 9, 4, **shape)
    ticket = build_network(target, per_row=16, rank=True, radius=1.0)
    source = ticket.network(form="factors")
    one_product = build_network(target, per_row=16, radius=1.0)
    assert sum(mask.size for mask in ticket.masks.values()) < sum(m.size for m in one_product.masks.values())
    assert ("query_inner" in ticket.masks) == (shape["key_dim"] < 5)
    assert ("value_inner" in ticket.masks) == (shape["value_dim"] < 4)
    for name, tensor in source.state_dict().items():
        full = draw(0, name, tuple(tensor.shape), ticket.laws[name])
        assert np.array_equal(tensor.numpy(), np.where(ticket.masks[name], full, 0))
    x, context = (part / part.norm(dim=-1, keepdim=True) for part in inputs(target))
    mask = nets.causal_mask(5, 6)
    again = Ticket.load(ticket.save(tmp_path / "a.ticket"))
    for network in (source, again.network(check=True)):
        error = (network(x, context, mask) - target(x, context, mask)).norm(dim=-1).max()
        assert error <= ticket.certificate["bound"] < 0.1
    assert nets.certify(target, again.network(), 1.0).bound == pytest.approx(ticket.certificate["bound"])


def test_wide_heads_are_built_as_one_product_with_rank_too():
    target = target_attention(4, 3, 2, 2, 2)
    with_rank, without = (build_network(target, per_row=8, rank=rank) for rank in (True, False))
    assert with_rank.settings == without.settings
    assert all(np.array_equal(mask, without.masks[name]) for name, mask in with_rank.masks.items())


def test_the_papers_assignment_keeps_to_the_input_side():
    ticket = build_network(target_attention(4, 1, 2, 6, 5, context_dim=2), width=24, assignment="paper")
    assert inputs_kept(ticket, "query") <= 1
    assert inputs_kept(ticket, "value") <= 1


@pytest.mark.parametrize(("rows", "columns", "width"), [(2, 1, 16), (8, 2, 64)])
def test_the_smaller_side_is_far_better(rows, columns, width):
    errors = {"paper": [], "balanced": []}
    for seed in range(5):
        target = target_attention(rows, columns, 1, 8, 8, seed=seed)
        for assignment, found in errors.items():
            ticket = build_network(
                target, width=(8 * rows, width), seed=seed, assignment=assignment, radius=1.0
            )
            found.append(ticket.certificate["errors"]["value_output"])
    assert np.median(errors["paper"]) > 50 * np.median(errors["balanced"])


@pytest.mark.slow
def test_the_certificate_holds_for_the_network_that_is_returned():
    """d = 8, two heads, an accuracy that float32 sums over hundreds of units do not have."""
    target = nets.initialise(nets.MultiHeadAttention(8, 8, 2, 4, 4), 3, normalised=True)
    ticket = build_network(target, epsilon=2e-6, seed=1)
    assert ticket.certificate["arithmetic"] == "float32"
    source, radius = ticket.network(), ticket.certificate["radius"]
    x = torch.randn(2000, 3, 8, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=-1, keepdim=True) * radius * (1 - 1e-6)
    wanted = nets.merge(target, torch.float64)(x.double())
    assert source(x).dtype == torch.float32
    error = (source(x).double() - wanted).norm(dim=-1).max()
    assert error <= ticket.certificate["bound"] <= 2e-6
    factors = ticket.network(form="factors")
    assert (factors(x).double() - wanted).norm(dim=-1).max() > ticket.certificate["bound"]
    double = build_network(target, width=ticket.settings["key_dim"], seed=1, arithmetic="float64")
    assert double.certificate["bound"] < ticket.certificate["bound"]
    error = (double.network(dtype=torch.float64)(x.double()) - wanted).norm(dim=-1).max()
    assert error <= double.certificate["bound"]


@settings(max_examples=10)
@given(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(0, 99))
def test_smallest_sizes(dim_in, dim_out, heads, hidden, seed):
    target = target_attention(dim_in, dim_out, heads, hidden, hidden, seed=seed)
    ticket = build_network(target, per_row=16, seed=seed)
    x = inputs(target, tokens=1, seed=seed)[0]
    assert (ticket.network()(x) - target(x)).abs().max() < 0.05


def test_error_falls_with_the_width_and_balanced_beats_paper():
    target = target_attention(8, 8, 1, 8, 8)

    def error(**options):
        return np.mean(
            [max(build_network(target, seed=s, **options).certificate["errors"].values()) for s in range(3)]
        )

    errors = [error(per_row=n) for n in (4, 8, 12)]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert error(per_row=8) < 0.5 * error(per_row=8, assignment="paper")


def test_three_initialisations():
    target = target_attention(4, 3, 2, 6, 5)
    theory, inverse, xavier = (
        build_network(target, width=(48, 32), init=init) for init in ("theory", "inverse", "xavier")
    )
    assert theory.laws["query"] == theory.laws["key"] == Uniform(48**0.25)
    assert inverse.laws["query"] == Uniform(48**-0.25)
    assert theory.laws["value"] == inverse.laws["output"] == Uniform(1.0)
    assert xavier.laws["query"] == Uniform((6 / (4 + 48)) ** 0.5)
    assert xavier.laws["output"] == Uniform((6 / (3 + 32)) ** 0.5)
    # Only the first can reach the query-key product.
    reached = theory.certificate["errors"]["query_key"]
    assert reached < inverse.certificate["errors"]["query_key"] < xavier.certificate["errors"]["query_key"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_float_and_any_layout(dtype):
    target = target_attention(3, 3, 2, 4, 4).to(dtype)
    target.query = torch.nn.Parameter(target.query.transpose(1, 2).contiguous().transpose(1, 2))
    again = nets.MultiHeadAttention(3, 3, 2, 4, 4).double()
    again.load_state_dict(target.state_dict())
    ticket, other = build_network(target, per_row=8), build_network(again, per_row=8)
    assert all(np.array_equal(mask, other.masks[name]) for name, mask in ticket.masks.items())


def test_same_seed_same_ticket_and_other_seed_other():
    target = target_attention(3, 3, 2, 4, 4)
    one, two, other = (build_network(target, per_row=8, seed=seed) for seed in (5, 5, 6))
    assert all(np.array_equal(one.masks[name], two.masks[name]) for name in one.masks)
    assert not np.array_equal(one.masks["output"], other.masks["output"])
    bare = build_network(target, per_row=8, seed=5, certificate=False)
    assert bare.certificate is None
    assert all(np.array_equal(one.masks[name], bare.masks[name]) for name in one.masks)


def test_a_target_of_zeros():
    ticket = build_network(nets.MultiHeadAttention(3, 3, 2, 4, 4), per_row=4)
    assert not nets.merge(ticket.network()).query_key.any()
    assert ticket.certificate["errors"] == {"query_key": 0.0, "value_output": 0.0}


def test_certificate_holds():
    target = target_attention(4, 4, 2, 4, 4, bias=True)
    ticket = build_network(target, per_row=10)
    certificate = ticket.certificate
    assert certificate["radius"] == 2.0  # √dim_in, the least of the paper's assumption
    assert 0 < certificate["bound"] < certificate["paper_bound"]
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(200, 6, 4, generator=rng)
    x = 2.0 * x / x.norm(dim=-1, keepdim=True)
    found = (ticket.network()(x) - target(x)).norm(dim=-1).max().item()
    assert found <= certificate["bound"]
    assert build_network(target, per_row=10, radius=1.0).certificate["bound"] < certificate["bound"]


@pytest.mark.parametrize("kept", [0.1, 0.25, 0.5, 0.75])
def test_the_kept_share_can_be_asked_for(kept):
    """Each entry keeps that share of its products: so does the side where the masks choose."""
    target = target_attention(4, 4, 2, 4, 4)
    ticket = build_network(target, per_row=20, kept=kept, radius=2.0)
    assert ticket.metadata["kept"] == kept
    assert ticket.masks["key"].mean() == pytest.approx(kept, abs=0.03)  # rows may have a unit more or less
    assert ticket.masks["output"].mean() == pytest.approx(kept, abs=0.03)
    x = torch.nn.functional.normalize(inputs(target)[0], dim=-1)
    error = (ticket.network()(x) - target(x)).norm(dim=-1).max().item()
    assert error <= ticket.certificate["bound"] < (1.0 if kept in (0.1, 0.75) else 0.01)


def test_wrong_requests_are_named():
    target = target_attention(3, 3, 2, 4, 4)
    for width, message in (
        (2, r"query_key of head 0.*smallest"),
        ((12, 2), r"value_output of head 0.*smallest"),
        ((12, 0), r"width\[1\]=0"),
    ):
        with pytest.raises(StrongTicketError, match=message):
            build_network(target, width=width)
    with pytest.raises(StrongTicketError, match=r"radius=-1\.0: expected"):
        build_network(target, per_row=4, radius=-1.0, progress=pytest.fail)  # before anything is built
    for kept in (0, 1, -0.5):
        with pytest.raises(StrongTicketError, match=f"kept={kept}: expected"):
            build_network(target, per_row=4, kept=kept)
    with pytest.raises(StrongTicketError, match=r"query_key of head 0: .*up to 40 values, not 50"):
        build_network(target, per_row=50, kept=0.2, assignment="paper")
    with pytest.raises(StrongTicketError, match="target is a int"):
        inspect.unwrap(build_network)(5, per_row=4)
    with pytest.raises(StrongTicketError, match="target is a Linear"):
        build_network(torch.nn.Linear(2, 2), per_row=4)
    target.value.data[1, 2, 0] = torch.nan
    with pytest.raises(StrongTicketError, match=r"target's value\[1, 2, 0\] is nan"):
        build_network(target, per_row=4)
