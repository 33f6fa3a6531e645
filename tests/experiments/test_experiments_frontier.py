"""The frontier at the tests' scale: what is searched, what is tuned, and the bytes at equal loss."""

import math

import pytest
from tests.experiments.quick_run import read_csv, reproduce

from strongticket.experiments.studies.frontier import _measure as frontier
from strongticket.experiments.studies.frontier._page import who_wins
from strongticket.experiments.studies.frontier._scale import METHODS, PAPER, SCALES, Setting
from strongticket.searching import preset


def row(method, size, mean):
    return dict(
        setting="600 steps",
        method=method,
        dim=int(size),
        seed=0,
        rate=1e-3,
        file_bytes=size,
        loss=mean,
        accuracy=None,
        cpu_seconds=1,
    )


def result(curves):
    rows = [row(method, size, mean) for method, points in curves.items() for size, mean in points]
    setting = Setting(preset("laptop"), {method: {} for method in curves}, ())
    return frontier.Frontier({"600 steps": setting}, [], rows)


def test_the_folder_is_complete(tmp_path):
    folder = reproduce(tmp_path, "frontier") / "frontier"
    tables = {"losses.csv", "spreads.csv", "tuning.csv", "ratios.csv"}
    assert {path.name for path in folder.iterdir()} == tables | {
        "summary.json", "page.json", "index.html", "frontier.png", "frontier.pdf",
    }  # fmt: skip
    rows = read_csv(folder / "losses.csv")
    assert len(rows) == 2 * len(METHODS) + 5
    assert all(float(row["file_bytes"]) > 500 for row in rows)
    tuning = [row | {"loss": float(row["loss"])} for row in read_csv(folder / "tuning.csv")]
    best = frontier.best_rates(tuning)
    assert all(row["rate"] == best[row["setting"], row["method"]] for row in rows)
    for setting, method in best:
        tried = {float(each["rate"]) for each in frontier.select(tuning, setting=setting, method=method)}
        higher = set(SCALES["test"][setting].higher) - tried  # not tried only if a lower rate was better
        assert not higher or float(best[setting, method]) < max(tried)


def test_bytes_at_equal_loss():
    found = result(
        {
            "ticket": [(40, 1.5), (90, 1.2)],
            "blended-int4": [(20, 2.0), (80, 1.0)],
            "blended-ternary": [(100, 1.6), (200, 1.4)],
        }
    )
    first, second = found.ratios
    assert first["quantised_bytes"] == pytest.approx(40)  # halfway in the loss, halfway in log bytes
    assert first["ratio"] == pytest.approx(1)
    assert second["ratio"] == pytest.approx(90 / (20 * math.exp(0.8 * math.log(4))))
    assert (first["best"], first["beyond"]) == ("blended-int4", False)
    assert found.winners("600 steps") == [(40, "ticket"), (90, "ticket")]
    assert "ticket at 0 kB" in who_wins(found)
    near = result({"ticket": [(40, 1.5)], "blended-int4": [(42, 1.4), (80, 1.0)]})
    assert near.winners("600 steps") == [(40, "blended-int4")]  # 5 % more bytes count as equal
    outside = result({"ticket": [(40, 0.5)], "blended-int4": [(20, 2.0), (80, 1.0)]})
    assert (outside.ratios[0]["best"], outside.ratios[0]["ratio"]) == (None, 0.5)  # better than all: a bound
    worse = result({"ticket": [(40, 4.0)], "blended-int4": [(20, 2.0), (80, 1.0)]})
    assert worse.ratios[0]["ratio"] is None
    for loss, size in ((0.8, 80 * 4**0.2), (2.2, 20 / 4**0.2)):
        near = result({"ticket": [(40, loss)], "blended-int4": [(20, 2.0), (80, 1.0)]}).ratios[0]
        assert near["quantised_bytes"] == pytest.approx(size)
        assert near["beyond"]


def test_rivals_are_the_same_network_on_the_same_data():
    for name in ("600 steps", "2,400 steps", "images"):
        setting = SCALES["laptop"][name]
        ticket, rival = (setting.configure(method, 96, 1e-3, 2) for method in ("ticket", "blended-ternary"))
        assert ticket.settings() | {"method": "blended-ternary"} == rival.settings()
    paper = SCALES["laptop"]["600 steps"].configure(PAPER, 128, 3e-3, 0)
    assert paper == preset("paper-laptop")
