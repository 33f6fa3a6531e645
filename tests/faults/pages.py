"""Results folders from elsewhere: each page is refused with a clear error, or drawn with nothing of the folder's
as markup. Run in a process of its own, for its memory.

Some folders are crafted by hand, the others by a seeded fuzzer that changes one entry of the JSON trees.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from tests.faults.changes import MARKUP as EVIL
from tests.faults.changes import changed
from tests.faults.memory import peak_memory
from tests.faults.outside import LINK, Outside, make_outside, write_files
from tests.faults.starter import ROOT
from tests.report.sample import DOT, SUMMARY, sample_page

from strongticket.errors import StrongTicketError
from strongticket.report import page_json, remake_page

TAGS = frozenset(
    (
        *(
            "html",
            "head",
            "meta",
            "title",
            "link",
            "style",
            "body",
            "main",
            "header",
            "footer",
            "section",
            "script",
        ),
        *(
            "h1",
            "h2",
            "p",
            "div",
            "span",
            "dl",
            "dt",
            "dd",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "noscript",
        ),
        *("figure", "figcaption", "picture", "source", "img", "i", "code", "strong", "em", "sup", "sub"),
    )
)
Folder = dict[str, Any]  # file name -> JSON tree, or bytes as they are
Change = Callable[[Folder], Any]


def draw_pages(count: int, *, seed: int = 0) -> dict[str, Any]:
    """Draw the crafted pages and `count` fuzzed ones in a child process: how many ended how, and its memory."""
    command = [sys.executable, "-m", "tests.faults.pages", str(count), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"drawing pages ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _block(folder: Folder, section: int, index: int) -> Any:
    return folder["page.json"]["sections"][section]["blocks"][index]


def _curve(folder: Folder) -> Any:
    return _block(folder, 2, 0)["chart"]["curves"][0]


def _set(where: Callable[[Folder], Any], **values: Any) -> Change:
    return lambda folder: where(folder).update(values)


def _page(**values: Any) -> Change:
    return lambda folder: folder["page.json"].update(values)


def _file(name: str, data: Any) -> Change:
    return lambda folder: folder.update({name: data})


def _text(folder: Folder) -> Any:
    return _block(folder, 0, 0)


def _facts(folder: Folder) -> Any:
    return _block(folder, 0, 1)


def _mask(folder: Folder) -> Any:
    return _block(folder, 1, 0)["masks"][0]["mask"]


def _panel(folder: Folder) -> Any:
    return _block(folder, 1, 1)["panels"][0]


def _image(folder: Folder) -> Any:
    return _block(folder, 1, 4)["images"][0]


def _chart(folder: Folder) -> Any:
    return _block(folder, 2, 0)["chart"]


def _plot(folder: Folder) -> Any:
    return _block(folder, 2, 0)


def _table(folder: Folder) -> Any:
    return _block(folder, 2, 2)


def _made_by(folder: Folder) -> Any:
    return folder["summary.json"]["made_by"]


DEEP = b"[" * 100_000 + b"]" * 100_000
REFUSED: dict[str, Change] = {
    "page.json empty": _file("page.json", b""),
    "page.json cut": _file("page.json", b'{"format": "strongticket-page", "vers'),
    "page.json not UTF-8": _file("page.json", b"\xff\xfe{}"),
    "page.json nested deeply": _file("page.json", DEEP),
    "page.json a number of 5,000 digits": _file("page.json", b'{"version": ' + b"9" * 5000 + b"}"),
    "page.json a list": _file("page.json", []),
    "page.json a key twice": _file("page.json", b'{"format": 1, "format": 2}'),
    "page.json too large": _file("page.json", b" " * (5 << 20)),
    "page.json of many lists": _file("page.json", b"[" + b"[]," * 690_000 + b"[]]"),
    "page.json a folder": lambda folder: folder.update({"page.json": None, "page.json/x": b""}),
    "summary.json empty": _file("summary.json", b""),
    "summary.json a string": _file("summary.json", "x"),
    "summary.json nested deeply": _file("summary.json", DEEP),
    "summary of version true": lambda folder: folder["summary.json"].update(version=[1]),
    "made_by a list": lambda folder: folder["summary.json"].update(made_by=["x"]),
    "made_by a string": lambda folder: folder["summary.json"].update(made_by=EVIL),
    "version true": _page(version=True),
    "version 1": _page(version=1),
    "version a list": _page(version=[2]),
    "format a list": _page(format=["strongticket-page"]),
    "title missing": lambda folder: folder["page.json"].pop("title"),
    "title half a surrogate pair": _page(title="\ud800"),
    "lead null": _page(lead=None),
    "extra field": _page(script="evil()"),
    "sections an object": _page(sections={}),
    "section null": _page(sections=[None]),
    "section without heading": _page(sections=[{"blocks": []}]),
    "blocks a string": _page(sections=[{"heading": "x", "blocks": "text"}]),
    "block type a list": _set(_text, type=["text"]),
    "block type an object": _set(_text, type={}),
    "block type of another class": _set(_text, type="Page"),
    "block field __class__": lambda folder: _text(folder).update({"__class__": "x"}),
    "text a number": _set(_text, text=1),
    "facts of three": _set(_facts, items=[["1", "2", "3"]]),
    "facts of numbers": _set(_facts, items=[[1, 2]]),
    "facts a string": _set(_facts, items="12"),
    "table row too short": _set(_table, rows=[["a"]]),
    "table cell a list": _set(_table, rows=[["a", [1]]]),
    "table cell true": _set(_table, rows=[["a", True]]),
    "table cell 1e999": lambda folder: _raw(folder, '"float32"', '1e999'),
    "mask of 2^62 weights": _set(_mask, shape=[1 << 31, 1 << 31]),
    "mask of a negative shape": _set(_mask, shape=[-2, -64]),
    "mask of shape 2.0": _set(_mask, shape=[2.0, 64]),
    "mask of one dimension": _set(_mask, shape=[128]),
    "mask without weights": _set(_mask, shape=[0, 64], bits=""),
    "mask bits a list": _set(_mask, bits=[1, 2]),
    "mask bits not base64": _set(_mask, bits="é" * 24),
    "heat map of strings": _set(_panel, values=[["1", "2"]]),
    "heat map of three dimensions": _set(_panel, values=[[[1.0]]]),
    "heat map empty": _set(_panel, values=[[]]),
    "heat map of 1e308": _set(_panel, values=[[1e308, -1e308]]),
    "heat map of null": _set(_panel, values=[[None]]),
    "heat maps without panels": lambda folder: _block(folder, 1, 1).update(panels=[]),
    "image outside the folder": _set(_image, file="../secret.png"),
    "image of another folder": _set(_image, file="../../outside/secret.png"),
    "image that is a link": _file("dot.png", LINK + b"../../outside/secret.png"),
    "page.json that is a link": _file("page.json", LINK + b"../../outside/page.json"),
    "summary.json that is a link": _file("summary.json", LINK + b"../../outside/summary.json"),
    "image by an absolute path": _set(_image, file="/etc/hostname.png"),
    "image of a name with NUL": _set(_image, file="a\x00.png"),
    "image of a name too long": _set(_image, file="a" * 5000 + ".png"),
    "image that is a folder": lambda folder: (_image(folder).update(file="sub.png"), folder.update({"sub.png/x": b""})),
    "image of another type": _set(_image, file="page.json"),
    "image without alt": _set(_image, alt=" "),
    "images too large": lambda folder: folder.update({"dot.png": bytes(33 << 20)}),
    "plot 2^40 pixels high": _set(_plot, height=1 << 40),
    "plot -1 pixels high": _set(_plot, height=-1),
    "plot of a plotly figure": _set(_plot, data=[], layout={}),
    "chart null": _set(_plot, chart=None),
    "chart without curves": _set(_chart, curves=[]),
    "chart with y_range of three": _set(_chart, y_range=[1, 2, 3]),
    "chart with y_range downwards": _set(_chart, y_range=[2, 1]),
    "chart with log_y 1": _set(_chart, log_y=1),
    "curve with x and y of other lengths": _set(_curve, x=[1]),
    "curve with null in y": _set(_curve, y=[1, None, 2]),
    "curve with 10^400 in y": _set(_curve, y=[1, 10**400, 2]),
    "curve with a colour of text": _set(_curve, colour="red;background:url(http://evil)"),
    "curve with colour 0": _set(_curve, colour=0),
    "curve with a marker of markup": _set(_curve, marker=EVIL),
    "curve of kind constructor": _set(_curve, kind="constructor"),
    "curve with one edge of a band": _set(_curve, band=[[1, 2, 3]]),
}  # fmt: skip
DRAWN: dict[str, Change] = {
    "as it is": lambda folder: None,
    "evil title": _page(title=EVIL, lead=EVIL),
    "evil text": _set(_text, text=EVIL),
    "evil facts": _set(_facts, items=[[EVIL, EVIL]]),
    "evil table": _set(_table, columns=[EVIL, EVIL], rows=[[EVIL, None]], caption=EVIL),
    "evil alt": lambda folder: [
        _image(folder).update(alt=EVIL, caption=EVIL),
        _plot(folder).update(alt=EVIL),
    ],
    "evil heat map": lambda folder: [
        _panel(folder).update(title=EVIL),
        _block(folder, 1, 2).update(rows=EVIL),
    ],
    "evil chart": _set(_chart, title=EVIL, x_label=EVIL, y_label=EVIL),
    "evil curve": _set(_curve, name=EVIL),
    "evil source": _set(_plot, source=EVIL, caption=EVIL),
    "evil provenance": lambda folder: _made_by(folder).update({EVIL: EVIL, "deep": {EVIL: [EVIL]}}),
    "provenance of half a surrogate pair": _set(_made_by, command="\ud800"),
    "provenance nested": _set(_made_by, settings=json.loads("[" * 200 + "]" * 200)),
    "headings that repeat, or claim a plot": lambda folder: [
        section.update(heading="plot 0") for section in folder["page.json"]["sections"]
    ],
    "headings without letters": lambda folder: [
        section.update(heading="«»") for section in folder["page.json"]["sections"]
    ],
    "no section": _page(sections=[]),
    "no fact": _set(_facts, items=[]),
    "no row": _set(_table, columns=[], rows=[]),
    "a large whole number": _set(_table, rows=[["a", 10**400]]),
    "a curve on one point": _set(_curve, x=[1], y=[0], band=None),
    "a curve below zero on a logarithmic axis": _set(_curve, y=[-1, 0, -2], band=None),
    "control characters": _page(title="\x00\x1b[31m\u202e"),
    "a mask of a million weights": _set(_mask, shape=[1, 1 << 20], bits="AAAA" * ((1 << 17) // 3) + "AAA="),
}


def _raw(folder: Folder, old: str, new: str) -> None:
    """Change the text of page.json: some numbers exist only there."""
    folder["page.json"] = json.dumps(folder["page.json"]).replace(old, new, 1).encode()


def _folder() -> Folder:
    return {
        "page.json": page_json.to_json(sample_page()),
        "summary.json": SUMMARY.to_json(),
        "dot.png": DOT,
    }


def _outcome(folder: Folder, root: Path) -> tuple[str, str]:
    """Write the folder, draw its page, and judge what came of it."""
    with tempfile.TemporaryDirectory(dir=root) as name:
        path = Path(name)
        files = {
            file: content if isinstance(content, bytes) else json.dumps(content).encode()
            for file, content in folder.items()
            if content is not None
        }
        write_files(path, files)
        try:
            html = remake_page(path).read_text(encoding="utf-8")
        except StrongTicketError as error:
            return "refused", error.what
        except Exception as error:
            return "crashed", f"{type(error).__name__}: {error}"
    problems = _Checker(html).problems
    return ("unsafe", "; ".join(problems)) if problems else ("drawn", "")


class _Checker(HTMLParser):
    """Reads a page as a browser does and lists what should not be in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._ids: set[str] = set()
        self._script: dict[str, str | None] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._script = attributes if tag == "script" else None
        if tag not in TAGS:
            self.problems.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or (
                name in ("src", "href", "srcset") and not (value or "").startswith("data:")
            ):
                self.problems.append(f"{name}={value}")
        if "id" in attributes:
            if str(attributes["id"]) in self._ids:
                self.problems.append(f"id {attributes['id']} twice")
            self._ids.add(str(attributes["id"]))

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None and self._script.get("type") == "application/json":
            json.loads(data)
        elif self._script is not None and "evil" in data:
            self.problems.append("evil in a script")


def main(count: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {"refused": 0, "drawn": 0, "crashed": 0, "unsafe": 0}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        root, outside = make_outside(Path(name))
        (root / "secret.png").write_bytes(DOT)
        for file in ("page.json", "summary.json"):
            (outside / file).write_text(json.dumps(_folder()[file]))
        watch = Outside(outside)
        start = peak_memory()
        for expected, cases in (("refused", REFUSED), ("drawn", DRAWN)):
            for case, change in cases.items():
                folder = _folder()
                change(folder)
                outcome, said = _outcome(folder, root)
                found[outcome] += 1
                if outcome != expected:
                    wrong.append(f"{case}: {outcome}, {said}")
        for i in range(count):
            folder = copy.deepcopy(_folder())
            file = ("page.json", "page.json", "summary.json")[i % 3]
            folder[file] = changed(folder[file], rng)
            outcome, said = _outcome(folder, root)
            found[outcome] += 1
            if outcome not in ("refused", "drawn"):
                wrong.append(f"fuzzed page {i} of seed {seed}: {outcome}, {said}")
        opened = watch.opened()
    return {
        "crafted": len(REFUSED) + len(DRAWN),
        "fuzzed": count,
        **found,
        "wrong": wrong,
        "files_read_outside": opened,
        "memory_bytes": peak_memory(),
        "memory_before_bytes": start,
    }


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
