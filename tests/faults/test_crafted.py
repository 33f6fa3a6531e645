"""The quick part of crafted tickets, odd model folders and extremes of `generate`."""

import sys

import pytest
from safetensors import safe_open

pytest.importorskip("transformers", reason="needs strongticket[huggingface]")

from tests.faults.crafted_tickets import craft_tickets
from tests.faults.model_folders import open_folders
from tests.faults.outside import Outside, make_outside


def test_crafted_tickets_are_refused_or_read_and_never_run_code():
    found = craft_tickets(64)
    assert found["wrong"] == []
    assert not found["executed"]
    assert found["files_written"] == found["files_read_outside"] == []
    assert found["memory_bytes"] - found["memory_before_bytes"] < 200e6


def test_odd_model_folders_and_extremes_of_generate():
    found = open_folders(45)
    assert found["wrong"] == []
    assert not found["executed"]
    assert found["files_read_outside"] == []
    assert found["generate done"] > 10
    assert found["generate refused"] > 10
    assert found["memory_bytes"] - found["memory_before_bytes"] < 200e6


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_files_read_outside_are_noticed(tmp_path):
    _, outside = make_outside(tmp_path)
    watch = Outside(outside)
    assert len(list(outside.iterdir())) == 5
    assert watch.opened() == []
    (outside / "merges.txt").read_text()
    with safe_open(outside / "model.safetensors", "np"):
        assert watch.opened() == ["merges.txt", "model.safetensors"]
