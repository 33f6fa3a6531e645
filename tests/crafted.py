"""Ticket files made by hand: the container written by safetensors itself, so that it is checked independently."""

import hashlib

import numpy as np
import safetensors.numpy


def join(arrays: dict[str, np.ndarray], format: str) -> bytes:
    """A file with these arrays and the right digest, whatever they hold."""
    body = safetensors.numpy.save(arrays | {"sha256": np.zeros(32, np.uint8)}, {"format": format})[:-32]
    return body + hashlib.sha256(body).digest()
