"""Finished pieces -> a ticket file, one piece in memory at a time."""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from strongticket.container import dump_json, zstd
from strongticket.errors import TicketError
from strongticket.pretrained.piece import Finished
from strongticket.ticket_file import FORMAT


def write_ticket(
    path: Path,
    recipe: bytes,
    metadata: dict[str, Any],
    names: Iterable[str],
    finished: Callable[[str], Finished],
) -> None:
    """The same bytes as Ticket.save. names: `inner` of every piece; finished(name): that piece."""
    # (tensor, its line, its piece, its place there), in the order of the file
    tensors = sorted(
        (line["name"], dump_json(line), inner, place)
        for inner in names
        for place, line in enumerate(finished(inner).lines)
    )
    extras = dump_json({"certificate": None, "metadata": metadata})
    index = zstd(b"\n".join([recipe, extras, *(line for _, line, _, _ in tensors)]))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            digest = hashlib.sha256()
            masks = sum(json.loads(line)["bytes"] for _, line, _, _ in tensors)
            for part in chain([_header(len(index), masks), index], _masks(tensors, finished)):
                file.write(part)
                digest.update(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise TicketError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _header(index: int, masks: int) -> bytes:
    """The header that safetensors writes for these sizes: sorted names, padded to eight bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": FORMAT}}
    start = 0
    for name, size in (("index", index), ("masks", masks), ("sha256", hashlib.sha256().digest_size)):
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _masks(
    tensors: list[tuple[str, bytes, str, int]], finished: Callable[[str], Finished]
) -> Iterator[bytes]:
    last, piece = None, None
    for _, _, inner, place in tensors:
        if piece is None or inner != last:
            last, piece = inner, finished(inner)
        yield piece.coded[place]
