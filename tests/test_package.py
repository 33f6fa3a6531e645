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


def test_imports_go_one_way_between_rooms_and_sub_rooms():
    """graphlib raises CycleError and names the rooms of a cycle."""
    graph = import_graph.graph()
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert order.index("errors") < order.index("ticket") < order.index("cli")


def test_the_ground_floor_knows_nothing_above_it():
    graph = import_graph.graph()
    ground = {"errors", "checks", "compiled", "files", "lazy", "limits", "settings", "work"}
    for room in (*ground, "seeds", "subset_sum", "theory"):
        assert graph[room] <= ground
