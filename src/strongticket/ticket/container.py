"""Named arrays in one safetensors file that ends with its own sha256, and compressed text of a limited size."""

import hashlib
import io
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import safetensors

from strongticket.errors import TicketError
from strongticket.files import JsonObject, parse_json

FORMAT = "strongticket ticket 3"  # the only entry of a file's metadata

_DIGEST = "sha256"  # the last array of a file: the hash of all bytes before it
_DIGEST_SIZE = 32
_MAX_HEADER = 1 << 26  # bytes
_ENTRY_FIELDS = {"dtype", "shape", "data_offsets"}
_TYPES = {"U8": "u1", "F32": "<f4"}


class Entry(NamedTuple):
    """One array of a file; its type is U8 or F32."""

    name: str
    type: str
    shape: tuple[int, ...]


def join(entries: Sequence[Entry], arrays: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the file's bytes, chunk by chunk.

    Args:
        entries: in the order in which safetensors writes them, F32 before U8 and then by name.
        arrays: their contents in that order, in chunks of any size.
    """
    digest = hashlib.sha256()
    header = _header([*entries, Entry(_DIGEST, "U8", (_DIGEST_SIZE,))])
    digest.update(header)
    yield header
    for chunk in arrays:
        digest.update(chunk)
        yield chunk
    yield digest.digest()


def _header(entries: Sequence[Entry]) -> bytes:
    """The header that safetensors writes for these arrays: padded to eight bytes, its length first."""
    header: JsonObject = {"__metadata__": {"format": FORMAT}}
    start = 0
    for name, kind, shape in entries:
        size = math.prod(shape) * np.dtype(_TYPES[kind]).itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [start, start + size]}
        start += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def split(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a file; TicketError for anything that `join` would not have written."""
    # Read before the digest so that a file of another version is not called damaged, and because safetensors
    # itself accepts a repeated name.
    read_header(io.BytesIO(data), len(data))
    if hashlib.sha256(memoryview(data)[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:]:
        raise TicketError(
            f"damaged: the sha256 in its last {_DIGEST_SIZE} bytes is not that of the "
            f"{len(data) - _DIGEST_SIZE} bytes before them",
            hint="Get a fresh copy of the file.",
        )
    try:
        entries = dict(safetensors.deserialize(data))
    except safetensors.SafetensorError as error:
        raise TicketError(f"not a valid safetensors file: {error}") from None
    arrays = {}
    for name, entry in entries.items():
        if entry["dtype"] not in _TYPES:
            raise TicketError(f"tensor {name!r} has type {entry['dtype']}, expected {' or '.join(_TYPES)}")
        arrays[name] = np.frombuffer(entry["data"], _TYPES[entry["dtype"]]).reshape(entry["shape"])
    digest = arrays.pop(_DIGEST, None)
    if digest is None or digest.tobytes() != data[-_DIGEST_SIZE:]:
        raise TicketError(f"tensor {_DIGEST!r} is not the file's last {_DIGEST_SIZE} bytes")
    return arrays


def read_header(file: BinaryIO, size: int) -> JsonObject:
    """Return the safetensors header of a ticket of this size, and leave `file` where the arrays begin.

    Raises:
        TicketError: it is too long, of another format or has other fields than a ticket's.
    """
    if size < 8 + _DIGEST_SIZE:
        raise TicketError(f"it has {size} bytes: too short for a ticket")
    length = int.from_bytes(file.read(8), "little")
    if length > min(_MAX_HEADER, size - 8 - _DIGEST_SIZE):
        raise TicketError(f"its header takes {length} bytes, the file has {size}: truncated, or not a ticket")
    header = parse_json("header", file.read(length))
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    found = metadata.get("format") if isinstance(metadata, dict) else None
    if found != FORMAT:
        raise TicketError(
            f"its format is {found!r:.60}, this version of strongticket reads {FORMAT!r}", hint=_hint(found)
        )
    for name, entry in header.items():
        fields = {"format"} if name == "__metadata__" else _ENTRY_FIELDS
        if not isinstance(entry, dict) or entry.keys() != fields:
            raise TicketError(f"its header has unknown or missing fields at {name!r:.60}")
    return dict(header)


def _hint(found: object) -> str:
    """What to do with a file of another format."""
    if isinstance(found, str) and found.startswith("strongticket network"):
        return "This is a saved network: `strongticket build` makes a ticket of it."
    if found in ("strongticket ticket 1", "strongticket ticket 2"):
        return f"strongticket 0.{str(found)[-1]} reads it. Build or search it again with this version."
    return ""


def compress(text: bytes) -> bytes:
    """Deflate a text, with zlib's header: what every browser can unpack."""
    return zlib.compress(text, 9)


def decompress(data: bytes, what: str, at_most: int) -> bytes:
    """Unpack a text of at most so many bytes; TicketError for a longer or damaged one."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, at_most)
    except zlib.error as error:
        raise TicketError(f"the {what} is damaged: {error}") from None
    if unpacking.unconsumed_tail:
        raise TicketError(f"the {what} has more than {at_most:,} bytes, which is the limit")
    if not unpacking.eof or unpacking.unused_data:
        raise TicketError(f"the {what} is damaged: its text ends early or late")
    return text
