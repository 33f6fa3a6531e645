"""What a ticket file says about itself, read from its index alone: no mask is decoded, however large the file."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from strongticket import limits
from strongticket.errors import TicketError, in_ticket
from strongticket.files import JsonObject
from strongticket.seeds import Law, law_named
from strongticket.ticket.container import read_header
from strongticket.ticket.format import check_sizes, parse_index
from strongticket.ticket.mask_codec import entropy

MAX_INDEX = 1 << 26  # bytes of the compressed index


@dataclass(frozen=True)
class TensorSummary:
    """One tensor of a ticket. A trained one, whose law is None, is kept whole."""

    name: str
    shape: tuple[int, ...]
    law: Law | None
    kept: int
    checksum: str

    @property
    def weights(self) -> int:
        return math.prod(self.shape)


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

    def sizes(self) -> dict[str, float]:
        """Bytes of the file, and of the same network in other forms."""
        random = [tensor for tensor in self.tensors if tensor.law]
        numbers, trained = self.weights + self.trained, 4 * self.trained
        return {
            "file": self.file_bytes,
            "packed_masks": trained + sum((tensor.weights + 7) // 8 for tensor in random),
            "entropy": trained + sum(entropy(tensor.weights, tensor.kept) / 8 for tensor in random),
            "float16": 2 * numbers,
            "float32": 4 * numbers,
        }

    def to_json(self) -> JsonObject:
        """What `strongticket show --json` says of every ticket."""
        return {
            "kind": self.kind,
            "settings": self.settings,
            "seed": self.seed,
            "weights": self.weights,
            "kept": self.kept,
            "trained": self.trained,
            "kept_fraction": self.kept / self.weights if self.weights else 0.0,
            "bytes": self.sizes(),
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


def _drawn_from(law: Law) -> str:
    formats = {"uniform": "U[±{:.4g}]", "normal": "N(0, {:.4g}²)", "signed": "±{:.4g}"}
    if law.name == "one-sided":
        return f"U[{law.scale / 2:.4g}, {law.scale:.4g}]"
    return formats.get(law.name, law.name + " ±{:.4g}").format(law.scale)


@dataclass(frozen=True)
class Verification:
    """What `Ticket.verify` regenerated.

    Attributes:
        tensors: all of them, random and trained.
        certificate_bound: the certificate says that it was computed for this very network.
    """

    tensors: tuple[TensorSummary, ...]
    certificate_bound: bool

    @property
    def weights(self) -> int:
        return sum(tensor.weights for tensor in self.tensors)

    @property
    def kept(self) -> int:
        return sum(tensor.kept for tensor in self.tensors)


def summarise(path: Path) -> Summary:
    """Read the index of the ticket file `path`; TicketError names what is wrong with it."""
    with in_ticket(str(path)), open(path, "rb") as file:
        size = path.stat().st_size
        index = parse_index(_index_frame(file, size))
        check_sizes(index.records, limits.weights(size))
        tensors = tuple(
            TensorSummary(
                record["name"],
                tuple(record["shape"]),
                law_named(record["law"], record["scale"]) if "law" in record else None,
                record["kept"] if "kept" in record else math.prod(record["shape"]),
                record["checksum"],
            )
            for record in index.records
        )
    recipe = index.recipe
    return Summary(
        recipe["seed"], recipe["kind"], recipe["settings"], index.certificate, index.metadata, tensors, size
    )


def _index_frame(file: BinaryIO, size: int) -> bytes:
    """The compressed index of a file of this size."""
    header = read_header(file, size)
    start = file.tell()
    spans = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    if "index" not in spans or not all(map(_is_span, spans.values())):
        raise TicketError("damaged: its header does not say where its arrays are")
    if size != (end := start + max(last for _, last in spans.values())):
        raise TicketError(
            f"it has {size} bytes where its header declares {end}", hint="Get a fresh copy of the file."
        )
    first, last = spans["index"]
    if last > first + MAX_INDEX:
        raise TicketError(f"damaged: its index has {last - first} bytes")
    file.seek(start + first)
    return file.read(last - first)


def _is_span(value: Any) -> bool:
    are_integers = isinstance(value, list) and [type(place) for place in value] == [int, int]
    return are_integers and 0 <= value[0] <= value[1]
