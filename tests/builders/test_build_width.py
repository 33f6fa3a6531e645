"""Finding the narrowest source: doubling, bisection, and giving up with words."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket import nets
from strongticket.builders import build_network, source
from strongticket.builders.network import FIRST, LAST, search_width
from strongticket.errors import StrongTicketError
from strongticket.seeds import draw
from strongticket.ticket import Ticket, _ticket


@given(st.integers(FIRST, LAST), st.floats(0.05, 2))
def test_narrowest_of_a_falling_error(needed, rate):
    """The error falls with the width: the first width that reaches it is found in few builds."""
    tried = []

    def build(size):
        tried.append(size)
        return SimpleNamespace(size=size, bound=2.0 ** (-rate * size))

    found = search_width(build, lambda built: built.bound, 2.0 ** (-rate * (needed - 0.5)))
    assert found.size == needed
    assert len(tried) <= 10


@given(st.lists(st.floats(0, 1), min_size=LAST + 1, max_size=LAST + 1))
def test_any_error_at_all(bounds):
    """Other widths are other sources, so the error may rise: what is returned still reaches epsilon."""

    def build(size):
        return SimpleNamespace(size=size, bound=bounds[size])

    if min(bounds[4], bounds[8], bounds[16], bounds[32], bounds[40]) > 0.5:
        with pytest.raises(StrongTicketError, match="was not reached: with 40 units per row"):
            search_width(build, lambda built: built.bound, 0.5)
    else:
        assert bounds[search_width(build, lambda built: built.bound, 0.5).size] <= 0.5


def test_one_of_width_per_row_and_epsilon_is_given():
    target = nets.initialise(nets.ReluNetwork([3, 2]), 0)

    def units(**given):
        return build_network(target, **given).settings["dims"][1]

    assert units(width=7) == units(width=[7]) == 7
    assert units(per_row=7) == 21
    assert units(epsilon=0.5) % 3 == 0
    for asked, message in (
        ({}, "nothing given: expected exactly one of"),
        (dict(per_row=7, epsilon=0.1), "per_row and epsilon given"),
        (dict(per_row=0), "per_row=0"),
        (dict(epsilon=-1), "epsilon=-1: expected"),
        (dict(epsilon=float("nan")), "epsilon=nan: expected"),
        (dict(epsilon=0.1, certificate=False), "certificate=False with epsilon"),
        (dict(per_row=4, floors=(1.0,)), "floors does not apply"),
    ):
        with pytest.raises(StrongTicketError, match=message):
            units(**asked)


def test_progress_counts_the_products():
    attention = nets.initialise(nets.MultiHeadAttention(3, 3, 2, 2, 2, bias=True), 0)
    block = nets.Block(attention, nets.initialise(nets.ReluNetwork([3, 4, 3]), 1))
    calls = []
    build_network(
        nets.Transformer([block]), per_row=4, certificate=False, progress=lambda *now: calls.append(now)
    )
    assert calls == [(number, 6) for number in range(1, 7)]
    calls.clear()
    build_network(attention, epsilon=0.1, radius=1.0, progress=lambda *now: calls.append(now))
    assert calls == [(number, None) for number in range(1, len(calls) + 1)]
    assert len(calls) > 4  # several widths were tried


def test_nothing_is_drawn_twice_and_saving_draws_nothing(monkeypatch):
    """Each tensor is drawn once for each width that is tried; its checksum is taken from what was certified."""
    drawn = []
    for module in (source, _ticket):
        monkeypatch.setattr(module, "draw", lambda *given: drawn.append(given[1]) or draw(*given))
    target = nets.initialise(nets.MultiHeadAttention(3, 2, 1, 2, 2), 0)
    ticket = build_network(target, width=12)
    data = ticket.to_bytes()
    assert sorted(drawn) == ["key", "output", "query", "value"]
    monkeypatch.undo()
    loaded = Ticket.from_bytes(data)
    loaded.verify()
    again = nets.certify(target, loaded.network(), ticket.certificate["radius"]).to_dict()
    assert ticket.certificate.items() >= again.items()
