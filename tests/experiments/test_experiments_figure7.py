"""Figures 7 and 8 at the tests' scale: what runs, what is reported, and that equal runs are computed once."""

from dataclasses import replace

import pytest
from tests.experiments.quick_run import read_csv, reproduce

from strongticket.experiments.figures.figure7 import _measure as figure7
from strongticket.experiments.figures.figure8 import _measure as figure8
from strongticket.experiments.figures.figure8._page import verdict
from strongticket.experiments.tasks.language import TINY, head_size, paper_scale, point
from strongticket.searching import preset, search


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder in which both figures were made."""
    return reproduce(tmp_path_factory.mktemp("results"), "figure8", "figure7")


@pytest.mark.parametrize(
    ("name", "table", "pictures"),
    [("figure7", "spreads", ["figure7"]), ("figure8", "valleys", ["figure8", "figure8-logits"])],
)
def test_the_folder_is_complete_and_the_same_twice(out, name, table, pictures):
    folder = out / name
    names = {"losses.csv", f"{table}.csv", "summary.json", "page.json", "index.html"}
    assert {path.name for path in folder.iterdir()} == names | {
        f"{p}.{kind}" for p in pictures for kind in ("png", "pdf")
    }
    before = {p: p.read_bytes() for p in folder.iterdir() if p.name not in ("summary.json", "index.html")}
    points = {p: p.stat().st_mtime_ns for p in (out / "points").iterdir()}
    reproduce(out, name)
    assert {p: p.read_bytes() for p in before} == before
    assert {p: p.stat().st_mtime_ns for p in (out / "points").iterdir()} == points


def test_runs_shared_by_both_figures_are_computed_once(out):
    rows7, rows8 = (read_csv(out / name / "losses.csv") for name in ("figure7", "figure8"))
    shared = 2  # the larger network of figure 7 with seed 0: at scale 1, and dense
    assert len(list((out / "points").glob("*.json"))) == len(rows7) + len(rows8) - shared
    dense7 = {r["loss"] for r in rows7 if (r["size"], r["method"]) == ("d = 16", "dense training")}
    assert dense7 == {r["loss"] for r in rows8 if (r["method"], r["seed"]) == ("dense", "0")}


def test_a_row_is_the_search_it_names(out, tmp_path):
    row = next(r for r in read_csv(out / "figure8" / "losses.csv") if r["valley"] == "σ = 0.1")
    config = replace(TINY, steps=3, std=0.1, qk_scale=row["scale"], cache=str(tmp_path), cpu=True)
    found = search(config)
    assert float(row["loss"]) == pytest.approx(found.loss, rel=1e-5)
    assert float(row["logit_std"]) == pytest.approx(found.logit_std, rel=1e-5)
    assert int(row["nonzero"]) == found.kept
    dense = next(r for r in read_csv(out / "figure7" / "losses.csv") if r["method"] == "dense training")
    assert dense["nonzero"] == dense["parameters"]


def test_the_laptop_scale_asks_what_the_figures_ask():
    sizes = figure7.SCALES["laptop"]
    assert sizes.seeds == 3
    assert {head_size(config) for config in sizes.sizes.values()} == {64}
    assert preset("paper-laptop") in sizes.sizes.values()
    series = figure8.SCALES["laptop"]
    main = series[0]
    assert (main.config, main.seeds) == (preset("paper-laptop"), 3)
    assert (main.scales[0], main.scales[-1]) == (0.5, 8)
    scaled = figure7.configure(main.config, "with scaling", 0)
    assert float(scaled.qk_scale) == pytest.approx(paper_scale(main.config), rel=1e-5)
    assert scaled.qk_scale in {figure8.scale_text(scale) for scale in main.scales}
    heads = [each.config for each in series if "heads" in each.families]
    assert [head_size(config) for config in heads] == [16, 32, 64, 128]
    assert {config.dim for config in heads} == {128}
    assert len({each.config.std for each in series if "std" in each.families}) == 4


def test_the_papers_scale_is_the_papers_recipe():
    assert list(figure7.SCALES["paper"].sizes) == ["gpt2-mini", "gpt2", "gpt2-medium"]
    for config in figure7.SCALES["paper"].sizes.values():
        assert (config.steps, config.context, config.data) == (50 * 227, 1024, "wikitext-103")
    assert [each.name for each in figure8.SCALES["paper"][:3]] == ["gpt2-mini", "gpt2", "gpt2-medium"]


def test_a_point_is_named_by_what_decides_its_result():
    here = replace(TINY, cache="a", cpu=True, resume=True)
    assert point(here) == point(TINY)
    assert point(replace(TINY, seed=1)) != point(TINY)
    assert "pydoc_data" in point(TINY)["text"]


def rules(paper, logits, explained):
    return {
        "paper": {"factor": paper},
        "logits": {"factor": logits, "explained": explained},
        "constant": {"factor": 1.3},
        "best_logit_std": {"lowest": 0.6, "highest": 0.8},
    }


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (rules(1.5, 1.1, 0.9), "0.7 holds:"),
        (rules(1.5, 1.4, -0.2), "0.7 does not hold as it stands, though it is the better rule:"),
        (rules(1.1, 1.4, 0.6), "0.7 does not hold:"),
    ],
)
def test_the_verdict_is_plain(found, said):
    assert said in verdict(found)
