import math

import pytest

from strongticket import nets, theory
from strongticket.builders import build_network, plan_network
from strongticket.builders.planned import Architecture, PlannedProduct
from strongticket.errors import StrongTicketError


def test_theorem_3_with_the_measured_line():
    found = plan_network(0.01, 8, dim_out=4, heads=2, radius=3.0)
    slope, offset = (found.lines["product"][name] for name in ("slope", "offset"))
    key, value = found.by_theorem.layers
    assert key.per_row == math.ceil(slope * math.log(8 * 2 * 3**3 * 8**1.5 / 0.01) + offset)
    assert value.per_row == math.ceil(slope * math.log(2 * 2 * 3 * 8 * 2 / 0.01) + offset)
    assert (key.width, key.problems, value.problems) == (8 * key.per_row, 2 * 64, 2 * 32)
    assert value.width == 4 * value.per_row  # the smaller side


def test_three_numbers_in_order():
    found = plan_network(1e-3, 8)
    assert math.ceil(found.lower_bound) == 46
    practice, theorem = (size.layers[1].width for size in (found.in_practice, found.by_theorem))
    assert found.lower_bound < practice < theorem
    assert plan_network(1e-3, 8, blocks=2).lower_bound is None


def test_narrow_heads_are_planned_through_their_factors_as_they_are_built():
    found = plan_network(0.01, 12, heads=2, rank=2)
    assert [layer.name for layer in found.in_practice.layers] == ["query", "key", "value", "output"]
    whole = plan_network(0.01, 12, heads=2)
    for size in ("by_theorem", "in_practice"):
        assert getattr(found, size).weights < getattr(whole, size).weights
    assert found.lower_bound < whole.lower_bound
    assert found.lower_bound < sum(layer.width for layer in found.in_practice.layers[2:])
    target = nets.initialise(nets.MultiHeadAttention(12, 12, 2, 2, 2), 0, normalised=True)
    per_row = found.in_practice.layers[0].per_row
    ticket = build_network(target, per_row=per_row, rank=True)
    assert sum(mask.size for mask in ticket.masks.values()) == found.in_practice.weights
    assert len(ticket.to_bytes()) == pytest.approx(found.in_practice.file_bytes, rel=0.25)
    with pytest.raises(StrongTicketError, match="rank is for one attention"):
        plan_network(0.1, 4, blocks=1, rank=1)


@pytest.mark.parametrize(("dim_out", "names"), [(4, ["query", "key", "value_output"]), (12, None)])
def test_only_narrow_products_go_through_factors(dim_out, names):
    layers = plan_network(0.01, 12, dim_out=dim_out, rank=3).by_theorem.layers
    assert [layer.name for layer in layers] == (names or ["query", "key", "value", "output"])


def test_the_promise_is_the_proofs():
    assert plan_network(0.1, 4, radius=2.0).failure == 0.1
    low = plan_network(0.1, 4, dim_out=9, radius=0.75)
    assert low.failure == theory.attention_widths(0.1, 4, 9, 1, 0.75).failure > 0.2
    assert plan_network(0.1, 4, radius=0.1).failure is None
    assert plan_network(0.1, 4, blocks=2, radius=1.0).failure is None


def test_masks_take_more_bits_than_the_limit():
    planned = plan_network(1e-3, 16).in_practice
    assert planned.least_bits + 1 < planned.bits < 2 * planned.least_bits


def test_pre_norm_blocks_need_widths_that_grow_slowly_with_their_number():
    few, many = (plan_network(0.01, 8, blocks=b, norm_floor=2.0).by_theorem for b in (2, 8))
    without = plan_network(0.01, 8, blocks=8).by_theorem
    assert few.layers[0].width < many.layers[0].width < without.layers[0].width
    assert many.layers[0].width == many.layers[-3].width  # the same in every block
    with pytest.raises(StrongTicketError, match="norm_floor is for blocks"):
        plan_network(0.1, 4, norm_floor=1.0)


@pytest.mark.parametrize(("blocks", "layers"), [(0, 1), (3, 2)])
def test_practice_reaches_epsilon_and_no_narrower_source_does(blocks, layers):
    found = plan_network(0.01, 8, heads=2, blocks=blocks, layers=layers, radius=2.0)
    assert found.in_practice.error <= 0.01
    n = found.in_practice.layers[0].per_row - 1
    assert found.architecture.source([(n, n, 2 * n)] * max(1, blocks)).error > 0.01


def test_an_epsilon_out_of_reach_gives_the_widest_and_its_error():
    found = plan_network(1e-9, 4, radius=1e6).in_practice
    assert found.layers[0].per_row == 40
    assert found.error > 1e-9


def test_what_cannot_be_planned_is_named():
    with pytest.raises(StrongTicketError, match="dim=-4"):
        plan_network(0.1, -4)
    with pytest.raises(StrongTicketError, match="a block's output is as wide as its input"):
        plan_network(0.1, 4, dim_out=5, blocks=1)


@pytest.mark.parametrize(("dim", "heads", "blocks", "n"), [(8, 2, 0, 12), (16, 1, 0, 10), (8, 1, 1, 12)])
def test_what_is_planned_is_what_is_built(dim, heads, blocks, n):
    """Weights exactly, problems' widths exactly; file within a tenth."""
    architecture = Architecture(dim, dim, heads, blocks, 1, 1.0)
    attention = nets.MultiHeadAttention(dim, dim, heads, dim, dim)
    target = nets.Block(attention, nets.ReluNetwork([dim, dim])) if blocks else attention
    nets.initialise(target, 0, normalised=True)
    planned = architecture.source([(n, n, 2 * n)])
    width = (dim * n, 2 * dim * n) if blocks else dim * n
    ticket = build_network(target, width=width, radius=1.0)
    assert planned.weights == sum(mask.size for mask in ticket.masks.values())
    assert len(ticket.to_bytes()) == pytest.approx(planned.file_bytes, rel=0.1)
    assert ticket.certificate["bound"] < 3 * planned.error


def test_a_row_uses_no_more_values_than_can_be_solved_exactly():
    many, most = (PlannedProduct("x", "product", 1, 4, 4, per_row) for per_row in (100, 40))
    assert many.values == 40
    assert PlannedProduct("x", "relu", 1, 4, 4, 50).values == 25
    assert many.error_norm == most.error_norm > 0
