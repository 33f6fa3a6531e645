"""What a ticket file says of itself, read from its index alone: no mask is decoded, however large the file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strongticket.container import parse_json, parse_record, unzstd
from strongticket.errors import TicketError
from strongticket.ticket_file import FORMAT, MAX_INDEX, parse_recipe

KIND = "pretrained"


@dataclass(frozen=True)
class Summary:
    """recipe: kind, seed and settings; tensors: their lines in the index."""

    recipe: dict[str, Any]
    metadata: dict[str, Any]
    tensors: list[dict[str, Any]]
    file_bytes: int


def is_pretrained(path: Path) -> bool:
    """Was this file built from a pretrained model? False for whatever is no ticket."""
    try:
        return summary(path).recipe["kind"] == KIND
    except TicketError:
        return False


def summary(path: Path) -> Summary:
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > MAX_INDEX:
                raise TicketError(f"{path}: no ticket, or damaged")
            header = parse_json("header", file.read(length))
            if not isinstance(header, dict) or header.get("__metadata__", {}).get("format") != FORMAT:
                raise TicketError(f"{path}: no ticket of format {FORMAT!r}")
            end = 8 + length + max(part["data_offsets"][1] for name, part in header.items() if name[0] != "_")
            size = path.stat().st_size
            if size != end:
                raise TicketError(
                    f"{path}: it has {size} bytes where its header declares {end}; copy the file again"
                )
            first, last = header["index"]["data_offsets"]
            if not 0 <= first <= last <= first + MAX_INDEX:
                raise TicketError(f"{path}: its index lies at {first} … {last}: damaged")
            file.seek(8 + length + first)
            text = unzstd(file.read(last - first), "index", at_most=MAX_INDEX)
    except OSError as error:
        raise TicketError(f"cannot read {path}: {error.strerror or error}") from None
    except TicketError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise TicketError(f"{path}: damaged: {error}") from None
    recipe, *lines = text.split(b"\n")
    extras = lines.pop(0) if lines else b""
    metadata = parse_record("line 2 of the index", extras, {"certificate", "metadata"})["metadata"]
    tensors = [parse_json(f"line {number} of the index", line) for number, line in enumerate(lines, 3)]
    return Summary(parse_recipe(recipe), metadata, tensors, size)
