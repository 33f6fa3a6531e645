"""The numbers of other readers, in JavaScript and in torch, against the library's, bit by bit."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from strongticket.choice import in_torch
from strongticket.ticket import Ticket

ROOT = Path(__file__).parents[2]
GALLERY = {
    "digits": ROOT / "gallery/digits.ticket",
    "language": ROOT / "src/strongticket/reproduce/language.ticket",
    "stories-4bit": ROOT / "gallery/stories-4bit.ticket",
    "stories-6bit": ROOT / "gallery/stories-6bit.ticket",
}
Run = Callable[..., list[Any]]  # jobs of jobs.js -> their results


def unequal_in_torch(ticket: Ticket) -> int:
    """How many numbers of the ticket's choices torch reads with another bit than the library."""
    differ = 0
    for name, choices in ticket.choices.items():
        made = torch.empty(choices.matrix)
        for rows, data in zip(choices.rows(), choices.blocks, strict=True):
            in_torch.decode_rows(data, rows.start, ticket.seed, name, made[rows.start : rows.stop])
        ours, theirs = choices.tensor(made.numpy()), ticket.weights(name)
        differ += int((ours.view(np.uint32) != theirs.view(np.uint32)).sum())
    return differ


def unequal_bits(javascript: Run, file: bytes, ticket: Ticket) -> tuple[int, int]:
    """(weights compared, weights that differ in any bit) of the ticket's tensors."""
    found = javascript({"do": "tensors", "file": file})[0]
    assert found.keys() == ticket.shapes().keys()
    compared = differ = 0
    for name, text in found.items():
        ours = np.frombuffer(base64.b64decode(text), "<u4")
        theirs = ticket.weights(name).reshape(-1).view(np.uint32)
        assert ours.shape == theirs.shape
        compared += ours.size
        differ += int((ours != theirs).sum())
    return compared, differ
