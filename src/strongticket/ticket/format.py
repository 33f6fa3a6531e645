"""What a `.ticket` file contains, and where. docs/ticket-format.md describes it for other languages.

    index     compressed lines of JSON: recipe; certificate and metadata; then a line per tensor, sorted by name
    data      the coded masks and choices one after the other, in the order of their lines
    float:X   a trained tensor X as it is

One compressed text lists the tensors, not safetensors' own header: plain JSON would cost a small network
more than its masks.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from strongticket import limits
from strongticket.choice import Choices
from strongticket.cores import cores
from strongticket.errors import TicketError, in_ticket
from strongticket.files import JsonObject, dump_json, parse_record
from strongticket.seeds import GENERATOR_VERSION, Law, law_named
from strongticket.ticket import mask_codec
from strongticket.ticket.certificate import check_binding, check_certificate, network_checksum
from strongticket.ticket.container import Entry, compress, decompress, join, split

_FLOAT_FIELDS = {"name", "checksum", "shape"}
_MASK_FIELDS = _FLOAT_FIELDS | {"kept", "lines", "bytes", "law", "scale"}
_CHOICE_FIELDS = _FLOAT_FIELDS | {"blocks", "transposed"}


@dataclass(frozen=True)
class Index:
    """The index of a file, every field checked; one record for each tensor, sorted by name."""

    recipe_text: bytes  # as it is in the file: every checksum covers these bytes
    recipe: JsonObject
    certificate: JsonObject | None
    metadata: JsonObject
    records: list[JsonObject]


@dataclass(frozen=True)
class CodedTensor:
    """A tensor as the file stores it: its line in the index, and its part of the data (none of a trained one)."""

    line: JsonObject
    data: bytes


def recipe_text(seed: int, kind: str, settings: JsonObject) -> bytes:
    """Return the index's first line: what makes the network besides its tensors."""
    return dump_json({"generator": GENERATOR_VERSION, "kind": kind, "seed": seed, "settings": settings})


def block_digest(numbers: np.ndarray) -> bytes:
    """sha256 of the numbers of one block."""
    return hashlib.sha256(np.ascontiguousarray(numbers, "<f4").reshape(-1).view(np.uint8).data).digest()


def tensor_checksum(recipe: bytes, name: str, shape: tuple[int, ...], digests: Iterable[bytes]) -> str:
    """Hash a regenerated tensor together with its name, its shape and the recipe: none can change alone.

    Its `digests` are those of its blocks of choices; of any other tensor there is one.
    """
    text = name.encode()
    digest = hashlib.sha256(hashlib.sha256(recipe).digest())
    digest.update(len(text).to_bytes(8, "little") + text)
    digest.update(b"".join(size.to_bytes(8, "little") for size in (len(shape), *shape)))
    digest.update(b"".join(digests))
    return digest.hexdigest()[:32]


def code_mask(name: str, mask: np.ndarray, law: Law, checksum: str) -> CodedTensor:
    """Code a masked tensor: `law` draws its weights, `checksum` is that of the kept ones."""
    lines, data = mask_codec.encode(mask)
    line = {
        "name": name,
        "checksum": checksum,
        "shape": list(mask.shape),
        "kept": int(np.count_nonzero(mask)),
        "lines": lines,
        "bytes": len(data),
        "law": law.name,
        "scale": law.scale,
    }
    return CodedTensor(line, data)


def choices_line(
    name: str, checksum: str, shape: tuple[int, ...], sizes: list[int], transposed: bool
) -> JsonObject:
    """The line of a tensor of choices; `sizes` are the bytes of its blocks."""
    return {
        "name": name,
        "checksum": checksum,
        "shape": list(shape),
        "blocks": sizes,
        "transposed": transposed,
    }


def chunks(
    recipe: bytes,
    certificate: JsonObject | None,
    metadata: JsonObject,
    lines: Sequence[JsonObject],
    data: Iterable[bytes],
    floats: dict[str, np.ndarray] | None = None,
) -> Iterator[bytes]:
    """Yield the file's bytes, chunk by chunk; `lines` are sorted by name, and the coded `data` in their order.

    A file that `read` would refuse for its many weights is refused before anything of it is written.
    """
    extras = dump_json({"certificate": certificate, "metadata": metadata})
    index = compress(b"\n".join([recipe, extras, *(dump_json(line) for line in lines)]))
    trained = sorted((f"float:{name}", tensor) for name, tensor in (floats or {}).items())
    entries = [Entry(name, "F32", tensor.shape) for name, tensor in trained]
    entries.append(Entry("data", "U8", (sum(map(coded_bytes, lines)),)))
    entries.append(Entry("index", "U8", (len(index),)))
    check_sizes(lines, limits.weights(sum(math.prod(entry.shape) for entry in entries)))

    def arrays() -> Iterator[bytes]:
        for _, tensor in trained:
            yield tensor.astype("<f4").tobytes()
        yield from data
        yield index

    return join(entries, arrays())


def packed_size(value: object) -> int:
    """Bytes that a value takes in an index."""
    return len(compress(dump_json(value)))


def coded_bytes(record: JsonObject) -> int:
    """How many bytes of the data belong to a tensor."""
    return int(record["bytes"] if "bytes" in record else sum(record.get("blocks", ())))


def read(data: bytes) -> tuple[Index, dict[str, dict[str, Any]]]:
    """Return the index, and laws, masks, choices and floats by their names, as a Ticket has them.

    All checks that need no regenerated weight are made; nothing is allocated before its size is checked.
    """
    arrays = split(data)
    for name in ("index", "data"):
        if name not in arrays or arrays[name].dtype != np.uint8 or arrays[name].ndim != 1:
            raise TicketError(f"tensor {name!r} is missing, or not uint8 with one axis")
    index, coded = parse_index(arrays.pop("index").tobytes()), arrays.pop("data").tobytes()
    check_sizes(index.records, limits.weights(len(data)))
    if (declared := sum(map(coded_bytes, index.records))) != len(coded):
        raise TicketError(f"the index declares {declared} bytes of data, the file has {len(coded)}")

    start = 0
    laws: dict[str, Law] = {}
    masks: dict[str, Any] = {}  # a record and its data, until all are decoded
    choices: dict[str, Choices] = {}
    floats: dict[str, np.ndarray] = {}
    for record in index.records:
        name, shape = record["name"], tuple(record["shape"])
        part = coded[start : start + coded_bytes(record)]
        start += len(part)
        with in_ticket(f"tensor {name!r}"):
            if "lines" in record:
                laws[name] = law_named(record["law"], record["scale"])
                masks[name] = (record, part)
            elif "blocks" in record:
                ends = [0, *accumulate(record["blocks"])]
                blocks = tuple(part[first:last] for first, last in pairwise(ends))
                choices[name] = Choices(shape, blocks, record["transposed"])
            else:
                floats[name] = _float(arrays.pop(f"float:{name}", None), shape)
    if arrays:
        raise TicketError(f"tensor {min(arrays)!r} is in the file but not in its index")
    with ThreadPoolExecutor(cores()) as pool:
        decoded = pool.map(lambda coded: _mask(*coded), masks.values())
        masks = dict(zip(masks, decoded, strict=True))
    return index, {"laws": laws, "masks": masks, "choices": choices, "floats": floats}


def _mask(record: JsonObject, data: bytes) -> np.ndarray:
    """The mask that a record of the index and its part of the data describe."""
    with in_ticket(f"tensor {record['name']!r}"):
        return mask_codec.decode(record["lines"], data, tuple(record["shape"]), record["kept"])


def parse_index(packed: bytes) -> Index:
    """Read a compressed index and check every field."""
    recipe, *lines = decompress(packed, "index", limits.text(len(packed))).split(b"\n")
    parsed = parse_record("recipe", recipe, {"generator", "kind", "seed", "settings"})
    if parsed["generator"] != GENERATOR_VERSION or isinstance(parsed["generator"], bool):
        raise TicketError(
            f"its weights come from generator {parsed['generator']!r}, this version of strongticket has "
            f"generator {GENERATOR_VERSION}",
            hint="Install a version of strongticket that has it.",
        )
    extras = parse_record("line 2 of the index", lines[0] if lines else b"", {"certificate", "metadata"})
    certificate, metadata = extras["certificate"], extras["metadata"]
    if not isinstance(metadata, dict):
        raise TicketError(f"the metadata must be an object, got a {type(metadata).__name__}")
    index = Index(recipe, parsed, certificate, metadata, list(_tensor_records(lines[1:])))
    check_certificate(certificate)
    checksums = {record["name"]: record["checksum"] for record in index.records}
    check_binding(certificate, network_checksum(recipe, checksums))
    return index


def _tensor_records(lines: list[bytes]) -> Iterator[JsonObject]:
    """Each tensor's line with its fields checked; names in strictly ascending order."""
    last = ""
    for number, line in enumerate(lines, start=3):
        where = f"line {number} of the index"
        record = parse_record(where, line, _FLOAT_FIELDS, _MASK_FIELDS, _CHOICE_FIELDS)
        name, shape = record["name"], record["shape"]
        if not isinstance(name, str) or not isinstance(record["checksum"], str):
            raise TicketError(f"{where}: name and checksum must be strings, got {name!r:.60}")
        if number > 3 and name <= last:
            raise TicketError(f"{where}: tensor {name!r} is repeated or out of order, it follows {last!r}")
        if not _are_counts(shape) or len(shape) > 32:
            raise TicketError(f"tensor {name!r}: shape must be a list of at most 32 sizes, got {shape!r}")
        for count in ("kept", "bytes") if "lines" in record else ():
            if not _are_counts([record[count]]):
                raise TicketError(f"tensor {name!r}: {count} must be a count, got {record[count]!r}")
        if "blocks" in record and (
            not _are_counts(record["blocks"]) or not isinstance(record["transposed"], bool)
        ):
            raise TicketError(f"tensor {name!r}: expected the sizes of its blocks, and transposed or not")
        last = name
        yield record


def check_sizes(records: Sequence[JsonObject], max_weights: int) -> None:
    """Raise TicketError if the tensors of an index have more weights than this, or keep more than they have."""
    total = 0
    for record in records:
        total += math.prod(record["shape"])
        if total > max_weights or any(axis > max_weights for axis in record["shape"]):
            raise limits.exceeded(
                f"tensor {record['name']!r} of shape {record['shape']} exceeds the limit of {max_weights} weights"
            )
        if record.get("kept", 0) > math.prod(record["shape"]):
            raise TicketError(
                f"tensor {record['name']!r} keeps {record['kept']} of {math.prod(record['shape'])} weights"
            )


def _float(tensor: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if tensor is None or tensor.dtype != np.float32 or tensor.shape != shape:
        found = "none" if tensor is None else f"{tensor.dtype} {tensor.shape}"
        raise TicketError(f"the index declares a float32 tensor of shape {shape}, the file has {found}")
    return tensor.astype(np.float32)


def _are_counts(value: object) -> bool:
    return isinstance(value, list) and all(type(count) is int and count >= 0 for count in value)
