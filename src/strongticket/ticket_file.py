"""What stands in a `.ticket` file, and where. docs/ticket-format.md tells it to other languages.

    index     zstd of lines of JSON: recipe; certificate and metadata; then one line a tensor, sorted by name
    masks     the coded masks one after the other, in the order of their lines
    float:X   a trained tensor X as it is

One compressed text lists the tensors, not safetensors' own header: plain JSON would cost a small network
more than its masks.
"""

import contextlib
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from strongticket import mask_codec
from strongticket.container import dump_json, join, parse_record, split, unzstd, zstd
from strongticket.errors import StrongTicketError, TicketError
from strongticket.seeds import GENERATOR_VERSION, Distribution, Normal, Uniform

FORMAT = "strongticket ticket 1"
MAX_WEIGHTS = 1 << 32  # what a reader accepts unless told otherwise: 4 GiB of masks
MAX_INDEX = 1 << 26  # bytes of the index's text

_RECIPE_FIELDS = {"generator", "kind", "seed", "settings"}
_FLOAT_FIELDS = {"name", "checksum", "shape"}
_MASK_FIELDS = _FLOAT_FIELDS | {"kept", "codec", "bytes", "law", "scale"}


@dataclass(frozen=True)
class Contents:
    """What a file says. `recipe` is its text, because every checksum covers those bytes."""

    recipe: bytes
    masks: dict[str, np.ndarray]
    distributions: dict[str, Distribution]
    floats: dict[str, np.ndarray]
    checksums: dict[str, str]
    certificate: dict[str, Any] | None
    metadata: dict[str, Any]


def recipe_text(seed: int, kind: str, settings: dict[str, Any]) -> bytes:
    """What makes the network besides its tensors: the index's first line."""
    return dump_json({"generator": GENERATOR_VERSION, "kind": kind, "seed": seed, "settings": settings})


def parse_recipe(text: bytes) -> dict[str, Any]:
    """kind, seed and settings; refuses weights of another generator."""
    recipe = parse_record("recipe", text, _RECIPE_FIELDS)
    if recipe["generator"] != GENERATOR_VERSION:
        raise TicketError(
            f"its weights come from generator {recipe['generator']!r}, this version of strongticket has "
            f"generator {GENERATOR_VERSION}: install a version with that one"
        )
    return recipe


def checksum(recipe: bytes, name: str, tensor: np.ndarray) -> str:
    """Hash of a regenerated tensor bound to its name, its shape and the recipe: none can change alone."""
    text = name.encode()
    digest = hashlib.sha256(hashlib.sha256(recipe).digest())
    digest.update(len(text).to_bytes(8, "little") + text)
    digest.update(b"".join(size.to_bytes(8, "little") for size in (tensor.ndim, *tensor.shape)))
    digest.update(np.ascontiguousarray(tensor, "<f4").reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def write(contents: Contents) -> bytes:
    extras = {"certificate": contents.certificate, "metadata": contents.metadata}
    lines, coded = [contents.recipe, dump_json(extras)], []
    for name in sorted(contents.checksums):
        line: dict[str, Any] = {"name": name, "checksum": contents.checksums[name]}
        if name in contents.masks:
            mask, law = contents.masks[name], contents.distributions[name]
            codec, data = mask_codec.encode(mask)
            coded.append(data)
            line |= {"shape": mask.shape, "kept": int(np.count_nonzero(mask)), "codec": codec}
            line |= {"bytes": len(data), "law": _law_name(law), "scale": _scale(law)}
        else:
            line["shape"] = contents.floats[name].shape
        lines.append(dump_json(line))
    tensors = {f"float:{name}": tensor for name, tensor in contents.floats.items()}
    tensors["index"] = np.frombuffer(zstd(b"\n".join(lines)), np.uint8)
    tensors["masks"] = np.frombuffer(b"".join(coded), np.uint8)
    return join(tensors, FORMAT)


def read(data: bytes, *, max_weights: int = MAX_WEIGHTS) -> Contents:
    """All checks that need no regenerated weight; nothing is allocated before its size is checked."""
    tensors = split(data, FORMAT)
    for name in ("index", "masks"):
        if name not in tensors or tensors[name].dtype != np.uint8 or tensors[name].ndim != 1:
            raise TicketError(f"tensor {name!r} is missing, or not uint8 with one axis")
    index, coded = tensors.pop("index").tobytes(), tensors.pop("masks").tobytes()
    recipe, *lines = unzstd(index, "index", at_most=MAX_INDEX).split(b"\n")
    parse_recipe(recipe)
    extras = parse_record("line 2 of the index", lines[0] if lines else b"", {"certificate", "metadata"})
    records = list(_tensor_records(lines[1:]))
    _check_sizes(records, len(coded), max_weights)

    contents = Contents(recipe, {}, {}, {}, {}, extras["certificate"], extras["metadata"])
    start = 0
    for record in records:
        name, shape = record["name"], tuple(record["shape"])
        contents.checksums[name] = record["checksum"]
        with _about(f"tensor {name!r}"):
            if "codec" in record:
                part = coded[start : start + record["bytes"]]
                start += len(part)
                contents.distributions[name] = _law(record["law"], record["scale"])
                contents.masks[name] = mask_codec.decode(record["codec"], part, shape, record["kept"])
            else:
                contents.floats[name] = _float(tensors.pop(f"float:{name}", None), shape)
    if tensors:
        raise TicketError(f"tensor {min(tensors)!r} is in the file but not in its index")
    return contents


def _tensor_records(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Each tensor's line with its fields checked; names in strictly ascending order."""
    last = ""
    for number, line in enumerate(lines, start=3):
        where = f"line {number} of the index"
        record = parse_record(where, line, _MASK_FIELDS if b'"codec"' in line else _FLOAT_FIELDS)
        name, shape = record["name"], record["shape"]
        if not isinstance(name, str) or not isinstance(record["checksum"], str):
            raise TicketError(
                f"{where}: name and checksum must be strings, got {name!r}, {record['checksum']!r}"
            )
        if number > 3 and name <= last:
            raise TicketError(f"{where}: tensor {name!r} is there twice or out of order, it follows {last!r}")
        if not isinstance(shape, list) or len(shape) > 32 or not all(_is_count(size) for size in shape):
            raise TicketError(f"tensor {name!r}: shape must be a list of at most 32 sizes, got {shape!r}")
        for field in ("kept", "bytes") if "codec" in record else ():
            if not _is_count(record[field]):
                raise TicketError(f"tensor {name!r}: {field} must be a count, got {record[field]!r}")
        last = name
        yield record


def _check_sizes(records: list[dict[str, Any]], coded: int, max_weights: int) -> None:
    total = 0
    for record in records:
        size = math.prod(record["shape"])
        total += size
        if total > max_weights or any(axis > max_weights for axis in record["shape"]):
            raise TicketError(
                f"tensor {record['name']!r} of shape {record['shape']} goes past {max_weights} weights. "
                "If that is meant, load with a larger max_weights"
            )
        if record.get("kept", 0) > size:
            raise TicketError(f"tensor {record['name']!r} keeps {record['kept']} of {size} weights")
    declared = sum(record.get("bytes", 0) for record in records)
    if declared != coded:
        raise TicketError(f"the index declares {declared} bytes of masks, the file has {coded}")


def _float(tensor: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if tensor is None or tensor.dtype != np.float32 or tensor.shape != shape:
        found = "none" if tensor is None else f"{tensor.dtype} {tensor.shape}"
        raise TicketError(f"the index declares a float32 tensor of shape {shape}, the file has {found}")
    return tensor.astype(np.float32)


def _law(name: object, scale: float) -> Distribution:
    if name == "uniform":
        return Uniform(scale)
    if name == "normal":
        return Normal(scale)
    raise TicketError(f"unknown law {name!r}: expected uniform or normal")


def _law_name(law: Distribution) -> str:
    return "uniform" if isinstance(law, Uniform) else "normal"


def _scale(law: Distribution) -> float:
    return law.half_width if isinstance(law, Uniform) else law.std


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


@contextlib.contextmanager
def _about(what: str) -> Iterator[None]:
    try:
        yield
    except StrongTicketError as error:
        raise TicketError(f"{what}: {error}") from None
    except MemoryError:
        raise TicketError(f"{what}: not enough memory for it") from None
