"""The page in a real chromium, at a desk and on a phone, light and dark."""

import pytest
from sample import ROWS, SUMMARY, sample_page
from test_report_page import DOT

from strongticket import report


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "dot.png").write_bytes(DOT)
    return report.write_results(folder, sample_page(), SUMMARY, {"errors.csv": ROWS})


@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_drawn_without_errors_requests_or_sideways_scroll(browser, page, tmp_path, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.documentElement.dataset.plots") == "drawn 2"
    assert browser.evaluate("document.querySelectorAll('.plot .scatterlayer .js-line').length") == 1
    assert browser.evaluate("document.querySelectorAll('.plot .barlayer .point').length") == len(ROWS)
    # Every picture is decoded and has a text; only the colour bars, described by their figure, have none.
    assert browser.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    assert browser.evaluate("[...document.images].every(i => i.alt || i.closest('[aria-hidden]'))")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_plots_follow_the_theme_while_open(browser, page):
    browser.open(page, dark=False)
    colour = "getComputedStyle(document.querySelector('.plot .js-line')).stroke"
    light = browser.evaluate(colour)
    browser.scheme(dark=True)
    browser.wait(f"{colour} !== '{light}'")
    assert (light, browser.evaluate(colour)) == ("rgb(31, 95, 191)", "rgb(127, 178, 255)")
    assert browser.problems == []


def test_plots_follow_the_width_while_open(browser, page):
    browser.open(page, width=1280)
    browser.resize(390, 800)
    browser.wait("document.querySelector('.plot .main-svg').getBoundingClientRect().width < 390")
    assert browser.problems == []
