"""Shared by the search tests: one thread, and settings small enough for a fraction of a second."""

import pytest
import torch
from tests.faults.checkpoints import tiny_search


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tiny(tmp_path):
    """Settings of a search that takes a moment: a text with structure, a one-layer model."""
    return tiny_search(tmp_path).changed(steps=6, save_every=0)
