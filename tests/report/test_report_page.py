import dataclasses
import json
import re

import numpy as np
import pytest
from tests.report.sample import DOT, ROWS, SUMMARY, sample_page

from strongticket import report
from strongticket.errors import StrongTicketError
from strongticket.report import page_json
from strongticket.report.markup import number


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dot.png").write_bytes(DOT)
    report.write_results(tmp_path, sample_page(), SUMMARY, {"errors.csv": ROWS})
    return tmp_path


def test_a_folder_holds_data_description_and_page(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {"errors.csv", "summary.json", "page.json", "index.html", "dot.png"}
    assert (folder / "errors.csv").read_text() == "n,error\n4,0.0625\n8,0.00390625\n12,0.000244140625\n"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["made_by"]["seed"] == 3
    assert summary["results"] == {"error": 1e-9}


def test_the_page_is_remade_byte_for_byte(folder):
    before = (folder / "index.html").read_bytes()
    (folder / "index.html").unlink()
    assert report.remake_page(folder) == folder / "index.html"
    assert (folder / "index.html").read_bytes() == before


def test_every_block_survives_json():
    data = page_json.to_json(sample_page())
    again = page_json.from_json(json.loads(json.dumps(data)))
    assert page_json.to_json(again) == data
    mask = sample_page().sections[1].blocks[0].masks[1].mask
    np.testing.assert_array_equal(again.sections[1].blocks[0].masks[1].mask, mask)


def test_the_page_asks_for_nothing_and_is_small(folder):
    html = (folder / "index.html").read_text()
    own = re.sub(r"<script>.*?</script>", "", html, flags=re.S)  # the name of SVG's namespace is a URL
    assert not re.search(r"(src|href)=\"(?!data:)", own)
    assert "http" not in own.replace('http-equiv="Content', "")
    assert len(html) < 100_000
    assert "default-src 'none'" in html


def test_text_is_escaped_and_marked_up(folder):
    html = (folder / "index.html").read_text()
    assert "<h1>A page &lt;of&gt; everything</h1>" in html
    assert "<strong>weight</strong> and <code>code</code>.</p>" in html
    assert "Second paragraph &amp; more." in html
    assert "Caption &lt;/script&gt;." in html
    assert "a&lt;b" in html  # provenance


def test_a_page_without_plots_carries_no_script(tmp_path):
    page = report.Page("Small", "Just words.", (report.Section("One", (report.Text("Hello."),)),))
    out = report.write_results(tmp_path, page, SUMMARY, {})
    assert "<script" not in out.read_text()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345, "12,345"),
        (0.0123, "0.0123"),
        (4.5e-9, "4.5\u202f×\u202f10^(−9)"),
        (-2.0, "−2"),
        (0.0, "0"),
        (1234.5, "1,234.5"),
    ],
)
def test_numbers_read_well(value, text):
    assert number(value) == text


def curve(description):
    return description["sections"][2]["blocks"][0]["chart"]["curves"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="x"), "not a page description"),
        (lambda d: d.update(version=99), "version 99, this program reads version 2"),
        (lambda d: d.pop("title"), "field 'title' is missing"),
        (lambda d: d.update(title=3), "'title' is not a string"),
        (lambda d: d.update(sections=3), "'sections' is not a list"),
        (lambda d: d["sections"][0]["blocks"][0].update(type="song"), "section 0, block 0 has type 'song'"),
        (lambda d: d["sections"][0]["blocks"][0].pop("text"), "field 'text' is missing"),
        (lambda d: d["sections"][0]["blocks"][0].update(text=1), "field 'text' is not a string"),
        (lambda d: d["sections"][0]["blocks"][0].update(colour="red"), "field 'colour' is unknown"),
        (lambda d: d["sections"][1]["blocks"][0]["masks"][0]["mask"].update(bits="AA=="), "is not a mask"),
        (
            lambda d: d["sections"][1]["blocks"][1]["panels"][0].update(values=[[1], [1, 2]]),
            "is not a matrix",
        ),
        (lambda d: d["sections"][2]["blocks"][0].update(alt=" "), "has no alt text"),
        (lambda d: d["sections"][2]["blocks"][0].update(chart=[]), "field 'chart' is not an object"),
        (lambda d: curve(d).update(x=[float("nan")]), "NaN is not JSON"),
        (lambda d: curve(d).update(x=[1]), "has 1 x and 3 y"),
        (lambda d: curve(d).update(colour=7), "has colour 7"),
        (lambda d: curve(d).update(colour=True), "field 'colour' is not a whole number"),
        (lambda d: curve(d).update(kind="song"), "field 'kind' is not one of 'data'"),
        (lambda d: curve(d).update(marker="*"), "has the marker"),
        (lambda d: curve(d).update(y=[1, "2", 3]), "field 'y' is not a finite number"),
        (lambda d: d["sections"][2]["blocks"][0]["chart"].update(curves=[]), "has no point"),
        (lambda d: d["sections"][2]["blocks"][0]["chart"].update(y_range=[2, 1]), "has the y_range"),
        (lambda d: d["sections"][2]["blocks"][0].update(height=1e9), "field 'height' is not a whole number"),
        (
            lambda d: d["sections"][0]["blocks"][1].update(items=[["4.2"]]),
            "item 0, field 'items' is not a list of 2",
        ),
        (
            lambda d: d["sections"][2]["blocks"][2].update(columns=["a", 2]),
            "item 1, field 'columns' is not a string",
        ),
        (lambda d: d["sections"][2]["blocks"][2].update(rows=[7]), "item 0, field 'rows' is not a list"),
        (lambda d: d["sections"][2]["blocks"][2].update(rows=[["a"]]), "row 0 of a table has 1 cells"),
    ],
)
def test_a_damaged_description_is_refused_by_name(folder, change, message):
    data = page_json.to_json(sample_page())
    change(data)
    (folder / "page.json").write_text(json.dumps(data))
    with pytest.raises(StrongTicketError, match=message):
        report.remake_page(folder)


@pytest.mark.parametrize("name", ["page.json", "summary.json"])
def test_a_folder_without_description_is_refused(folder, name):
    (folder / name).write_text("{")
    with pytest.raises(StrongTicketError, match=f"{name} is not valid JSON"):
        report.remake_page(folder)
    (folder / name).unlink()
    with pytest.raises(StrongTicketError, match=f"has no {name}, so it is not a results folder"):
        report.remake_page(folder)


def test_images_come_from_the_folder_alone(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.png"
    secret.write_bytes(DOT)
    for name, message in [(str(secret), "not in the results folder"), ("page.json", "not of a known type")]:
        page = report.Page("t", "l", (report.Section("s", (report.Images((report.Image(name, "alt"),)),)),))
        with pytest.raises(StrongTicketError, match=message):
            report.write_results(folder, page, SUMMARY, {})


def test_nan_and_ragged_tables_are_refused(tmp_path):
    page = report.Page("t", "l")
    with pytest.raises(StrongTicketError, match="NaN"):
        report.write_results(tmp_path, page, dataclasses.replace(SUMMARY, results={"e": float("nan")}), {})
    with pytest.raises(StrongTicketError, match=r"'a\.csv'.*columns of the first"):
        report.write_results(tmp_path, page, SUMMARY, {"a.csv": [{"x": 1}, {"x": 1, "y": 2}]})
    with pytest.raises(StrongTicketError, match="has no rows"):
        report.write_results(tmp_path, page, SUMMARY, {"a.csv": []})
