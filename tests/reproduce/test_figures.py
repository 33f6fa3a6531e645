"""Figures 4 to 6 with settings of seconds: what a point computes, and what a run leaves behind."""

import json

import pytest
import torch
from tests.reproduce.runs import make_again, read_csv, reproduce

from strongticket.builders import build_network
from strongticket.nets import certify, output_error
from strongticket.reproduce import figure5, figure6, sources
from strongticket.reproduce.angular import walks

FIGURES = ("figure4", "figure5", "figure6")
TRAINING = dict(seed=0, epochs=1, samples=256)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder in which all three figures were made."""
    folder = tmp_path_factory.mktemp("results")
    for name in FIGURES:
        reproduce(folder, name)
    return folder


@pytest.mark.parametrize("name", FIGURES)
def test_the_folder_is_complete_and_the_same_twice(out, name):
    folder = out / name
    names = {"errors.csv", "spreads.csv", "failures.csv", "summary.json", "README.md"}
    assert names | {f"{name}.png", f"{name}.pdf"} <= {path.name for path in folder.iterdir()}
    make_again(out, name)


def test_figure4_measures_the_tickets_it_names(out):
    target = sources.load_target(sources.target_point(TRAINING))
    x = target.inputs(walks(0, "test", 64))
    rows = {(r["line"], int(r["n"]), int(r["source"])): r for r in read_csv(out / "figure4" / "errors.csv")}
    assert len(rows) == 3 * (3 * 3 + 3 * 4)
    for line, n, source in (("ours", 8, 1), ("paper", 6, 0), ("ours-xavier", 4, 2), ("paper-inverse", 8, 0)):
        row = rows[line, n, source]
        made = build_network(
            target.network, width=n, seed=source, assignment=row["assignment"], init=row["init"]
        ).network(dtype=torch.float64)
        direct = output_error(target.network, made, x)
        assert float(row["error_max"]) == pytest.approx(float(direct.max()), rel=1e-9)
        assert float(row["error_mean"]) == pytest.approx(float(direct.mean()), rel=1e-9)
        if line == "ours":
            assert float(direct.max()) <= float(row["bound"]) <= float(row["paper_bound"])


def test_figure4_says_both_decays_fitted_alike(out):
    summary = json.loads((out / "figure4" / "summary.json").read_text())
    for line in ("ours", "paper"):
        (fit,) = (
            row
            for row in summary["numbers"]["fits"]
            if (row["line"], row["error"], row["fit"]) == (line, "error_max", "least_squares")
        )
        assert f"{fit['gamma']:.2g}·e^(−{fit['delta']:.3g} n)" in summary["sentence"]


def test_figure6_first_blocks_are_the_smaller_transformer(out):
    rows = {
        (r["line"], int(r["blocks"]), int(r["n"]), int(r["source"])): r
        for r in read_csv(out / "figure6" / "errors.csv")
    }
    points = walks(0, "test", 16).points(4)
    x = torch.cat([torch.zeros(16, 1, 2), points], 1)
    for line, normalised in (("ours", True), ("ours-as-printed", False)):
        for blocks in (1, 2, 4):
            target = figure6.make_target(0, normalised=normalised, blocks=blocks)
            made = build_network(target, width=12, seed=0, certificate=False).network(dtype=torch.float64)
            row = rows[line, blocks, 12, 0]
            error = float(output_error(target, made, x).max())
            assert float(row["error_max"]) == pytest.approx(error, rel=1e-6)
            if normalised:
                bound = certify(target, made, figure6.RADIUS).bound
                assert error <= float(row["bound"]) <= bound
                assert float(row["bound"]) == pytest.approx(bound, rel=1e-9)


def test_figure5_agrees_with_direct_attention(out):
    target = sources.load_target(sources.target_point(TRAINING))
    rows = read_csv(out / "figure5" / "errors.csv")
    assert len(rows) == 2 * 2 * 2 * 3
    test = walks(0, "test", 16)
    for row in rows[::5]:
        made = build_network(
            target.network, width=int(row["n"]), seed=int(row["source"]), assignment=row["assignment"]
        ).network(dtype=torch.float64)
        direct = output_error(target.network, made, target.inputs(test, int(row["length"])))
        assert float(row["error_max"]) == pytest.approx(float(direct.max()), rel=1e-4)
        assert float(row["error_max"]) <= float(row["bound"])


@pytest.mark.parametrize(("longest", "word"), [(1.0, "No"), (3.0, "Yes")])
def test_figure5_says_whether_the_error_grows(longest, word):
    settings = figure5.Figure5((8,), (4, 16), sources=5)
    spread = [
        dict(assignment=assignment, n=8, length=length, error=error, median=longest if length == 16 else 1.0)
        for assignment in figure5.NAMES
        for error in ("error_max", "error_mean", "bound")
        for length in (4, 16)
    ]
    failing = [dict(assignment=assignment, n=8, share=0.0) for assignment in figure5.NAMES]
    found = figure5.answer({"spreads": spread, "failures": failing}, settings)
    assert found.sentence.startswith(f"{word}: from 4 to 16 points")
    assert found.numbers["largest_over_shortest"]["balanced"] == {"8": longest}


def test_the_target_survives_its_record():
    settings = dict(seed=1, learning_rate=0.5, epochs=1, samples=64)
    record = sources.target_point(settings)
    again = sources.load_target(json.loads(json.dumps(record)))
    direct = sources.train_target(**settings)
    for name, tensor in direct.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name])
    assert torch.equal(direct.token, again.token)
