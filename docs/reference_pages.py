"""Writes the reference pages: one of the command line from its options, one per package from its docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import typer

PACKAGES = ["seeds", "subset_sum", "theory", "nets", "ticket", "builders", "models", "choice", "searching"]
PACKAGES += ["hf", "report", "errors"]
INDEX = """# Python, package by package

Every name of `strongticket` itself is one of these, and can be imported from `strongticket` directly.

```{{toctree}}
{packages}
```
"""
PAGE = """# strongticket.{package}

```{{eval-rst}}
.. automodule:: strongticket.{package}
   :members:
   {imported}
```
"""


def write(folder: Path) -> None:
    """Write every reference page into a folder."""
    pages = {"commands": command_page(), "python": INDEX.format(packages="\n".join(PACKAGES))}
    for package in PACKAGES:
        imported = "" if package == "errors" else ":imported-members:"
        pages[package] = PAGE.format(package=package, imported=imported)
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


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
