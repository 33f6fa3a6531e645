"""What Python writes into a ticket's page; tests/web opens pages in a browser."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from tests.web.samples import KNOWN, language_ticket

from strongticket.report import ticket_page
from strongticket.report.bundle import bundle, web_folder
from strongticket.report.ticket_page import FAMILIES, write_ticket_page

EVIL = "{{script}}</script><script>evil()</script><img src=x onerror=evil()>\"'&{{data}}.ticket"


class Parsed(HTMLParser):
    """The tags of a page, its title and its data, read as a browser reads them."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self._now = ""
        self.texts[""] = ""
        self.feed(page.read_text(encoding="utf-8"))
        self.data = json.loads(self.texts["page-data"])

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._now = dict(attrs).get("id") or tag
        self.texts.setdefault(self._now, "")

    def handle_data(self, data):
        self.texts[self._now] += data


def test_a_page_asks_for_nothing_and_holds_its_ticket(tmp_path):
    page = write_ticket_page(KNOWN, tmp_path / "known.html")
    html = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert not re.search(r'(src|href)="(?!data:)', html)
    assert not re.search(r"\{\{\w+\}\}", html)
    parsed = Parsed(page)
    assert parsed.texts["title"].strip() == "known.ticket, a strong lottery ticket"
    assert parsed.texts["status"].startswith("Drawing")
    assert parsed.data["file"] is not None


def test_names_and_samples_cannot_change_the_page(tmp_path, monkeypatch):
    """A name or a sample with {{script}} in it once had the whole script put in its place."""
    plain = Parsed(write_ticket_page(KNOWN, tmp_path / "plain.html"))
    monkeypatch.setattr(ticket_page, "_search_text", lambda summary: EVIL)
    file = tmp_path / EVIL.replace("/", "⁄")
    file.write_bytes(KNOWN.read_bytes())
    parsed = Parsed(write_ticket_page(file, tmp_path / "evil.html"))
    assert parsed.tags == plain.tags
    assert parsed.texts["script"] == plain.texts["script"]
    assert parsed.texts["title"].strip() == f"{file.name}, a strong lottery ticket"
    assert (parsed.data["name"], parsed.data["sample"]) == (file.name, EVIL)


def test_a_searched_ticket_of_the_builtin_text_brings_its_beginning(tmp_path):
    language = Path(str(files("strongticket.reproduce") / "language.ticket"))
    assert len(Parsed(write_ticket_page(language, tmp_path / "a.html")).data["sample"]) == 2000
    language_ticket().save(tmp_path / "other.ticket")
    assert Parsed(write_ticket_page(tmp_path / "other.ticket", tmp_path / "b.html")).data["sample"] == ""


@pytest.mark.parametrize(
    ("settings", "limits", "said"),
    [
        ({"config": {"model_type": "bert<b>"}}, {}, "its network is of type bert<b>"),
        ({"base": "00"}, {}, "the rest of its network is a trained model"),
        ({}, {"MAX_BYTES": 1000}, "a page holds a ticket of at most 1,000"),
        ({}, {"MAX_WEIGHTS": 999}, "weights, and a page at most 999"),
    ],
)
def test_a_ticket_that_no_page_runs_gets_a_small_page_without_being_read(
    tmp_path, monkeypatch, settings, limits, said
):
    ticket = language_ticket()
    replace(ticket, settings=ticket.settings | settings).save(tmp_path / "a.ticket")
    for name, limit in limits.items():
        monkeypatch.setattr(ticket_page, name, limit)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    parsed = Parsed(write_ticket_page(tmp_path / "a.ticket", tmp_path / "a.html"))
    assert "cannot run it" in parsed.texts["status"]
    assert said in parsed.texts["status"]
    assert parsed.data["file"] is None


def test_the_families_are_those_of_the_reader():
    source = (web_folder() / "src" / "networks" / "network.js").read_text(encoding="utf-8")
    assert tuple(re.findall(r'\["(\w+)", \[', source)) == FAMILIES


def test_modules_that_import_each_other_are_refused(tmp_path):
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 2;\n')
    with pytest.raises(Exception, match=r"a\.js imports itself through b\.js"):
        bundle(tmp_path / "a.js")
