"""The documentation site: builds without a warning, reads nothing from elsewhere, and its search works offline."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.browser import browser  # noqa: F401 (a fixture)

pytest.importorskip("sphinx", reason="no Sphinx: `make docs` installs it")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-d", out / "trees"]
    done = subprocess.run([*command, ROOT / "docs", out / "html"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "html"


def test_every_public_name_and_command_has_its_place(site):
    import strongticket
    from strongticket.cli import app

    pages = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html"))
    missing = [name for name in strongticket.__all__ if name != "__version__" and f".{name}" not in pages]
    assert missing == []
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert [c.name for c in app.registered_commands if f'id="strongticket-{c.name}"' not in commands] == []


def test_pages_read_nothing_from_elsewhere(site):
    reads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*")
    for page in site.rglob("*.html"):
        assert reads.findall(page.read_text(encoding="utf-8")) == [], page.name


def test_notebooks_show_what_they_printed_and_drew(site):
    for name in ("first-ticket", "new-search-method"):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert 'class="output stream' in page
        assert "_images/" in page


def test_search_answers_offline(browser, site):  # noqa: F811
    browser.open(site / "search.html", width=390)
    browser.evaluate("location.search = '?q=certificate'")
    browser.wait("document.querySelectorAll('#search-results li').length > 3")
    assert browser.problems == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(url.startswith(("file:", "data:")) for url in browser.requests)
