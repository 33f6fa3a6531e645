"""Which room imports which: `python -m tests.import_graph --write` puts the graph into CONTRIBUTING.md.

A room is a module or package of strongticket; a package inside a room is a sub-room with a name of its own.
Imports inside functions count; the root `__init__` (the front door) and kinds found by name do not.
"""

import ast
import graphlib
import re
import sys
from pathlib import Path

import strongticket

SOURCE = Path(strongticket.__file__).parent
PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=<!-- import graph -->\n```\n).*?(?=```\n<!-- end -->)", re.DOTALL)


def graph() -> dict[str, set[str]]:
    """Room -> the other rooms that it imports."""
    rooms = {_room(path) for path in SOURCE.rglob("*.py")} - {""}
    edges: dict[str, set[str]] = {room: set() for room in rooms}
    for path in SOURCE.rglob("*.py"):
        if room := _room(path):
            edges[room] |= {_owner(name, rooms) for name in _imported(path)} - {room, ""}
    return edges


def text() -> str:
    """The graph as CONTRIBUTING.md shows it, the ground floor first."""
    edges = graph()
    heights: dict[str, int] = {}
    for room in graphlib.TopologicalSorter(edges).static_order():  # CycleError names the rooms of a cycle
        heights[room] = 1 + max((heights[other] for other in edges[room]), default=-1)
    width = max(map(len, edges))
    rooms = sorted(edges, key=lambda room: (heights[room], room))
    return "".join(f"{room:{width}}  {', '.join(sorted(edges[room]))}".rstrip() + "\n" for room in rooms)


def shown() -> str:
    """The graph that CONTRIBUTING.md has now."""
    found = BLOCK.search(PAGE.read_text())
    assert found, f"{PAGE.name} has no import graph block"
    return found[0]


def write() -> None:
    """Put the graph of today into CONTRIBUTING.md."""
    PAGE.write_text(BLOCK.sub(lambda _: text(), PAGE.read_text()))


def _room(path: Path) -> str:
    """`a` for a.py and for files of the package a, `a.b` for files of the package a/b, "" for the front door."""
    parts = path.relative_to(SOURCE).parts
    return ".".join(parts[:-1]) or path.stem.removeprefix("__init__")


def _imported(path: Path) -> set[str]:
    """Dotted names below strongticket, such as `ticket.format.read`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.removeprefix("strongticket.") for name in names if name.startswith("strongticket.")}


def _owner(name: str, rooms: set[str]) -> str:
    """The innermost room that a dotted name lies in."""
    parts = name.split(".")
    inside = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((room for room in inside if room in rooms), "")


if __name__ == "__main__":
    write() if sys.argv[1:] == ["--write"] else print(text(), end="")
