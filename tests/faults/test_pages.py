"""The quick part of the attack on results pages."""

from tests.faults.pages import draw_pages


def test_pages_from_elsewhere_are_refused_or_drawn_safely():
    found = draw_pages(150)
    assert found["wrong"] == []
    assert found["crafted"] >= 50
    assert found["refused"] + found["drawn"] == found["crafted"] + found["fuzzed"]
    assert found["files_read_outside"] == []
    assert found["memory_bytes"] < 200e6
