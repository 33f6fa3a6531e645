"""CONTRIBUTING.md is true."""

from tests import import_graph


def test_the_import_graph_on_the_page_is_the_one_of_the_code():
    shown, real = import_graph.shown(), import_graph.text()
    assert shown == real, "run `python -m tests.import_graph --write` and commit CONTRIBUTING.md"
