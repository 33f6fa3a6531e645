"""Ticket files made by hand: the container written by safetensors itself, so that it is checked independently."""

import hashlib

import numpy as np
import safetensors.numpy

from strongticket.ticket import container


def join(arrays: dict[str, np.ndarray], format: str) -> bytes:
    """A file with these arrays and the right digest, whatever they hold."""
    body = safetensors.numpy.save(arrays | {"sha256": np.zeros(32, np.uint8)}, {"format": format})[:-32]
    return body + hashlib.sha256(body).digest()


def index_lines(file: bytes) -> list[bytes]:
    """The lines of a file's index."""
    packed = container.split(file)["index"].tobytes()
    return container.decompress(packed, "index", at_most=1 << 26).split(b"\n")


def with_index(file: bytes, text: bytes) -> bytes:
    """The file with another text as its index, and the right digest."""
    packed = np.frombuffer(container.compress(text), np.uint8)
    return join(container.split(file) | {"index": packed}, container.FORMAT)
