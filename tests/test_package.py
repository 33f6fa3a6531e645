"""The package as a whole: its names, its weight, and which way imports go."""

import graphlib
import subprocess
import sys
from importlib.util import find_spec

import pytest
from tests import import_graph
from tests.conftest import CHECKED

import strongticket


def test_version_is_a_number():
    assert strongticket.__version__[0].isdigit()


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="attribute sovle"):
        strongticket.sovle  # noqa: B018


def test_no_package_hides_a_function_of_the_same_name():
    for path in import_graph.SOURCE.iterdir():
        assert path.stem not in strongticket.__all__, (
            f"import strongticket.{path.stem} would hide the function"
        )


def test_the_modules_whose_shapes_are_checked_exist():
    assert [name for name in CHECKED if find_spec(name) is None] == []


def test_import_is_light():
    heavy = ["torch", "numba", "scipy", "transformers", "matplotlib", "plotly", "pandas"]
    program = f"import sys, strongticket; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_imports_go_one_way_between_packages_and_between_modules():
    """graphlib raises CycleError and names the modules of a cycle."""
    for graph in (import_graph.packages(), import_graph.modules()):
        order = list(graphlib.TopologicalSorter(graph).static_order())
        assert order.index("errors") < order.index("ticket") < order.index("cli")


def test_a_module_with_an_underscore_is_not_imported_from_another_package():
    assert import_graph.private_imports() == []


def test_imports_are_found_wherever_they_are(tmp_path, monkeypatch):
    """At the top, under TYPE_CHECKING, inside a function, and through the names that a package lists."""
    files = {
        "a.py": "from strongticket import b\nif TYPE_CHECKING:\n    import strongticket.c",
        "b.py": "def f():\n    from strongticket.p import x",
        "c.py": "from strongticket.p._q import y",
        "p/_q.py": "",
        "p/__init__.py": "",
        "p/__init__.pyi": "from ._q import x as x",
    }
    (tmp_path / "p").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(import_graph, "SOURCE", tmp_path)
    imports = {"a": {"b", "c"}, "b": {"p._q"}, "c": {"p._q"}}
    assert import_graph.modules() == imports | {"p": set(), "p._q": set()}
    assert import_graph.packages() == {"a": {"b", "c"}, "b": {"p"}, "c": {"p"}, "p": set()}
    assert import_graph.private_imports() == ["c imports p._q"]


def test_the_base_knows_nothing_above_it():
    graph = import_graph.packages()
    base = {"errors", "checks", "compiled", "cores", "files", "lazy", "limits", "settings", "work"}
    for package in (*base, "rans", "seeds", "subset_sum", "theory"):
        assert graph[package] <= base
    assert graph["choice"] <= base | {"rans", "seeds"}
