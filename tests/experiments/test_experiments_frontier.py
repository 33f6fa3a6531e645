"""The frontier at the tests' scale: what is searched, what is tuned, and the bytes at equal loss."""

import math

import pytest
from quick_run import read_csv, reproduce

from strongticket.experiments.studies.frontier import _measure as frontier
from strongticket.experiments.studies.frontier._page import who_wins
from strongticket.search import preset


def spread(steps, method, size, mean):
    return dict(
        steps=steps,
        method=method,
        dim=int(size),
        seed=0,
        rate=1e-3,
        file_bytes=size,
        loss=mean,
        cpu_seconds=1,
    )


def result(curves):
    rows = [spread(600, method, size, mean) for method, points in curves.items() for size, mean in points]
    scale = frontier.Scale(preset("laptop"), preset("paper-laptop"), {600: {m: () for m in curves}}, {})
    return frontier.Frontier(scale, [], rows)


def test_the_folder_is_complete(tmp_path):
    folder = reproduce(tmp_path, "frontier") / "frontier"
    tables = {"losses.csv", "spreads.csv", "tuning.csv", "ratios.csv"}
    assert {path.name for path in folder.iterdir()} == tables | {
        "summary.json", "page.json", "index.html", "frontier.png", "frontier.pdf",
    }  # fmt: skip
    rows = read_csv(folder / "losses.csv")
    assert len(rows) == 2 * len(frontier.METHODS) + 4
    assert all(float(row["file_bytes"]) > 500 for row in rows)
    best = frontier.best_rates(
        [row | {"loss": float(row["loss"])} for row in read_csv(folder / "tuning.csv")]
    )
    assert all(row["rate"] == best[row["steps"], row["method"]] for row in rows)


def test_bytes_at_equal_loss():
    found = result(
        {
            "ticket": [(40, 1.5), (90, 1.2)],
            "int4": [(20, 2.0), (80, 1.0)],
            "ternary": [(100, 1.6), (200, 1.4)],
        }
    )
    first, second = found.ratios
    assert first["quantised_bytes"] == pytest.approx(40)  # halfway in the loss, halfway in log bytes
    assert first["ratio"] == pytest.approx(1)
    assert second["ratio"] == pytest.approx(90 / (20 * math.exp(0.8 * math.log(4))))
    assert found.winners(600) == [(40, "ticket"), (90, "ticket")]
    assert "at 0 kB ticket" in who_wins(found)
    outside = result({"ticket": [(40, 0.5)], "int4": [(20, 2.0), (80, 1.0)]})
    assert outside.ratios[0]["ratio"] is None


def test_rivals_are_the_same_network_on_the_same_data():
    scale = frontier.SCALES["laptop"]
    ticket, rival = (frontier.configure(scale, 600, method, 96, 1e-3, 2) for method in ("ticket", "ternary"))
    assert ticket.settings() | {"method": "ternary"} == rival.settings()
    paper = frontier.configure(scale, 600, frontier.PAPER, 128, 3e-3, 0)
    assert paper == preset("paper-laptop")
