"""Shared by the search tests: one thread, and settings small enough for a fraction of a second."""

import pytest
import torch

from strongticket.search import preset


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tiny(tmp_path):
    """Settings of a search that takes a moment: a text with structure, a one-layer model."""
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{i} times {j} is {i * j}. " for i in range(20) for j in range(20)))
    return preset(
        "paper-laptop", data=str(text), cache=str(tmp_path / "cache"), cpu=True,
        layers=1, heads=2, dim=16, context=16, steps=6, batch=4, micro_batch=4, warmup=2,
    )  # fmt: skip
