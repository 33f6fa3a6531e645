"""What a `.ticket` file contains, and where. docs/ticket-format.md describes it for other languages.

    index     zstd of lines of JSON: recipe; certificate and metadata; then a line per tensor, sorted by name
    masks     the coded masks one after the other, in the order of their lines
    float:X   a trained tensor X as it is

One compressed text lists the tensors, not safetensors' own header: plain JSON would cost a small network
more than its masks.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from strongticket import limits
from strongticket.cores import cores
from strongticket.errors import TicketError, in_ticket
from strongticket.files import JsonObject, dump_json, parse_record
from strongticket.seeds import GENERATOR_VERSION, Law, draw, law_named
from strongticket.ticket import balanced, mask_codec
from strongticket.ticket.certificate import check_binding, check_certificate, network_checksum
from strongticket.ticket.container import Entry, join, split, unzstd, zstd

BALANCED = "balanced"  # codec of a mask that follows from the weights

_RECIPE_FIELDS = {"generator", "kind", "seed", "settings"}
_FLOAT_FIELDS = {"name", "checksum", "shape"}
_MASK_FIELDS = _FLOAT_FIELDS | {"kept", "codec", "bytes", "law", "scale"}


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
    """A tensor as the file stores it: its line in the index, and its coded mask (empty for a trained one)."""

    line: JsonObject
    data: bytes

    @property
    def name(self) -> str:
        return str(self.line["name"])


def recipe_text(seed: int, kind: str, settings: JsonObject) -> bytes:
    """Return the index's first line: what makes the network besides its tensors."""
    return dump_json({"generator": GENERATOR_VERSION, "kind": kind, "seed": seed, "settings": settings})


def parse_recipe(text: bytes) -> JsonObject:
    """Return kind, seed and settings; TicketError if the weights are of another generator."""
    recipe = parse_record("recipe", text, _RECIPE_FIELDS)
    if recipe["generator"] != GENERATOR_VERSION or isinstance(recipe["generator"], bool):
        raise TicketError(
            f"its weights come from generator {recipe['generator']!r}, this version of strongticket has "
            f"generator {GENERATOR_VERSION}",
            hint="Install a version of strongticket that has it.",
        )
    return recipe


def tensor_checksum(recipe: bytes, name: str, shape: tuple[int, ...], blocks: Iterable[np.ndarray]) -> str:
    """Hash a regenerated tensor together with its name, its shape and the recipe: none can change alone.

    The weights come in `blocks`: all at once, or some rows at a time.
    """
    text = name.encode()
    digest = hashlib.sha256(hashlib.sha256(recipe).digest())
    digest.update(len(text).to_bytes(8, "little") + text)
    digest.update(b"".join(size.to_bytes(8, "little") for size in (len(shape), *shape)))
    for block in blocks:
        digest.update(np.ascontiguousarray(block, "<f4").reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def code_mask(name: str, mask: np.ndarray, law: Law, checksum: str, seed: int) -> CodedTensor:
    """Code a masked tensor: `law` and `seed` draw its weights, `checksum` is that of the kept ones."""
    share = balanced.plausible_share(mask)
    if share and np.array_equal(mask, balanced.balance(draw(seed, name, mask.shape, law, threads=1), share)):
        codec, data = BALANCED, bytes([share])
    else:
        codec, data = mask_codec.encode(mask)
    line = {
        "name": name,
        "checksum": checksum,
        "shape": list(mask.shape),
        "kept": int(np.count_nonzero(mask)),
        "codec": codec,
        "bytes": len(data),
        "law": law.name,
        "scale": law.scale,
    }
    return CodedTensor(line, data)


def chunks(
    recipe: bytes,
    certificate: JsonObject | None,
    metadata: JsonObject,
    lines: Sequence[JsonObject],
    masks: Iterable[bytes],
    floats: dict[str, np.ndarray] | None = None,
) -> Iterator[bytes]:
    """Yield the file's bytes, chunk by chunk; `lines` are sorted by name, and the coded `masks` in their order."""
    extras = dump_json({"certificate": certificate, "metadata": metadata})
    index = zstd(b"\n".join([recipe, extras, *(dump_json(line) for line in lines)]))
    trained = sorted((f"float:{name}", tensor) for name, tensor in (floats or {}).items())
    entries = [Entry(name, "F32", tensor.shape) for name, tensor in trained]
    entries.append(Entry("index", "U8", (len(index),)))
    entries.append(Entry("masks", "U8", (sum(line.get("bytes", 0) for line in lines),)))

    def arrays() -> Iterator[bytes]:
        for _, tensor in trained:
            yield tensor.astype("<f4").tobytes()
        yield index
        yield from masks

    return join(entries, arrays())


def read(data: bytes) -> tuple[Index, dict[str, Law], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the index, and laws, masks and floats by name.

    All checks that need no regenerated weight are made; nothing is allocated before its size is checked.
    """
    tensors = split(data)
    for name in ("index", "masks"):
        if name not in tensors or tensors[name].dtype != np.uint8 or tensors[name].ndim != 1:
            raise TicketError(f"tensor {name!r} is missing, or not uint8 with one axis")
    index, coded = parse_index(tensors.pop("index").tobytes()), tensors.pop("masks").tobytes()
    check_sizes(index.records, limits.weights(len(data)))
    if (declared := sum(record.get("bytes", 0) for record in index.records)) != len(coded):
        raise TicketError(f"the index declares {declared} bytes of masks, the file has {len(coded)}")

    start = 0
    laws: dict[str, Law] = {}
    floats: dict[str, np.ndarray] = {}
    masks: dict[str, Callable[[], np.ndarray]] = {}
    for record in index.records:
        name, shape = record["name"], tuple(record["shape"])
        with in_ticket(f"tensor {name!r}"):
            if "codec" in record:
                part = coded[start : start + record["bytes"]]
                start += len(part)
                laws[name] = law_named(record["law"], record["scale"])
                masks[name] = partial(_mask, record, part, index.recipe["seed"], laws[name])
            else:
                floats[name] = _float(tensors.pop(f"float:{name}", None), shape)
    if tensors:
        raise TicketError(f"tensor {min(tensors)!r} is in the file but not in its index")
    # In threads: balancing takes most of the time of reading a built ticket.
    with ThreadPoolExecutor(cores()) as pool:
        try:
            found = dict(zip(masks, pool.map(lambda mask: mask(), masks.values()), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return index, laws, found, floats


def _mask(record: JsonObject, data: bytes, seed: int, law: Law) -> np.ndarray:
    """The mask that a record of the index and its part of the coded masks describe."""
    name, shape = record["name"], tuple(record["shape"])
    with in_ticket(f"tensor {name!r}"):
        if record["codec"] != BALANCED:
            return mask_codec.decode(record["codec"], data, shape, record["kept"])
        if len(data) != 1 or data[0] not in balanced.SHARES:
            raise TicketError(
                f"codec {BALANCED!r} needs one byte, 1 to {balanced.SHARES[-1]}, got {data.hex()!r}"
            )
        if len(shape) != 2 or not all(shape):
            raise TicketError(
                f"codec {BALANCED!r} needs two axes and at least one weight, the shape is {shape}"
            )
        mask = balanced.balance(draw(seed, name, shape, law, threads=1), data[0])
        mask_codec.check_kept(mask, record["kept"])
        return mask


def parse_index(frame: bytes) -> Index:
    """Read a compressed index and check every field."""
    recipe, *lines = unzstd(frame, "index", at_most=limits.text(len(frame))).split(b"\n")
    parsed = parse_recipe(recipe)
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
        record = parse_record(where, line, _MASK_FIELDS if b'"codec"' in line else _FLOAT_FIELDS)
        name, shape = record["name"], record["shape"]
        if not isinstance(name, str) or not isinstance(record["checksum"], str):
            raise TicketError(f"{where}: name and checksum must be strings, got {name!r:.60}")
        if number > 3 and name <= last:
            raise TicketError(f"{where}: tensor {name!r} is repeated or out of order, it follows {last!r}")
        if not isinstance(shape, list) or len(shape) > 32 or not all(_is_count(size) for size in shape):
            raise TicketError(f"tensor {name!r}: shape must be a list of at most 32 sizes, got {shape!r}")
        for field in ("kept", "bytes") if "codec" in record else ():
            if not _is_count(record[field]):
                raise TicketError(f"tensor {name!r}: {field} must be a count, got {record[field]!r}")
        last = name
        yield record


def check_sizes(records: list[JsonObject], max_weights: int) -> None:
    """Raise TicketError if the tensors of an index have more weights than this, or keep more than they have."""
    total = 0
    for record in records:
        total += math.prod(record["shape"])
        if total > max_weights or any(axis > max_weights for axis in record["shape"]):
            raise TicketError(
                f"tensor {record['name']!r} of shape {record['shape']} exceeds the limit of {max_weights} "
                "weights",
                hint=f"If that is intended, set {limits.VARIABLE}=10.",
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


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
