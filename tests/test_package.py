"""The package as a whole: its names, its weight, and which way imports go."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import strongticket

SOURCE = Path(strongticket.__file__).parent
# From the ground up; a room may import those before it and itself.
ROOMS = (
    ("errors",),
    ("checks", "files", "workers"),
    ("seeds", "subset_sum", "theory"),
    ("ticket",),
    ("data", "nets"),
    ("build", "search"),
    ("pretrained", "report"),
    ("experiments",),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def test_version_is_a_number():
    assert strongticket.__version__[0].isdigit()


@pytest.mark.parametrize("name", strongticket.__all__)
def test_every_public_name_is_there_and_documented(name):
    public = getattr(strongticket, name)
    assert name == "__version__" or public.__doc__


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        strongticket.sovle  # noqa: B018


def test_import_is_light():
    heavy = ["torch", "numba", "scipy", "transformers", "matplotlib", "plotly", "pandas"]
    program = f"import sys, strongticket; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def imports_of(path: Path) -> set[str]:
    """Rooms of strongticket that a file imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("strongticket.")}
    return rooms & LEVEL.keys()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    assert room in LEVEL, f"a new room {room!r} needs a place in ROOMS"
    above = {other for other in imports_of(path) if other != room and LEVEL[other] > LEVEL[room]}
    assert not above
