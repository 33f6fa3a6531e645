"""The demo as a user runs it, its numbers, its page in a browser, and every example of the help."""

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from strongticket import cli, nets
from strongticket.ticket import Ticket

RUN = CliRunner()


@pytest.fixture(scope="module")
def result(home):
    return json.loads((home / "demo.json").read_text())


def test_the_numbers_hang_together(result):
    assert result["largest_test_error"]["4"] <= result["certified_error"] <= 1e-6
    assert result["largest_test_error"]["256"] <= result["certified_error"]
    assert result["attacked_error"] <= result["certified_error"] <= result["paper_bound"]
    assert result["ticket_test_loss"] == pytest.approx(result["target_test_loss"], abs=1e-5)
    assert result["target_test_loss"] < np.pi**2 / 3
    assert 0 < result["kept"] < result["weights"]
    for fit in result["fits"].values():
        assert 0.27 <= fit["delta"] <= 0.38  # ln2/2 = 0.35 as n grows


def test_the_folder_holds_all_that_was_promised(home, result):
    names = {path.name for path in (home / "demo").iterdir()}
    data = {"errors.csv", "answers.csv", "training.csv"}
    assert names == {"index.html", "page.json", "summary.json", "demo.ticket", "target.safetensors"} | data
    assert result["bytes"]["file"] == (home / "demo" / "demo.ticket").stat().st_size
    summary = json.loads((home / "demo" / "summary.json").read_text())
    assert summary["results"]["certified_error"] == result["certified_error"]
    assert summary["made_by"]["command"] == "strongticket demo --seed 0"


def test_the_answer_for_people_says_where_to_look(result):
    shown = cli.demo._tables(result, [])
    assert shown[-1] == "open demo/index.html"


def test_the_ticket_is_really_a_pruned_random_network(home, result):
    ticket = Ticket.load(home / "demo" / "demo.ticket")
    target = nets.load(home / "demo" / "target.safetensors")
    assert ticket.floats == {}
    assert ticket.settings["key_dim"] == result["width"] > target.key_dim == 8
    source, goal = (nets.merge(network.double()) for network in (ticket.network(), target))
    for name, error in result["matrix_errors"].items():
        difference = (getattr(source, name) - getattr(goal, name)).abs().max().item()
        assert difference == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_in_a_browser(browser, home, width, dark):
    page = home / "demo" / "index.html"
    browser.open(page, width=width, dark=dark)
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.documentElement.dataset.plots") == "drawn 3"
    assert browser.evaluate("document.querySelectorAll('.mask img').length") == 4
    assert browser.evaluate("document.querySelectorAll('.panel img').length") == 8
    assert browser.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    assert browser.evaluate("document.querySelectorAll('.plot .picture .bar').length") > 20


@pytest.mark.parametrize("name", ["plan", "build", "show", "verify", "report"])
def test_the_examples_of_the_help_work(home, monkeypatch, name):
    monkeypatch.chdir(home)
    example = shlex.split(getattr(cli, name).EXAMPLE)
    assert example[:2] == ["strongticket", name]
    answer = RUN.invoke(cli.app, example[1:])
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.strip()
    answer = RUN.invoke(cli.app, [*example[1:], "--json"])
    assert isinstance(json.loads(answer.stdout), dict)


def test_the_commands_named_on_the_page_work(home, monkeypatch):
    monkeypatch.chdir(home)
    page = json.loads((home / "demo" / "page.json").read_text())
    rows = next(s for s in page["sections"] if s["heading"] == "Do it yourself")["blocks"][0]["rows"]
    for code, _ in rows:
        answer = RUN.invoke(cli.app, shlex.split(code.strip("`"))[1:])
        assert answer.exit_code == 0, (code, answer.stderr)
