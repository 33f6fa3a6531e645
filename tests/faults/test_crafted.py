"""The quick part of crafted tickets, odd model folders and extremes of `generate`."""

import pytest

pytest.importorskip("transformers", reason="needs strongticket[huggingface]")

from tests.faults.crafted_tickets import craft_tickets
from tests.faults.model_folders import open_folders


def test_crafted_tickets_are_refused_or_read_and_never_run_code():
    found = craft_tickets(24)
    assert found["wrong"] == []
    assert not found["executed"]
    assert found["files_written"] == []
    assert found["memory_bytes"] - found["memory_before_bytes"] < 200e6


def test_odd_model_folders_and_extremes_of_generate():
    found = open_folders(12)
    assert found["wrong"] == []
    assert not found["executed"]
    assert found["generate done"] > 10
    assert found["generate refused"] > 10
    assert found["memory_bytes"] - found["memory_before_bytes"] < 200e6
