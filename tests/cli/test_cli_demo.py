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
    assert {path.name for path in (home / "demo").iterdir()} == {"index.html", "language.ticket", "attention"}
    names = {path.name for path in (home / "demo" / "attention").iterdir()}
    data = {"errors.csv", "answers.csv", "training.csv"}
    assert (
        names == {"index.html", "page.json", "summary.json", "attention.ticket", "target.safetensors"} | data
    )
    assert result["bytes"]["file"] == (home / "demo" / "attention" / "attention.ticket").stat().st_size
    summary = json.loads((home / "demo" / "attention" / "summary.json").read_text())
    assert summary["results"]["certified_error"] == result["certified_error"]
    assert summary["made_by"]["command"] == "strongticket demo --seed 0"


def test_the_answer_for_people_says_where_to_look(result):
    shown = cli.demo._tables(result, [])
    assert shown[-1] == "open demo/index.html"


def test_the_ticket_is_really_a_pruned_random_network(home, result):
    ticket = Ticket.load(home / "demo" / "attention" / "attention.ticket")
    target = nets.load(home / "demo" / "attention" / "target.safetensors")
    assert ticket.floats == {}
    assert ticket.settings["key_dim"] == result["width"] > target.key_dim == 8
    source, goal = (nets.merge(network.double()) for network in (ticket.network(), target))
    for name, error in result["matrix_errors"].items():
        difference = (getattr(source, name) - getattr(goal, name)).abs().max().item()
        assert difference == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_language_page_comes_first_and_leads_to_the_other(browser, home, width, dark):
    page = home / "demo" / "index.html"
    browser.open(page, width=width, dark=dark)
    browser.wait("document.documentElement.dataset.ready === 'yes'")
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert (
        browser.evaluate("[...document.querySelectorAll('section')].filter(s => !s.hidden)[0].id") == "write"
    )
    assert page.stat().st_size < 300_000
    other = home / "demo" / "attention" / "index.html"
    assert browser.evaluate("document.querySelector('#next a').href") == other.as_uri()


def test_the_language_ticket_knows_its_text(home, result):
    """Its loss on the validation text is what it says, well below that of guessing letters by their frequency."""
    language = result["language"]
    assert language["bytes"] == (home / "demo" / "language.ticket").stat().st_size < 60_000
    assert language["loss"] < 2
    ticket = Ticket.load(home / "demo" / "language.ticket")
    assert ticket.floats == {}
    written = "".join(ticket.generate("The function ", tokens=200, temperature=0.5, seed=1))
    assert sum(word in written for word in ("the ", " of ", " is ", " to ", " and ", " in ")) >= 3


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_in_a_browser(browser, home, width, dark):
    page = home / "demo" / "attention" / "index.html"
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
    page = json.loads((home / "demo" / "attention" / "page.json").read_text())
    rows = next(s for s in page["sections"] if s["heading"] == "Do it yourself")["blocks"][0]["rows"]
    for code, _ in rows:
        answer = RUN.invoke(cli.app, shlex.split(code.strip("`"))[1:])
        assert answer.exit_code == 0, (code, answer.stderr)
