"""What a ticket file says about itself, read from its index alone: no mask is decoded, however large the file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strongticket import limits
from strongticket.errors import StrongTicketError, TicketError
from strongticket.files import JsonObject, parse_json
from strongticket.seeds import Law, law_named
from strongticket.ticket import masks
from strongticket.ticket.container import check_format
from strongticket.ticket.format import FORMAT, FORMAT_2, MAX_INDEX, check_sizes, parse_index, parse_recipe


@dataclass(frozen=True)
class TensorSummary:
    """law: None for a trained tensor, which is kept whole."""

    name: str
    shape: tuple[int, ...]
    law: Law | None
    kept: int

    @property
    def weights(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Sizes:
    """Bytes of the file, and of the same network in other forms."""

    file: int
    packed: int
    float16: int
    float32: int
    entropy: float

    @classmethod
    def of(cls, file: int, random: Sequence[tuple[int, int]], trained: int) -> "Sizes":
        """file: its bytes; random: (weights, kept ones) of each masked tensor; trained: numbers stored as they are."""
        numbers = trained + sum(weights for weights, _ in random)
        return cls(
            file=file,
            packed=4 * trained + sum((weights + 7) // 8 for weights, _ in random),
            float16=2 * numbers,
            float32=4 * numbers,
            entropy=4 * trained + sum(masks.entropy(weights, kept) / 8 for weights, kept in random),
        )


@dataclass(frozen=True)
class Summary:
    """A ticket without its masks."""

    seed: int
    kind: str
    settings: JsonObject
    certificate: JsonObject | None
    metadata: JsonObject
    tensors: tuple[TensorSummary, ...]
    file_bytes: int

    @property
    def weights(self) -> int:
        """Random weights, kept or dropped."""
        return sum(tensor.weights for tensor in self.tensors if tensor.law)

    @property
    def kept(self) -> int:
        """Random weights that are kept."""
        return sum(tensor.kept for tensor in self.tensors if tensor.law)

    @property
    def trained(self) -> int:
        """Numbers stored as they are."""
        return sum(tensor.weights for tensor in self.tensors if not tensor.law)

    def to_json(self) -> JsonObject:
        """What `strongticket show --json` says of every ticket."""
        sizes = self.sizes()
        return {
            **{
                name: getattr(self, name)
                for name in ("kind", "settings", "seed", "weights", "kept", "trained")
            },
            "kept_fraction": self.kept / self.weights if self.weights else 0.0,
            "bytes": {
                "file": sizes.file,
                "packed_masks": sizes.packed,
                "entropy": sizes.entropy,
                "float16": sizes.float16,
                "float32": sizes.float32,
            },
            "tensors": [
                {
                    "name": tensor.name,
                    "shape": list(tensor.shape),
                    "law": _drawn_from(tensor.law),
                    "kept": tensor.kept,
                    "kept_fraction": tensor.kept / tensor.weights if tensor.weights else 0.0,
                }
                for tensor in self.tensors
                if tensor.law
            ],
            "certificate": self.certificate,
            "metadata": self.metadata,
        }

    def sizes(self) -> Sizes:
        """The file against the same tensors as packed bits, float16 and float32."""
        random = [(tensor.weights, tensor.kept) for tensor in self.tensors if tensor.law]
        return Sizes.of(self.file_bytes, random, self.trained)


def _drawn_from(law: Law) -> str:
    formats = {"uniform": "U[±{:.4g}]", "normal": "N(0, {:.4g}²)", "signed": "±{:.4g}"}
    if law.name == "one-sided":
        return f"U[{law.scale / 2:.4g}, {law.scale:.4g}]"
    return formats.get(law.name, law.name + " ±{:.4g}").format(law.scale)


def summarise(path: Path) -> Summary:
    """Read the index of the ticket file `path`; TicketError names what is wrong with it."""
    try:
        with open(path, "rb") as file:
            frame, size = _index_frame(file, path.stat().st_size)
        recipe_line, certificate, metadata, records = parse_index(frame)
        check_sizes(records, limits.weights(size))
        recipe = parse_recipe(recipe_line)
        tensors = tuple(
            TensorSummary(
                record["name"],
                tuple(record["shape"]),
                law_named(record["law"], record["scale"]) if "law" in record else None,
                record["kept"] if "kept" in record else math.prod(record["shape"]),
            )
            for record in records
        )
    except OSError as error:
        raise TicketError(
            f"cannot read {path}: {error.strerror or error}", hint="Name a ticket file."
        ) from None
    except StrongTicketError as error:
        raise TicketError(f"{path}: {error.what}", hint=error.hint) from None
    return Summary(recipe["seed"], recipe["kind"], recipe["settings"], certificate, metadata, tensors, size)


def _index_frame(file: Any, size: int) -> tuple[bytes, int]:
    """(the compressed index, the file's size)."""
    if size < 8:
        raise TicketError(f"it has {size} bytes: too short for a ticket")
    length = int.from_bytes(file.read(8), "little")
    if length > min(MAX_INDEX, size):
        raise TicketError("not a ticket, or damaged: its header is longer than the file")
    header = parse_json("header", file.read(length))
    check_format(header, FORMAT, FORMAT_2)
    try:
        end = 8 + length + max(entry["data_offsets"][1] for name, entry in header.items() if name[:1] != "_")
        first, last = header["index"]["data_offsets"]
        if size != end:
            raise TicketError(
                f"it has {size} bytes where its header declares {end}", hint="Get a fresh copy of the file."
            )
        if not 0 <= first <= last <= first + MAX_INDEX:
            raise TicketError(f"damaged: its index lies at {first} … {last}")
        file.seek(8 + length + first)
        return file.read(last - first), size
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, TicketError):
            raise
        raise TicketError(f"damaged: {error}") from None
