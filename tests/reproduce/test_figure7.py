"""Figures 7 and 8 with settings of seconds: what runs, what is said, and that equal searches are run once."""

import math

import pytest
from tests.reproduce.runs import make_again, read_csv, reproduce
from tests.reproduce.tiny import SEARCH

from strongticket.reproduce import figure7, figure8
from strongticket.reproduce.searches import head_size, paper_scale, scaled
from strongticket.searching import search

TICKETS = ("without scaling", "with scaling")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder in which both figures were made."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("figure8", "figure7"):
        reproduce(folder, name)
    return folder


@pytest.mark.parametrize(("name", "table"), [("figure7", "spreads"), ("figure8", "valleys")])
def test_the_folder_is_complete_and_the_same_twice(out, name, table):
    folder = out / name
    names = {"losses.csv", f"{table}.csv", "summary.json", "README.md", f"{name}.png", f"{name}.pdf"}
    assert {path.name for path in folder.iterdir()} == names
    make_again(out, name)


def test_runs_shared_by_both_figures_are_computed_once(out):
    rows7, rows8 = (read_csv(out / name / "losses.csv") for name in ("figure7", "figure8"))
    shared = 2  # the larger network of figure 7 with seed 0: at scale 1, and dense
    assert len(list((out / "points").glob("*.json"))) == len(rows7) + len(rows8) - shared
    dense7 = {r["loss"] for r in rows7 if (r["size"], r["method"]) == ("d = 16", "dense training")}
    assert dense7 == {r["loss"] for r in rows8 if (r["method"], r["seed"]) == ("dense", "0")}


def test_a_row_is_the_search_it_names(out, tmp_path):
    row = next(r for r in read_csv(out / "figure8" / "losses.csv") if r["valley"] == "σ = 0.1")
    config = SEARCH.changed(steps=3, std=0.1, qk_scale=float(row["scale"]), cache=str(tmp_path), cpu=True)
    found = search(config)
    assert float(row["loss"]) == pytest.approx(found.loss, rel=1e-5)
    assert float(row["logit_std"]) == pytest.approx(found.logit_std, rel=1e-5)
    assert int(row["nonzero"]) == found.kept


def test_scaling_is_by_the_fourth_root_of_the_head_size(out):
    by_method = {r["method"]: r for r in read_csv(out / "figure7" / "losses.csv") if r["size"] == "d = 16"}
    stds = [float(by_method[method]["logit_std"]) for method in TICKETS]
    assert stds[1] / stds[0] == pytest.approx(
        math.sqrt(8), rel=1e-3
    )  # n_K = 8; both factors of a logit are scaled
    dense = by_method["dense training"]
    assert dense["nonzero"] == dense["parameters"]
    assert all(int(by_method[m]["nonzero"]) < 0.31 * int(dense["nonzero"]) for m in TICKETS)


def test_figure7_asks_for_the_networks_and_scales_of_figure8():
    sizes = figure7.STUDY.settings["laptop"].sizes
    assert {head_size(config) for config in sizes.values()} == {64}
    main, *others = figure8.STUDY.settings["laptop"].series.values()
    assert main.config in sizes.values()
    scaled_by_rule = scaled(main.config, paper_scale(main.config), 0)
    assert scaled_by_rule in [scaled(main.config, scale, 0) for scale in main.scales]
    assert [head_size(one.config) for one in others] == [16, 32, 64, 128, 64, 64, 64]
    assert [one.config.source.std for one in others] == [0.05] * 4 + [0.035, 0.07, 0.1]


def tables7(scaled):
    """Three sizes whose losses without scaling are 3 and with dense training 1."""
    losses = {"without scaling": (3.0, 3.0, 3.0), "with scaling": scaled, "dense training": (1.0, 1.0, 1.0)}
    spreads = [
        {"size": f"d = {d}", "method": method, "parameters": 9, "nonzero": 3, "mean": loss, "std": 0.1}
        for method, found in losses.items()
        for d, loss in zip((1, 2, 3), found, strict=True)
    ]
    return {"losses": [{"cpu_seconds": 1.5}], "spreads": spreads}


@pytest.mark.parametrize(
    ("scaled", "said"),
    [
        (
            (2.8, 2.5, 2.0),
            "Yes, at every size: scaling lowers the loss by 0.200 (d = 1), 0.500 (d = 2), 1.000 (d = 3), 10% to 50% of",
        ),
        ((2.8, 3.1, 3.0), "Not at d = 2, d = 3: scaling lowers the loss by 0.200 (d = 1), -0.100 (d = 2)"),
    ],
)
def test_figure7_says_where_scaling_helps(scaled, said):
    found = figure7.answer(tables7(scaled), figure7.STUDY.settings["laptop"])
    assert said in found.sentence
    assert found.numbers["gains"][0]["in_stds"] == pytest.approx(2)
    assert [line["size"] for line in found.table[:3]] == ["d = 1", "d = 2", "d = 3"]


def tables8(best):
    """Valleys whose lowest point is at best(n_K, σ); the logits' deviation is 0.7 at 0.14 / σ, whatever the head."""
    rows = []
    for name, one in figure8.STUDY.settings["laptop"].series.items():
        lowest = best(head_size(one.config), one.config.source.std)
        for scale in one.scales:
            loss = 1.9 + 0.1 * math.log(scale / lowest) ** 2
            logit_std = 0.7 * (scale * one.config.source.std / 0.14) ** 2
            rows.append({"valley": name, "scale": scale, "loss": loss, "logit_std": logit_std})
        if one.main:
            rows.append({"valley": name, "scale": None, "loss": 1.5, "logit_std": None})
    return {"losses": [row | {"cpu_seconds": 1.0} for row in rows]}


@pytest.mark.parametrize(
    ("best", "nearest"),
    [
        (lambda size, std: size**0.25, "n_K^¼"),
        (lambda size, std: 0.14 / std, "logits' std 0.7"),
        (lambda size, std: 2.5, "one constant"),
    ],
)
def test_figure8_says_which_rule_comes_nearest(best, nearest):
    found = figure8.answer(tables8(best), figure8.STUDY.settings["laptop"])
    assert f"the rule that comes nearest is {nearest}; typical" in found.sentence
    assert f"for laptop it is {best(64, 0.05):.2f}, where n_K^¼ is 2.83" in found.sentence
    assert found.numbers["rules"][nearest]["factor"] == pytest.approx(1, abs=0.01)
    assert (
        found.numbers["rules"][nearest]["cost"] < 0.004
    )  # between measured scales the loss is on straight lines
    assert found.numbers["dense"] == {"laptop": {"mean": 1.5, "std": 0.0}}
