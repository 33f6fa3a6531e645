"""The demo as a user runs it, its numbers, its page in a browser, and every example of the help."""

import json
import re
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from strongticket import cli, nets
from strongticket.ticket import Ticket

RUN = CliRunner()
READY = "document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def result(home):
    return json.loads((home / "demo.json").read_text())


@pytest.fixture(scope="module")
def ticket(home):
    return Ticket.load(home / "demo" / "attention" / "attention.ticket")


def test_the_numbers_hang_together(result):
    attention = result["attention"]
    assert set(attention["largest_test_error"]) == {"4", "256"}
    for error in (attention["attacked_error"], *attention["largest_test_error"].values()):
        assert 0 < error <= attention["certified_error"] <= 1e-6
    assert attention["certified_error"] <= attention["paper_bound"]
    assert attention["ticket_test_loss"] == pytest.approx(attention["target_test_loss"], abs=1e-5)
    assert attention["target_test_loss"] < np.pi**2 / 3  # of always answering 0
    assert 0 < attention["kept"] < attention["weights"]


def test_the_folder_holds_the_page_both_tickets_and_the_target(home, result):
    files = {path.relative_to(home).as_posix() for path in (home / "demo").rglob("*") if path.is_file()}
    made = {result["attention"]["ticket"], result["attention"]["target"], result["page"]}
    assert files == made | {"demo/language.ticket"}
    assert result["attention"]["bytes"]["file"] == (home / result["attention"]["ticket"]).stat().st_size


def test_the_answer_for_people_says_where_to_look(result):
    assert cli.demo._tables(result)[-1] == "open demo/index.html"


def test_the_ticket_is_really_a_pruned_random_network(home, result, ticket):
    target = nets.load(home / "demo" / "attention" / "target.safetensors")
    assert ticket.floats == {}
    assert ticket.settings["key_dim"] == result["attention"]["width"] > target.key_dim == 8
    source, goal = (nets.merge(network.double()) for network in (ticket.network(), target))
    for name, error in result["attention"]["matrix_errors"].items():
        difference = (getattr(source, name) - getattr(goal, name)).abs().max().item()
        assert difference == pytest.approx(error, rel=1e-6)


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
def test_the_page_opens_offline_and_explains_itself_first(browser, home, width, dark):
    page = home / "demo" / "index.html"
    browser.open(page, width=width, dark=dark)
    browser.wait(READY)
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert page.stat().st_size < 300_000
    assert "strong lottery ticket" in browser.evaluate("document.title")
    assert browser.evaluate("document.querySelector('.lead').innerText").startswith(
        "A strong lottery ticket is a part of a random network"
    )
    shown = browser.evaluate(
        "[...document.querySelectorAll('section')].filter(s => !s.hidden).map(s => s.id)"
    )
    assert shown == ["write", "look", "flip", "finding", "width", "attention"]


def test_the_page_computes_the_attention_matrices_itself(browser, home, result, ticket):
    browser.open(home / "demo" / "index.html")
    browser.wait(READY)
    rows = browser.evaluate(
        "[...document.querySelectorAll('#attention-matrices tr:has(td)')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    merged = [
        nets.merge(network.double())
        for network in (nets.load(home / result["attention"]["target"]), ticket.network())
    ]
    expected = [
        [f"{value:.7f}".replace("-", "−") for value in pair]
        for name in ("query_key", "value_output")
        for pair in zip(*(getattr(network, name).flatten().tolist() for network in merged), strict=True)
    ]
    assert [row[1:3] for row in rows] == expected
    facts = browser.evaluate("document.querySelector('#attention .facts').innerText")
    assert f"{result['attention']['kept']} of {result['attention']['weights']}" in facts
    assert f"{result['attention']['certified_error']:.1e}"[:3] in facts  # 8.6 of 8.6 × 10⁻⁷
    empty = "[...document.querySelectorAll('#attention [data-shown]')].filter(place => !place.textContent)"
    assert browser.evaluate(f"{empty}.length") == 0


def test_the_pictures_of_the_attention_ticket(browser, home, ticket):
    browser.open(home / "demo" / "index.html")
    browser.wait(READY)
    for name, mask in ticket.masks.items():
        pixels = browser.evaluate(
            "(c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data])"
            f"(document.getElementById('mask-{name}'))"
        )
        shown = mask[0].T if name == "output" else mask[0]  # columns are hidden units
        colours = np.array(pixels).reshape(*shown.shape, 4)
        assert (colours[shown] == colours[shown][0]).all()
        assert not (colours[~shown] == colours[shown][0]).all(axis=-1).any()
    products = ticket.weights("value")[0, 0] * ticket.weights("output")[0, :, 0]
    browser.wait("document.querySelectorAll('#weight-chart .point').length > 0")
    assert browser.evaluate("document.querySelectorAll('#weight-chart .point').length") == np.count_nonzero(
        products
    )


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
    page = (home / "demo" / "index.html").read_text(encoding="utf-8")
    commands = re.findall(r"<li><code>strongticket (.*?)</code>", page, re.DOTALL)
    assert len(commands) == 3
    for command in commands:
        answer = RUN.invoke(cli.app, shlex.split(command))
        assert answer.exit_code == 0, (command, answer.stderr)
