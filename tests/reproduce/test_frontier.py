"""The frontier: what is searched and tuned, the bytes at equal loss, and who is said to win."""

import math

import pytest
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.reproduce.frontier import (
    PAPER,
    STUDY,
    TICKET,
    Frontier,
    answer,
    mean_sizes,
    ratios,
    winners,
)
from strongticket.reproduce.rows import select
from strongticket.searching import preset


def made_up(**curves):
    """The tables of curves, with _ for - in their names. curves: method -> (bytes, loss) of each width."""
    losses = [
        dict(setting="600 steps", method=method.replace("_", "-"), dim=int(size), rate=1e-3, file_bytes=size)
        | dict(seed=0, loss=loss, cpu_seconds=1)
        for method, points in curves.items()
        for size, loss in points
    ]
    sizes = mean_sizes(losses)
    return dict(losses=losses, spreads=sizes, tuning=[], ratios=ratios(sizes))


def test_every_width_is_searched_at_the_methods_best_rate(tmp_path):
    settings = TINY["frontier"]
    reproduce(tmp_path, "frontier")
    rows, tuning = (read_csv(tmp_path / "frontier" / f"{name}.csv") for name in ("losses", "tuning"))
    for title, chart in settings.charts.items():
        for method in chart:
            tried = select(tuning, setting=title, method=method.name)
            assert {row["dim"] for row in tried} == {str(method.tuned_at)}
            best = min(tried, key=lambda row: float(row["loss"]))["rate"]
            found = select(rows, setting=title, method=method.name)
            assert [int(row["dim"]) for row in found] == [
                width for width, seeds in method.seeds.items() for _ in range(seeds)
            ]
            assert {row["rate"] for row in found} == {best}
            untried = set(method.higher) - {float(row["rate"]) for row in tried}
            # A higher rate was not tried only if a lower one was better.
            assert not untried or float(best) < max(float(row["rate"]) for row in tried)
    assert {row["accuracy"] == "" for row in select(rows, setting="4 steps")} == {True}
    assert all(float(row["accuracy"]) >= 0 for row in select(rows, setting="images"))


def test_bytes_at_equal_loss_between_two_widths():
    tables = made_up(
        ticket=[(40, 1.5), (90, 1.2)],
        blended_int4=[(20, 2.0), (80, 1.0)],
        blended_ternary=[(100, 1.6), (200, 1.4)],
        **{PAPER: [(10, 1.0), (20, 0.9)]},  # not quantised, so it is no rival
    )
    first, second = tables["ratios"]
    assert first["quantised_bytes"] == pytest.approx(40)  # halfway in the loss, halfway in log bytes
    assert first["ratio"] == pytest.approx(1)
    assert second["ratio"] == pytest.approx(90 / (20 * math.exp(0.8 * math.log(4))))
    assert (first["best"], first["beyond"]) == ("blended-int4", False)
    assert winners(tables["spreads"], "600 steps") == [(40, "ticket"), (90, "ticket")]


@pytest.mark.parametrize(("loss", "size"), [(0.8, 80 * 4**0.2), (2.2, 20 / 4**0.2)])
def test_a_little_beyond_the_measured_sizes_is_marked(loss, size):
    (row,) = made_up(ticket=[(40, loss)], blended_int4=[(20, 2.0), (80, 1.0)])["ratios"]
    assert row["quantised_bytes"] == pytest.approx(size)
    assert row["beyond"]
    assert row["best"] == "blended-int4"


def test_far_beyond_the_measured_sizes_there_is_a_bound_or_nothing():
    tables = made_up(ticket=[(40, 0.5), (41, 4.0)], blended_int4=[(20, 2.0), (80, 1.0)])
    better, worse = tables["ratios"]
    assert (better["best"], better["ratio"]) == (None, 0.5)  # better than all: a bound
    assert worse["ratio"] is None


@pytest.mark.parametrize(
    ("rival", "winner"),
    [
        ([(42_000, 1.6), (80_000, 1.0)], "ticket"),
        ([(42_000, 1.4), (80_000, 1.0)], "blended-int4"),  # 5 % count as equal
        ([(50_000, 1.4), (80_000, 1.0)], "ticket"),  # 25 % do not
    ],
)
def test_who_wins_is_said(rival, winner):
    found = answer(made_up(ticket=[(40_000, 1.5)], blended_int4=rival), Frontier({"600 steps": ()}))
    assert found.sentence == f"600 steps, lowest loss: {winner} at 40 kB."
    assert [row["file_bytes"] for row in found.table] == [40_000, rival[0][0], 80_000]
    assert found.numbers["cpu_seconds"] == 3


def test_rivals_are_the_same_network_on_the_same_data():
    charts = STUDY.settings["laptop"].charts
    for chart in charts.values():
        ticket, *others = chart
        assert ticket.name == TICKET
        for rival in (other for other in others if other.name != PAPER):
            expected = ticket.search(96, 1e-3, 2).settings() | {"method": rival.name}
            assert rival.search(96, 1e-3, 2).settings() == expected
    paper = charts["600 steps"][1]
    assert paper.search(128, 3e-3, 0) == preset("paper-laptop")
    assert paper.search(256, 6e-3, 0).training.lr_end == 6e-4
    assert paper.search(256, 6e-3, 0).model.heads == 4
