"""Writes the reference pages: one of the command line from its options, one per room of the package from its names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

# Rooms in the order of the page's table of contents; what they are for is their docstring.
ROOMS = [
    "seeds",
    "subset_sum",
    "theory",
    "nets",
    "ticket",
    "builders",
    "pretrained",
    "searching",
    "hf",
    "report",
    "errors",
]


def write(folder: Path) -> None:
    """Write every reference page into a folder; a page that did not change is left alone, for quick rebuilds."""
    pages = {
        "commands.md": command_page(),
        "python.md": _index(),
        **{f"{room}.md": _room_page(room) for room in ROOMS},
    }
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def command_page() -> str:
    """Every command with its arguments and options, as Markdown."""
    from strongticket.cli import app

    group: Any = typer.main.get_command(app)
    lines = ["# Commands", "", group.help or "", ""]
    for name, command in group.commands.items():
        lines += [f"## strongticket {name}", "", inspect.cleandoc(command.help or ""), ""]
        if example := re.sub(r"^Example: ", "", command.epilog or ""):
            lines += ["```bash", example, "```", ""]
        lines += ["| option | meaning |", "|---|---|"]
        context = command.make_context(name, [], resilient_parsing=True)
        for names, meaning in filter(
            None, (parameter.get_help_record(context) for parameter in command.params)
        ):
            lines.append(f"| {_cell(f'`{names}`')} | {_cell(meaning)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _index() -> str:
    rows = [f"| [`strongticket.{room}`]({room}.md) | {_first_line(_module(room))} |" for room in ROOMS]
    about = "Every name of `strongticket` itself is one of these, and can be imported from `strongticket` directly."
    contents = ["```{toctree}", ":hidden:", "", *ROOMS, "```"]
    table = ["| room | what it is for |", "|---|---|", *rows]
    return "\n".join(["# Python, package by package", "", about, "", *table, "", *contents, ""])


def _room_page(room: str) -> str:
    module = _module(room)
    lines = [f"# strongticket.{room}", "", _first_line(module), "", "```{eval-rst}"]
    for name, value in _public(module):
        if inspect.isclass(value):
            lines += [f".. autoclass:: {module.__name__}.{name}", "   :members:", ""]
        elif callable(value):
            lines += [f".. autofunction:: {module.__name__}.{name}", ""]
    return "\n".join([*lines, "```", ""])


def _module(room: str) -> ModuleType:
    return import_module(f"strongticket.{room}")


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The names that a room exports: `__all__`, or what its `__init__` has of its own room."""
    for name in getattr(module, "__all__", None) or sorted(vars(module)):
        value = getattr(module, name)
        ours = getattr(value, "__module__", "").startswith("strongticket.")
        if ours and not name.startswith("_") and not inspect.ismodule(value) and value.__doc__:
            yield name, value


def _first_line(module: ModuleType) -> str:
    paragraph = inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]
    return " ".join(paragraph.split())


FIELD = re.compile(r"^(\w+(?:, \w+)*): (.+)$")
CODE = re.compile(r"(``?[^`]+``?)")


def process_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code`: nothing else in them is markup, and `name: meaning` lines are a list."""
    made: list[str] = []
    in_example = in_list = False
    for line in lines:
        if not line.strip():
            in_example = in_list = False
            made.append("")
            continue
        in_example = in_example or line.lstrip().startswith((">>>", ":"))
        field = FIELD.match(line)
        if in_example:
            made.append(line)
        elif field and (in_list or not made or not made[-1]):
            made.append(f"* **{field[1]}**: {_escape(field[2])}")
            in_list = True
        else:
            made.append("  " + _escape(line.strip()) if in_list else _escape(line))
    lines[:] = made


def _escape(text: str) -> str:
    """Outside of `code`, letters that reStructuredText would take for markup."""
    parts = CODE.split(text)
    return "".join(
        part if CODE.fullmatch(part) else re.sub(r"([*|]|_(?=\W|$))", r"\\\1", part) for part in parts
    )
