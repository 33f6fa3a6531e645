"""Would a test notice? Lines broken at random places: `python -m benchmarks.mutations [--json] [--quick]`.

In a copy of the project one comparison is turned round, one number changed, + and − or `and` and `or` swapped
or a `not` dropped; the tests of that file run until one fails. About two minutes a mutation.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import figure, main, tell

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/strongticket")
COUNT, QUICK = 10, 3
SEED = 0
SECONDS = 600  # for the tests of one mutation; a loop without end is noticed too
UNTOUCHED = ("cli", "report", "__init__.py")  # what is printed and drawn
PAGES = ("_page.py", "_plots.py", "chart.py")
# Files without tests of their own name.
TESTS = {
    "__main__": ["cli"],
    "checks": ["nets"],
    "errors": ["test_package.py"],
    "lazy": ["test_package.py"],
    "limits": ["ticket"],
}
OPPOSITE: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclass(frozen=True)
class Mutation:
    """Columns [start, end) of a line, counted in bytes as ast does, become `new`."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        old = lines[self.line - 1].encode()
        lines[self.line - 1] = (old[: self.start] + self.new.encode() + old[self.end :]).decode()
        return "".join(lines)


def mutations_of(path: Path, text: str) -> list[Mutation]:
    """All places of a file that can be broken, in the order of the file."""
    lines = [line.encode() for line in text.splitlines()]

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Mutation]:
        if type(operator) not in OPPOSITE or left.end_lineno != right.lineno:
            return
        assert left.end_col_offset is not None
        old, new = OPPOSITE[type(operator)]
        gap = lines[right.lineno - 1][left.end_col_offset : right.col_offset]
        at = left.end_col_offset + gap.find(old.encode())
        yield Mutation(path, right.lineno, at, at + len(old), new)

    def places(node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
                yield from between(left, right, operator)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from between(left, right, node.op)
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            if node.operand.lineno == node.lineno:
                yield Mutation(path, node.lineno, node.col_offset, node.operand.col_offset, "")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            assert node.end_col_offset is not None
            new = repr(node.value + 1 if type(node.value) is int else node.value * 1.5)
            yield Mutation(path, node.lineno, node.col_offset, node.end_col_offset, new)

    return [mutation for node in _code(ast.parse(text)) for mutation in places(node)]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs: not annotations, and not what f-strings say."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)


def tests_of(path: Path) -> list[str]:
    """The tests that mirror a file of the package, those of its own name first."""
    parts, stem = path.relative_to(PACKAGE).parts, path.stem
    if len(parts) == 1:
        named = TESTS.get(stem) or [each.name for each in sorted((ROOT / "tests").glob(f"test_{stem}*.py"))]
        return [f"tests/{name}" for name in named]
    folder = Path("tests", parts[0])
    own = [str(folder / each.name) for each in sorted((ROOT / folder).glob(f"test_{parts[0]}_{stem}.py"))]
    return [*own, str(folder)]


def noticed(copy: Path, mutation: Mutation, original: str) -> bool:
    """Whether the tests fail on the broken copy; it is whole again after that."""
    broken = mutation.apply(original)
    ast.parse(broken)
    (copy / mutation.path).write_text(broken)
    try:
        # Compiled code that calls into another file is not compiled again when that file changes.
        kernels = f".numba-{mutation.path.stem}-{mutation.line}" if "numba" in original else ".numba"
        return not passes(copy, tests_of(mutation.path), kernels)
    finally:
        (copy / mutation.path).write_text(original)


def passes(copy: Path, tests: list[str], kernels: str = ".numba") -> bool:
    environment = os.environ | {
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",  # two versions of a file may have the same second and size
        "NUMBA_CACHE_DIR": str(copy / kernels),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "auto", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(
            f"pytest {' '.join(tests)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
    return done.returncode == 0


def run(*, quick: bool = False, count: int = COUNT, seed: int = SEED) -> dict[str, Any]:
    rng = random.Random(seed)
    files = [
        path.relative_to(ROOT)
        for path in sorted((ROOT / PACKAGE).rglob("*.py"))
        if not set(UNTOUCHED) & set(path.relative_to(ROOT / PACKAGE).parts) and not path.name.endswith(PAGES)
    ]
    texts = {path: (ROOT / path).read_text() for path in files}
    places = [mutation for path in files for mutation in mutations_of(path, texts[path])]
    chosen = rng.sample(places, QUICK if quick else count)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "demo", "results"))
        whole: dict[tuple[str, ...], bool] = {}
        for mutation in chosen:
            tests = tuple(tests_of(mutation.path))
            start = time.perf_counter()
            if tests not in whole:
                whole[tests] = bool(tests) and passes(copy, list(tests))
            if not whole[tests]:
                raise RuntimeError(f"the tests of {mutation.path} ({tests}) fail before anything is broken")
            text = texts[mutation.path]
            old = text.splitlines()[mutation.line - 1]
            rows.append(
                {
                    "file": str(mutation.path.relative_to(PACKAGE)),
                    "line": mutation.line,
                    "was": old.strip(),
                    "became": mutation.apply(text).splitlines()[mutation.line - 1].strip(),
                    "noticed": noticed(copy, mutation, text),
                    "seconds": time.perf_counter() - start,
                }
            )
            tell(f"{rows[-1]['file']}:{mutation.line} {'noticed' if rows[-1]['noticed'] else 'SURVIVED'}")
    seen = sum(row["noticed"] for row in rows)
    note = f"of {len(rows)} broken lines, out of {len(places)} places in {len(files)} files"
    return {
        "mutations": rows,
        "must_show": [figure("broken lines that a test noticed", seen, ">=", 0.8 * len(rows), note=note)],
    }


if __name__ == "__main__":
    main(__doc__ or "", run, quick="three mutations instead of ten")
