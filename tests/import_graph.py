"""Which module and which package imports which; `python -m tests.import_graph --write` updates CONTRIBUTING.md.

Imports inside functions and under TYPE_CHECKING count. A name that an `__init__.pyi` lists counts as an import of the
module that defines it. What is not counted: the root `__init__`, and packages that are looked up by a string.
"""

import ast
import graphlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import strongticket

SOURCE = Path(strongticket.__file__).parent
PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=<!-- import graph -->\n```\n).*?(?=```\n<!-- end -->)", re.DOTALL)
Graph = dict[str, set[str]]


def packages() -> Graph:
    """Package -> the other packages that it imports; a module directly below strongticket counts as one."""
    package = {_module(path): _package(path) for path in SOURCE.rglob("*.py")}
    edges: Graph = {name: set() for name in package.values() if name}
    for module, imported in modules().items():
        if name := package[module]:
            edges[name] |= {package[other] for other in imported} - {name}
    return edges


def modules() -> Graph:
    """Module -> the other modules that it imports."""
    paths, listed = {_module(path): path for path in SOURCE.rglob("*.py")}, dict(_listed_names())
    edges: Graph = {}
    for module, path in paths.items():
        names = _imported(path)
        while stubs := names & listed.keys():
            names = names - stubs | {listed[name] for name in stubs}
        edges[module] = {_owner(name, paths.keys()) for name in names} - {module, ""}
    return edges


def private_imports() -> list[str]:
    """`a imports b._c`, for every module with a leading underscore that another package imports."""
    paths = {_module(path): path for path in SOURCE.rglob("*.py")}
    return [
        f"{module} imports {other}"
        for module, path in paths.items()
        for other in {_owner(name, paths.keys()) for name in _imported(path)} - {""}
        if "._" in other and _package(path) != _package(paths[other])
    ]


def text() -> str:
    """The packages as CONTRIBUTING.md shows them: each one after those that it imports."""
    edges = packages()
    heights: dict[str, int] = {}
    for package in graphlib.TopologicalSorter(
        edges
    ).static_order():  # CycleError names the packages of a cycle
        heights[package] = 1 + max((heights[other] for other in edges[package]), default=-1)
    width = max(map(len, edges))
    order = sorted(edges, key=lambda package: (heights[package], package))
    return "".join(f"{name:{width}}  {', '.join(sorted(edges[name]))}".rstrip() + "\n" for name in order)


def shown() -> str:
    """The graph that CONTRIBUTING.md has now."""
    found = BLOCK.search(PAGE.read_text())
    assert found, f"{PAGE.name} has no import graph block"
    return found[0]


def write() -> None:
    """Put the graph of today into CONTRIBUTING.md."""
    PAGE.write_text(BLOCK.sub(lambda _: text(), PAGE.read_text()))


def _module(path: Path) -> str:
    """`a.b` for a/b.py, `a` for a/__init__.py, "" for the root."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(path: Path) -> str:
    """`a` for a.py and for files of the package a, `a.b` for files of the package a/b, "" for the root."""
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


def _listed_names() -> Iterator[tuple[str, str]]:
    """(`nets.certify`, `nets.certifying.certify`) for every name that an `__init__.pyi` lists."""
    for path in SOURCE.rglob("__init__.pyi"):
        inside = "".join(f"{part}." for part in path.parent.relative_to(SOURCE).parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    yield f"{inside}{alias.name}", f"{inside}{node.module}.{alias.name}"


def _owner(name: str, modules: set[str]) -> str:
    """The module that a dotted name is defined in, or the package that exports it."""
    parts = name.split(".")
    inside = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((module for module in inside if module in modules), "")


if __name__ == "__main__":
    write() if sys.argv[1:] == ["--write"] else print(text(), end="")
