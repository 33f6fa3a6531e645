"""Finding the narrowest source: doubling, bisection, and giving up with words."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongticket import nets
from strongticket.builders import BuildOptions, build_network, products_of
from strongticket.builders.width import FIRST, LAST, build_sized, narrowest
from strongticket.errors import StrongTicketError


@given(st.integers(FIRST, LAST), st.floats(0.05, 2))
def test_narrowest_of_a_falling_error(needed, rate):
    """The error falls with the width: the first width that reaches it is found in few builds."""
    tried = []

    def build(size):
        tried.append(size)
        return SimpleNamespace(size=size, bound=2.0 ** (-rate * size))

    found = narrowest(build, lambda built: built.bound, 2.0 ** (-rate * (needed - 0.5)))
    assert found.size == needed
    assert len(tried) <= 10


@given(st.lists(st.floats(0, 1), min_size=LAST + 1, max_size=LAST + 1))
def test_any_error_at_all(bounds):
    """Other widths are other sources, so the error may rise: what is returned still reaches epsilon."""

    def build(size):
        return SimpleNamespace(size=size, bound=bounds[size])

    if min(bounds[4], bounds[8], bounds[16], bounds[32], bounds[40]) > 0.5:
        with pytest.raises(StrongTicketError, match="was not reached: with 40 units per row"):
            narrowest(build, lambda built: built.bound, 0.5)
    else:
        assert bounds[narrowest(build, lambda built: built.bound, 0.5).size] <= 0.5


def test_requests():
    def ask(**given):
        options = BuildOptions(**given)
        return build_sized(
            lambda width: width, lambda n: 10 * n, lambda built: 1 / built, options, options.width
        )

    assert ask(width=7) == 7
    assert ask(per_row=7) == 70
    assert ask(epsilon=0.02) == 50
    with pytest.raises(StrongTicketError, match="exactly one of"):
        ask()
    with pytest.raises(StrongTicketError, match="per_row and epsilon given"):
        ask(per_row=7, epsilon=0.1)
    with pytest.raises(StrongTicketError, match="per_row=0"):
        ask(per_row=0)
    with pytest.raises(StrongTicketError, match="epsilon=-1: expected"):
        ask(epsilon=-1)
    with pytest.raises(StrongTicketError, match="epsilon=nan: expected"):
        ask(epsilon=float("nan"))


def test_progress_names_every_product():
    attention = nets.initialise(nets.MultiHeadAttention(3, 3, 2, 2, 2, bias=True), 0)
    block = nets.Block(attention, nets.initialise(nets.ReluNetwork([3, 4, 3]), 1))
    names: list[str] = []
    build_network(nets.Transformer([block]), per_row=4, certificate=False, progress=names.append)
    assert len(names) == len(set(names)) == products_of(nets.Transformer([block])) == 6


def test_options_are_shared_changed_by_keyword_and_checked():
    target = nets.initialise(nets.MultiHeadAttention(3, 2, 1, 2, 2), 0)
    options = BuildOptions(per_row=4, seed=5, certificate=False)
    ticket = build_network(target, options)
    assert ticket == build_network(target, per_row=4, seed=5, certificate=False)
    assert build_network(target, options, seed=6).seed == 6
    with pytest.raises(StrongTicketError, match="unknown build option 'sede': expected some of"):
        build_network(target, options, sede=1)
    with pytest.raises(StrongTicketError, match="floors is not an option of this kind of network"):
        build_network(target, BuildOptions(per_row=4, floors=(1.0,)))
    with pytest.raises(StrongTicketError, match="certificate=False with epsilon"):
        BuildOptions(epsilon=0.1, certificate=False)
