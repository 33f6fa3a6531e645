"""The page in a real chromium, at a desk and on a phone, light and dark."""

import pytest
from tests.report.sample import DOT, ROWS, SUMMARY, sample_page

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
    assert browser.evaluate("document.querySelectorAll('.plot .picture .line').length") == 2
    assert browser.evaluate("document.querySelectorAll('.plot .picture .bar').length") == len(ROWS)
    # Every picture is decoded and has a text; only the colour bars, described by their figure, have none.
    assert browser.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    assert browser.evaluate("[...document.images].every(i => i.alt || i.closest('[aria-hidden]'))")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_plots_follow_the_theme_while_open(browser, page):
    browser.open(page, dark=False)
    colour = "getComputedStyle(document.querySelector('.plot .picture .line')).stroke"
    light = browser.evaluate(colour)
    browser.scheme(dark=True)
    browser.wait(f"{colour} !== '{light}'")
    assert (light, browser.evaluate(colour)) == ("rgb(31, 95, 191)", "rgb(127, 178, 255)")
    assert browser.problems == []


def test_plots_follow_the_width_while_open(browser, page):
    browser.open(page, width=1280)
    browser.resize(390, 800)
    browser.wait("document.querySelector('.plot .picture').getBoundingClientRect().width < 390")
    assert browser.problems == []


def press(browser, key):
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def test_values_are_read_with_pointer_and_keys(browser, page):
    browser.open(page)
    tip = "document.querySelector('#plot_0 .plot-tip')"
    assert browser.evaluate(f"{tip}.hidden")
    browser.evaluate("document.querySelector('#plot_0 .picture').focus()")
    press(browser, "ArrowRight")
    assert browser.evaluate(f"{tip}.textContent") == "n: 4<b>ours</b>0.0625e−n of nK0.125"
    press(browser, "End")
    assert "n: 12" in browser.evaluate(f"{tip}.textContent")
    press(browser, "Escape")
    assert browser.evaluate(f"{tip}.hidden")
    browser.evaluate("document.querySelector('#plot_0').scrollIntoView()")
    box = browser.evaluate("document.querySelector('#plot_0 .picture').getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "n: 8" in browser.evaluate(f"{tip}.textContent")
    assert browser.problems == []


def test_the_axis_switches_and_curves_hide(browser, page):
    browser.open(page)
    ticks = "[...document.querySelectorAll('#plot_0 .axes-group text')].map(t => t.textContent).join(' ')"
    logarithmic = browser.evaluate(ticks)
    assert "0.01" in logarithmic
    browser.evaluate("document.querySelector('#plot_0 .axis-switch').click()")
    assert browser.evaluate(ticks) != logarithmic
    assert (
        browser.evaluate("document.querySelector('#plot_0 .axis-switch').textContent") == "logarithmic y axis"
    )
    assert browser.evaluate("document.querySelector('#plot_1 .axis-switch')") is None  # bars start at zero
    browser.evaluate("document.querySelector('#plot_0 .legend-entry').click()")
    assert browser.evaluate("document.querySelectorAll('#plot_0 .picture .line').length") == 1
    assert browser.evaluate("document.querySelector('#plot_0 .legend-entry').ariaPressed") == "false"
    assert browser.problems == []
