"""Named arrays in one safetensors file that ends with its own sha256; zstd and JSON that trust nothing."""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import zstandard

from strongticket.errors import TicketError

_DIGEST = "sha256"  # the last tensor of a file: the hash of all bytes before it
_DIGEST_SIZE = 32
_TYPES = {"U8": "u1", "F32": "<f4"}
_ZSTD_LEVEL = 9


def join(tensors: dict[str, np.ndarray], format: str) -> bytes:
    """uint8 and float32 arrays -> file; `format` is the one entry of its metadata."""
    # safetensors sorts by type, uint8 last, then by name; several metadata entries would have no fixed order.
    empty_digest = np.zeros(_DIGEST_SIZE, np.uint8)
    body = safetensors.numpy.save(tensors | {_DIGEST: empty_digest}, {"format": format})[:-_DIGEST_SIZE]
    return body + hashlib.sha256(body).digest()


def split(data: bytes, format: str) -> dict[str, np.ndarray]:
    """The inverse of join; TicketError for whatever join would not have written."""
    if len(data) < 8 + _DIGEST_SIZE:
        raise TicketError(f"it has {len(data)} bytes: too short for a ticket")
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8 - _DIGEST_SIZE:
        raise TicketError(
            f"its header takes {length} bytes, the file has {len(data)}: truncated, or no ticket"
        )
    # Read before the digest so that a file of another version is not called damaged, and because safetensors
    # itself accepts a name twice.
    header = parse_json("header", data[8 : 8 + length])
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    found = metadata.get("format") if isinstance(metadata, dict) else None
    if found != format:
        raise TicketError(f"its format is {found!r}, this version of strongticket reads {format!r}")
    if hashlib.sha256(memoryview(data)[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:]:
        raise TicketError(
            f"damaged: the sha256 in its last {_DIGEST_SIZE} bytes is not that of the "
            f"{len(data) - _DIGEST_SIZE} bytes before them. Copy the file again from where it came"
        )
    try:
        entries = dict(safetensors.deserialize(data))
    except safetensors.SafetensorError as error:
        raise TicketError(f"not a valid safetensors file: {error}") from None
    tensors = {}
    for name, entry in entries.items():
        if entry["dtype"] not in _TYPES:
            raise TicketError(f"tensor {name!r} has type {entry['dtype']}, expected {' or '.join(_TYPES)}")
        tensors[name] = np.frombuffer(entry["data"], _TYPES[entry["dtype"]]).reshape(entry["shape"])
    digest = tensors.pop(_DIGEST, None)
    if digest is None or digest.tobytes() != data[-_DIGEST_SIZE:]:
        raise TicketError(f"tensor {_DIGEST!r} is not the file's last {_DIGEST_SIZE} bytes")
    return tensors


def zstd(data: bytes, *, level: int = _ZSTD_LEVEL) -> bytes:
    return zstandard.ZstdCompressor(level=level, write_content_size=True).compress(data)


def unzstd(data: bytes, what: str, *, size: int | None = None, at_most: int | None = None) -> bytes:
    """One frame of exactly `size` or of `at_most` bytes; one that declares otherwise is refused unread."""
    try:
        declared = zstandard.frame_content_size(data)
        if (size is not None and declared != size) or (at_most is not None and not 0 <= declared <= at_most):
            expected = size if size is not None else f"at most {at_most}"
            raise TicketError(f"zstd frame of the {what} declares {declared} bytes, expected {expected}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=declared, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise TicketError(f"zstd frame of the {what} is damaged: {error}") from None


def dump_json(value: Any) -> bytes:
    """One line with sorted keys and no spaces: equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def parse_json(what: str, text: bytes) -> Any:
    """JSON as the standard has it: no key twice, no NaN or Infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            raise ValueError(f"a key is there twice among {keys}")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise TicketError(f"{what} is not valid JSON: {error}") from None


def parse_record(what: str, text: bytes, fields: set[str]) -> dict[str, Any]:
    """A JSON object with exactly these fields."""
    record = parse_json(what, text)
    if not isinstance(record, dict) or set(record) != fields:
        found = sorted(record) if isinstance(record, dict) else type(record).__name__
        raise TicketError(f"{what}: expected an object with {sorted(fields)}, got {found}")
    return record


def plain(name: str, value: Any) -> dict[str, Any]:
    """A copy of a dict as JSON gives it back (tuples become lists), so that saving it changes nothing."""
    if not isinstance(value, dict):
        raise TicketError(f"{name} must be a dict, got {type(value).__name__}")
    try:
        return parse_json(name, dump_json(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise TicketError(f"{name} must be what JSON can hold: {error}") from None


def write_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write bytes, or parts of them, beside the place, then rename: an error leaves an older file as it was."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise TicketError(
            f"cannot write {path}: {error.strerror or error}. Check the path, the rights and the space"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # where it could not be made, it cannot be removed either
            temporary.unlink()
