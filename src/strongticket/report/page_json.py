"""Page <-> plain JSON, strictly: an unknown type, a missing or an extra field is an error that says where."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.report import page as p
from strongticket.ticket import masks

FORMAT, VERSION = "strongticket-page", 1

_BLOCKS = {
    "text": p.Text,
    "facts": p.Facts,
    "table": p.Table,
    "plot": p.Plot,
    "masks": p.Masks,
    "heatmaps": p.Heatmaps,
    "images": p.Images,
}
_TYPES = {cls: name for name, cls in _BLOCKS.items()}
_SINGLE = {"str": (str, "a string"), "int": (int, "a whole number"), "dict[str, Any]": (dict, "an object")}
_ITEMS = {  # annotation in page.py -> is this a good item of its list, and what that is
    "tuple[str, ...]": (lambda v: isinstance(v, str), "a string"),
    "tuple[dict[str, Any], ...]": (lambda v: isinstance(v, dict), "an object"),
    "tuple[tuple[str, str], ...]": (
        lambda v: isinstance(v, list) and [type(part) for part in v] == [str, str],
        "a list of two strings",
    ),
    "tuple[tuple[Cell, ...], ...]": (
        lambda v: isinstance(v, list) and all(isinstance(cell, p.Cell) for cell in v),
        "a list of strings, numbers or null",
    ),
}
_PARTS = {"masks": p.Mask, "panels": p.Panel, "images": p.Image}  # field name -> what its list holds


def to_json(page: p.Page) -> dict[str, Any]:
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


def from_json(data: Any) -> p.Page:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise StrongTicketError(
            f'page.json is not a page description: its "format" is not {FORMAT!r}',
            hint="See docs/results-folder.md for what it should hold.",
        )
    if data.get("version") != VERSION:
        raise StrongTicketError(
            f"page.json has version {data.get('version')!r}, this program reads version {VERSION}",
            hint="Use the version of strongticket that wrote it.",
        )
    sections = []
    for s, section in enumerate(_list(data, "sections", "page.json")):
        where = f"section {s}"
        blocks = tuple(
            _block(b, f"{where}, block {i}") for i, b in enumerate(_list(section, "blocks", where))
        )
        sections.append(p.Section(_string(section, "heading", where), blocks))
    return p.Page(_string(data, "title", "page.json"), _string(data, "lead", "page.json"), tuple(sections))


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
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
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _block(data: Any, where: str) -> p.PageBlock:
    kind = data.get("type") if isinstance(data, dict) else None
    if kind not in _BLOCKS:
        raise StrongTicketError(f"{where} has type {kind!r}", hint=f"Known types: {', '.join(_BLOCKS)}.")
    return _make(_BLOCKS[kind], {k: v for k, v in data.items() if k != "type"}, f"{where} ({kind})")


def _make(cls: Any, data: Any, where: str) -> Any:
    known = {f.name: f for f in dataclasses.fields(cls)}
    if not isinstance(data, dict):
        raise StrongTicketError(f"{where} is not an object", hint=f"It needs the fields {', '.join(known)}.")
    needed = [n for n, f in known.items() if f.default is dataclasses.MISSING]
    for name in [n for n in needed if n not in data] + [n for n in data if n not in known]:
        problem = "is missing" if name in known else "is unknown"
        raise StrongTicketError(
            f"{where}: field {name!r} {problem}", hint=f"Its fields are {', '.join(known)}."
        )
    values = {name: _value(name, known[name].type, value, where) for name, value in data.items()}
    try:
        return cls(**values)
    except StrongTicketError as error:
        raise StrongTicketError(f"{where}: {error}") from None


def _value(name: str, kind: Any, value: Any, where: str) -> Any:
    """One field from JSON; `kind` is the field's annotation as written in page.py."""
    where = f"{where}, field {name!r}"
    if kind in _SINGLE:
        cls, expected = _SINGLE[kind]
        if not isinstance(value, cls):
            raise StrongTicketError(f"{where} is not {expected}.")
        return value
    if kind == "np.ndarray":
        return _mask(value, where) if name == "mask" else _matrix(value, where)
    if not isinstance(value, list):
        raise StrongTicketError(f"{where} is not a list.")
    if name in _PARTS:
        return tuple(_make(_PARTS[name], part, f"{where}, item {i}") for i, part in enumerate(value))
    good, expected = _ITEMS[kind]
    for i, item in enumerate(value):
        if not good(item):
            raise StrongTicketError(f"{where}, item {i} is not {expected}.")
    return tuple(tuple(v) if isinstance(v, list) else v for v in value)


def _mask(value: Any, where: str) -> np.ndarray:
    try:
        rows, columns = (int(side) for side in value["shape"])
        return masks.unpack(base64.b64decode(value["bits"], validate=True), (rows, columns))
    except (KeyError, TypeError, ValueError):  # also what masks and base64 raise
        raise StrongTicketError(
            f"{where} is not a mask",
            hint='It needs "shape" [rows, columns] and "bits", base64 of the packed bits.',
        ) from None


def _matrix(value: Any, where: str) -> np.ndarray:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise StrongTicketError(f"{where} is not a matrix: give a list of equally long lists.") from None


def _list(data: Any, name: str, where: str) -> list[Any]:
    if not isinstance(data, dict) or not isinstance(data.get(name), list):
        raise StrongTicketError(f"{where}: {name!r} is not a list", hint="See docs/results-folder.md.")
    return data[name]


def _string(data: dict[str, Any], name: str, where: str) -> str:
    if not isinstance(data.get(name), str):
        raise StrongTicketError(f"{where}: {name!r} is not a string", hint="See docs/results-folder.md.")
    return data[name]
