"""What a ticket file says about itself, read from its index alone: no mask is decoded, however large the file."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError, safe_open

from strongticket import limits
from strongticket.errors import TicketError, in_ticket
from strongticket.files import JsonObject
from strongticket.seeds import Law, law_named
from strongticket.ticket.container import read_header
from strongticket.ticket.format import check_sizes, coded_bytes, parse_index
from strongticket.ticket.mask_codec import entropy

Stored = Literal["masks", "choices", "floats"]
MAX_INDEX = 1 << 26  # bytes of the compressed index


@dataclass(frozen=True)
class TensorSummary:
    """One tensor of a ticket.

    Attributes:
        name: in the file.
        shape: of the tensor.
        stored: which field of a Ticket holds it: masks, choices or floats (trained numbers).
        law: of the random weights that a mask is over.
        kept: how many of them; all numbers of other tensors.
        checksum: of the regenerated tensor.
        bytes: that it takes in the file, apart from its line in the index.
    """

    name: str
    shape: tuple[int, ...]
    stored: Stored
    law: Law | None
    kept: int
    checksum: str
    bytes: int = 0

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
        """Random weights, kept or dropped by a mask."""
        return sum(tensor.weights for tensor in self._of("masks"))

    @property
    def kept(self) -> int:
        """Random weights that a mask keeps."""
        return sum(tensor.kept for tensor in self._of("masks"))

    @property
    def chosen(self) -> int:
        """Connections that keep one of many random weights."""
        return sum(tensor.weights for tensor in self._of("choices"))

    @property
    def trained(self) -> int:
        """Numbers stored as they are."""
        return sum(tensor.weights for tensor in self._of("floats"))

    def _of(self, stored: Stored) -> list[TensorSummary]:
        return [tensor for tensor in self.tensors if tensor.stored == stored]

    def sizes(self) -> dict[str, float]:
        """Bytes of the file, and of the same network in other forms."""
        masks = self._of("masks")
        numbers, trained = self.weights + self.chosen + self.trained, 4 * self.trained
        as_masks = {
            "packed_masks": trained + sum((tensor.weights + 7) // 8 for tensor in masks),
            "entropy": trained + sum(entropy(tensor.weights, tensor.kept) / 8 for tensor in masks),
        }
        return {
            "file": self.file_bytes,
            **({} if self.chosen else as_masks),
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
            "chosen": self.chosen,
            "trained": self.trained,
            "kept_fraction": self.kept / self.weights if self.weights else 0.0,
            "bytes": self.sizes(),
            "tensors": [
                {
                    "name": tensor.name,
                    "shape": list(tensor.shape),
                    "law": _drawn_from(tensor.law) if tensor.law else None,
                    "kept": tensor.kept,
                    "kept_fraction": tensor.kept / tensor.weights if tensor.weights else 0.0,
                }
                for tensor in self._of("masks")
            ],
            "certificate": self.certificate,
            "metadata": self.metadata,
        }


def _drawn_from(law: Law) -> str:
    formats = {"uniform": "U[±{:.4g}]", "normal": "N(0, {:.4g}²)", "signed": "±{:.4g}"}
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
    with in_ticket(str(path)):
        size = path.stat().st_size
        index = parse_index(_index_frame(path, size))
        check_sizes(index.records, limits.weights(size))
        tensors = tuple(map(_summarised, index.records))
    recipe = index.recipe
    return Summary(
        recipe["seed"], recipe["kind"], recipe["settings"], index.certificate, index.metadata, tensors, size
    )


def _summarised(record: JsonObject) -> TensorSummary:
    """A tensor by its line of the index."""
    masked = "lines" in record
    return TensorSummary(
        record["name"],
        tuple(record["shape"]),
        "masks" if masked else "choices" if "blocks" in record else "floats",
        law_named(record["law"], record["scale"]) if masked else None,
        record["kept"] if masked else math.prod(record["shape"]),
        record["checksum"],
        coded_bytes(record),
    )


def _index_frame(path: Path, size: int) -> bytes:
    """The compressed index of a file of this size."""
    with open(path, "rb") as file:
        read_header(file, size)
    try:
        with safe_open(path, framework="np") as arrays:
            found = arrays.get_slice("index")
            if found.get_dtype() != "U8" or math.prod(found.get_shape()) > MAX_INDEX:
                raise TicketError(f"damaged: its index is not text of at most {MAX_INDEX:,} bytes")
            packed: bytes = arrays.get_tensor("index").tobytes()
    except SafetensorError as error:
        raise TicketError(f"damaged: {error}", hint="Get a fresh copy of the file.") from None
    return packed
