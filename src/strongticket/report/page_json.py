"""Page <-> plain JSON, strictly: an unknown type, a missing or an extra field is an error that says where.

What a field may hold follows from its annotation in page.py.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import types
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.report import page as p
from strongticket.ticket import masks

FORMAT, VERSION = "strongticket-page", 2
SEE = "See docs/results-folder.md."

_BLOCKS: dict[str, type] = {
    "text": p.Text,
    "facts": p.Facts,
    "table": p.Table,
    "plot": p.Plot,
    "masks": p.Masks,
    "heatmaps": p.Heatmaps,
    "images": p.Images,
}
_TYPES = {cls: name for name, cls in _BLOCKS.items()}
_LARGEST = 1e150  # of a number: squares and differences stay finite


def to_json(page: p.Page) -> JsonObject:
    """Return the page as what JSON can hold.

    page: to write
    """
    sections = [
        {"heading": s.heading, "blocks": [{"type": _TYPES[type(b)], **_fields(b)} for b in s.blocks]}
        for s in page.sections
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": page.title,
        "lead": page.lead,
        "sections": sections,
    }


def from_json(data: object) -> p.Page:
    """Return the page that `to_json` described.

    data: parsed JSON, from anyone
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise StrongTicketError(
            f'page.json is not a page description: its "format" is not {FORMAT!r}',
            hint="See docs/results-folder.md for what it should hold.",
        )
    if type(data.get("version")) is not int or data["version"] != VERSION:
        raise StrongTicketError(
            f"page.json has version {data.get('version')!r}, this program reads version {VERSION}",
            hint="Run the command that made it again, or use the strongticket that wrote it.",
        )
    where = "page.json"
    _check_fields(data, ("format", "version", "title", "lead", "sections"), (), where)
    sections = tuple(
        _section(section, f"section {i}") for i, section in enumerate(_list(data["sections"], "'sections'"))
    )
    return p.Page(_text(data["title"], "'title'"), _text(data["lead"], "'lead'"), sections)


def _section(data: object, where: str) -> p.Section:
    _check_fields(data, ("heading", "blocks"), (), where)
    assert isinstance(data, dict)
    blocks = _list(data["blocks"], f"{where}: 'blocks'")
    return p.Section(
        _text(data["heading"], f"{where}: 'heading'"),
        tuple(_block(block, f"{where}, block {i}") for i, block in enumerate(blocks)),
    )


def _fields(value: Any) -> JsonObject:
    return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}


def plain(value: Any) -> Any:
    """Return a part of a page as what JSON can hold.

    value: a dataclass of page.py, or anything in one
    """
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return {
            "shape": list(value.shape),
            "bits": base64.b64encode(masks.pack(value).tobytes()).decode("ascii"),
        }
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, list | tuple | range):
        return [plain(v) for v in value]
    return value


def _block(data: object, where: str) -> Any:
    kind = data.get("type") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(kind, str) or kind not in _BLOCKS:
        raise StrongTicketError(
            f"{where} has type {_quoted(kind)}", hint=f"Known types: {', '.join(_BLOCKS)}."
        )
    return _object(_BLOCKS[kind], {k: v for k, v in data.items() if k != "type"}, f"{where} ({kind})")


def _object(cls: Any, data: object, where: str) -> Any:
    """Return the dataclass `cls` with the fields of a JSON object."""
    fields = {f.name: f for f in dataclasses.fields(cls)}
    needed = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    _check_fields(data, needed, fields, where)
    assert isinstance(data, dict)
    kinds = get_type_hints(cls)
    values = {name: _value(kinds[name], name, value, where) for name, value in data.items()}
    try:
        return cls(**values)
    except StrongTicketError as error:
        raise StrongTicketError(f"{where}: {error.what}", hint=error.hint) from None


def _check_fields(data: object, needed: Sequence[str], known: Any, where: str) -> None:
    known = known or needed
    if not isinstance(data, dict):
        raise StrongTicketError(f"{where} is not an object", hint=f"It needs the fields {', '.join(known)}.")
    for name in [n for n in needed if n not in data] + [n for n in data if n not in known]:
        problem = "is missing" if name in known else "is unknown"
        raise StrongTicketError(
            f"{where}: field {_quoted(name)} {problem}", hint=f"Its fields are {', '.join(known)}."
        )


def _value(kind: Any, name: str, value: object, where: str) -> Any:
    """Return one value of the annotated type `kind`."""
    here = f"{where}, field {name!r}"
    origin, inner = get_origin(kind), get_args(kind)
    if kind is np.ndarray:
        return _mask(value, here) if name == "mask" else _matrix(value, here)
    if dataclasses.is_dataclass(kind):
        return _object(kind, value, here)
    if kind == p.Cell:
        return _cell(value, here)
    if origin in (Union, types.UnionType):  # of one type and None
        return None if value is None else _value(inner[0], name, value, where)
    if origin is Literal:
        if value not in inner:
            _refuse(here, f"one of {', '.join(map(repr, inner))}")
        return value
    if origin is tuple and inner[-1] is not Ellipsis:
        if not isinstance(value, list) or len(value) != len(inner):
            _refuse(here, f"a list of {len(inner)}")
        return tuple(_value(i, name, v, where) for i, v in zip(inner, value, strict=True))
    if origin is not None:  # tuple[X, ...] or Sequence[X]
        items = _list(value, here)
        return tuple(_value(inner[0], name, item, f"{where}, item {i}") for i, item in enumerate(items))
    return _single(kind, value, here)


def _single(kind: Any, value: object, where: str) -> Any:
    if kind is str:
        return _text(value, where)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and type(value) is int and abs(value) < 1 << 53:
        return value
    if kind is float:
        return _number(value, where)
    _refuse(where, {bool: "true or false", int: "a whole number"}[kind])


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        _refuse(where, "a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(where, "Unicode text: it has an unpaired surrogate")
    return value


def _number(value: object, where: str) -> float:
    if type(value) not in (int, float) or not abs(value) < _LARGEST:  # type: ignore[arg-type]
        _refuse(where, f"a finite number below {_LARGEST:g}")
    return float(value)  # type: ignore[arg-type]


def _cell(value: object, where: str) -> p.Cell:
    if value is None:
        return None
    if isinstance(value, str):
        return _text(value, where)
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    _refuse(where, "a string, a number or null")


def _mask(value: object, where: str) -> np.ndarray:
    refused = StrongTicketError(
        f"{where} is not a mask",
        hint='It needs "shape" [rows, columns] and "bits", base64 of the packed bits.',
    )
    if not isinstance(value, dict) or set(value) != {"shape", "bits"}:
        raise refused
    shape, bits = value["shape"], value["bits"]
    if (
        not isinstance(shape, list)
        or [type(side) for side in shape] != [int, int]
        or not isinstance(bits, str)
    ):
        raise refused
    try:
        return masks.unpack(base64.b64decode(bits, validate=True), (shape[0], shape[1]))
    except ValueError:  # also what masks and base64 raise
        raise refused from None


def _matrix(value: object, where: str) -> np.ndarray:
    rows = [_list(row, f"{where}, row {i}") for i, row in enumerate(_list(value, where))]
    if not rows or len({len(row) for row in rows}) != 1:
        raise StrongTicketError(f"{where} is not a matrix", hint="Give a list of equally long lists.")
    return np.array([[_number(entry, where) for entry in row] for row in rows], dtype=np.float64)


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(where, "a list")
    return value


def _quoted(name: object) -> str:
    """A name from the file, short and without characters that a terminal acts on."""
    text = ascii(name)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse(where: str, expected: str) -> NoReturn:
    raise StrongTicketError(f"{where} is not {expected}", hint=SEE)
