"""A small searched ticket and its Hugging Face folder, for all tests of this package."""

import pytest

from strongticket.builders import build
from strongticket.searching import preset, search


@pytest.fixture(scope="session")
def ticket(tmp_path_factory):
    story = tmp_path_factory.mktemp("text") / "story.txt"
    story.write_text("once upon a time there was a ticket. " * 200)
    config = preset("paper-laptop", steps=2, dim=16, heads=2, layers=2, context=16, data=str(story))
    return search(config).ticket


@pytest.fixture(scope="session")
def folder(ticket, tmp_path_factory):
    return ticket.save_pretrained(tmp_path_factory.mktemp("hub") / "saved")


@pytest.fixture(scope="session")
def built_folder(ticket, tmp_path_factory):
    """A ticket by choice of the same network."""
    return build(ticket.network(), tolerance=1e-4, workers=1).save_pretrained(
        tmp_path_factory.mktemp("hub") / "built"
    )
