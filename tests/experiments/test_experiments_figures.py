"""Figures 4 to 6 at the tests' scale: what a point computes, and what a run leaves behind."""

import json
import sys

import pytest
import torch
from quick_run import read_csv, reproduce, silent
from typer.testing import CliRunner

from strongticket import nets
from strongticket.builders import build_attention, build_transformer
from strongticket.cli import app
from strongticket.errors import StrongTicketError
from strongticket.experiments import driver
from strongticket.experiments.figures.figure4 import _measure as figure4
from strongticket.experiments.figures.figure6 import _measure as figure6
from strongticket.experiments.tasks import sources
from strongticket.experiments.tasks.angular import walks
from strongticket.nets import certify, output_error


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder in which all three figures were made."""
    return reproduce(tmp_path_factory.mktemp("results"), "figure4", "figure5", "figure6")


@pytest.mark.parametrize("name", ["figure4", "figure5", "figure6"])
def test_the_folder_is_complete_and_the_same_twice(out, name):
    folder = out / name
    names = {
        "errors.csv",
        "spreads.csv",
        "failures.csv",
        "summary.json",
        "page.json",
        "index.html",
        f"{name}.png",
        f"{name}.pdf",
    }
    assert {path.name for path in folder.iterdir()} == names
    before = {p: p.read_bytes() for p in folder.iterdir() if p.name not in ("summary.json", "index.html")}
    points = sorted((out / "points").iterdir())
    reproduce(out, name)
    assert {p: p.read_bytes() for p in before} == before
    assert sorted((out / "points").iterdir()) == points
    made_by = json.loads((folder / "summary.json").read_text())["made_by"]
    assert made_by["command"] == f"strongticket reproduce {name} --scale test"


def test_figure4_measures_the_tickets_it_names(out):
    record = sources.target_point(dict(seed=0, learning_rate=0.1, epochs=1, samples=256))
    target = sources.load_target(record)
    x = target.inputs(walks(0, "test", 64))
    rows = {(r["line"], int(r["n"]), int(r["source"])): r for r in read_csv(out / "figure4" / "errors.csv")}
    assert len(rows) == 3 * (3 * 3 + 2 + 3 * 4)
    for line, n, source in (("ours", 8, 1), ("paper", 6, 0), ("ours-xavier", 4, 2), ("paper-inverse", 8, 0)):
        row = rows[line, n, source]
        made = build_attention(
            target.network, width=n, seed=source, assignment=row["assignment"], init=row["init"]
        ).network(dtype=torch.float64)
        direct = output_error(target.network, made, x)
        assert float(row["error_max"]) == pytest.approx(float(direct.max()), rel=1e-9)
        assert float(row["error_mean"]) == pytest.approx(float(direct.mean()), rel=1e-9)
        if line == "ours":
            assert float(direct.max()) <= float(row["bound"]) <= float(row["paper_bound"])
    for (line, n, source), row in rows.items():
        if line == "paper-highs":
            exact = float(rows["paper", n, source]["error_max"])
            assert float(row["error_max"]) == pytest.approx(exact, rel=1e-6)


def test_an_integer_program_that_gives_up_leaves_a_gap(monkeypatch):
    record = sources.target_point(dict(seed=0, learning_rate=0.1, epochs=1, samples=64))
    real = figure4.build_attention

    def gives_up(*arguments, seed, **options):
        if seed == 1:
            raise StrongTicketError("no solution")
        return real(*arguments, seed=seed, **options)

    monkeypatch.setattr(figure4, "build_attention", gives_up)
    line = dict(assignment="paper", init="theory", solver="highs")
    settings = dict(line=line, n=4, seed=0, first=0, count=3, samples=8, certify=False)
    found = figure4.compute(settings, record)
    assert [value is None for value in found["error_max"]] == [False, True, False]
    with pytest.raises(StrongTicketError, match="no solution"):
        figure4.compute(settings | {"line": line | {"solver": "exact"}}, record)


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
            made = build_transformer(target, width=12, seed=0, certificate=False).network(dtype=torch.float64)
            row = rows[line, blocks, 12, 0]
            error = float(output_error(target, made, x).max())
            assert float(row["error_max"]) == pytest.approx(error, rel=1e-6)
            if normalised:
                bound = certify(target, made, figure6.RADIUS).bound
                assert error <= float(row["bound"]) <= bound
                assert float(row["bound"]) == pytest.approx(bound, rel=1e-9)


def test_figure5_agrees_with_direct_attention(out):
    record = sources.target_point(dict(seed=0, learning_rate=0.1, epochs=1, samples=256))
    target = sources.load_target(record)
    rows = read_csv(out / "figure5" / "errors.csv")
    assert len(rows) == 2 * 2 * 2 * 3
    test = walks(0, "test", 16)
    for row in rows[::5]:
        made = build_attention(
            target.network, width=int(row["n"]), seed=int(row["source"]), assignment=row["assignment"]
        ).network(dtype=torch.float64)
        direct = output_error(target.network, made, target.inputs(test, int(row["length"])))
        assert float(row["error_max"]) == pytest.approx(float(direct.max()), rel=1e-4)
        assert float(row["error_max"]) <= float(row["bound"])


def test_the_target_survives_its_record():
    settings = dict(seed=1, learning_rate=0.5, epochs=1, samples=64)
    record = sources.target_point(settings)
    again = sources.load_target(json.loads(json.dumps(record)))
    direct = sources.train_target(**settings)
    for name, tensor in direct.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name])
    assert torch.equal(direct.token, again.token)
    assert sources.digest(record) != sources.digest(sources.target_point(settings | {"seed": 2}))


def test_a_stack_is_its_networks():
    networks = [
        nets.initialise(nets.MultiHeadAttention(2, 1, 1, 8, 8), seed).requires_grad_(False)
        for seed in range(3)
    ]
    x = torch.randn(5, 4, 2, generator=torch.Generator().manual_seed(0)).double()
    stacked = sources.Stack(networks)(x)
    for network, found in zip(networks, stacked, strict=True):
        torch.testing.assert_close(network.double()(x), found)


def test_options():
    with pytest.raises(StrongTicketError, match=r"unknown scale 'huge'. Use one of laptop, paper"):
        driver.Options("x", "huge")
    for wrong in (
        dict(init="none"),
        dict(init="test"),
        dict(mip="scip"),
        dict(mip="test"),
        dict(learning_rate=0.0),
        dict(seed=-1),
    ):
        with pytest.raises(StrongTicketError, match=next(iter(wrong))):
            driver.Options("x", **wrong)
    with pytest.raises(StrongTicketError, match="'figure9' is not a figure or study"):
        driver.reproduce("figure9", driver.Options("x"), silent)
    command = driver.Options("x", learning_rate=0.5, init="xavier").command("figure5")
    assert command == "strongticket reproduce figure5 --learning-rate 0.5 --init xavier"


@pytest.mark.parametrize("package", ["transformers", "accelerate", "tokenizers"])
@pytest.mark.parametrize("figure", ["figure7", "figure8"])
def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch, figure, package):
    monkeypatch.setitem(sys.modules, package, None)
    done = CliRunner().invoke(app, ["reproduce", figure, "--scale", "test", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert f"{package} is not installed" in done.stderr
    assert 'pip install "strongticket[huggingface]"' in done.stderr
    assert not list(tmp_path.iterdir())


def test_options_that_a_figure_does_not_read_are_refused(tmp_path):
    for figure, option in (("figure7", ["--mip", "cpsat"]), ("figure4", ["--init", "xavier"])):
        done = CliRunner().invoke(app, ["reproduce", figure, "--out", str(tmp_path), *option])
        assert done.exit_code == 1
        assert f"{option[0]} does not apply to {figure}" in done.stderr
    assert not list(tmp_path.iterdir())
