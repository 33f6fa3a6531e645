"""Texts with labels to search on: prose against code from Python itself, a table, a folder, a Hugging Face dataset."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.data.corpus import load_corpus
from strongticket.data.hub_datasets import is_dataset, load_dataset
from strongticket.data.tokenizers import Tokenizer
from strongticket.errors import StrongTicketError
from strongticket.files import read_text

_TABLES = (".csv", ".tsv", ".jsonl")
_HELD_OUT = 5  # of texts without a validation part, the last fifth of each class is held out
_PIECE, _PIECES = 64, 2500  # characters of a built-in text, and how many of each class


@dataclass(frozen=True)
class LabelledTexts:
    """train, valid: (text, index of its label) each; labels: names of the classes"""

    name: str
    train: list[tuple[str, int]]
    valid: list[tuple[str, int]]
    labels: tuple[str, ...]


class TextItems(Dataset[dict[str, torch.Tensor]]):
    """Texts as a classifier of transformers takes them: a first token that stands for the whole text, then at most
    context − 1 tokens, then padding.

    tokenizer: its size is the number of the padding token, its size + 1 that of the first token
    """

    def __init__(self, texts: Sequence[tuple[str, int]], tokenizer: Tokenizer, context: int) -> None:
        self.context, self.padding = context, tokenizer.size
        self.labels = [label for _, label in texts]
        self.tokens = [
            np.array([tokenizer.size + 1, *tokenizer.encode(text)[: context - 1]], dtype=np.int64)
            for text, _ in texts
        ]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.from_numpy(self.tokens[index])
        ids = torch.full((self.context,), self.padding)
        ids[: len(tokens)] = tokens
        seen = torch.arange(self.context) < len(tokens)
        return {
            "input_ids": ids, "attention_mask": seen.long(), "labels": torch.tensor(self.labels[index])
        }  # fmt: skip


def load_texts(data: str) -> LabelledTexts:
    """Read a data set of labelled texts.

    data: `builtin` (is it prose or code?), a file .csv, .tsv or .jsonl with `text` and `label`, a folder with
        train and valid in such files or with a subfolder of .txt files per class, a folder that `datasets` saved,
        or the name of a dataset on the Hugging Face hub
    """
    path = Path(data)
    if data == "builtin":
        return _builtin()
    if is_dataset(data):
        name, parts = load_dataset(data, kind="")
        rows = {part: list(zip(parts[part]["text"], parts[part]["label"], strict=True)) for part in parts}
        known = getattr(parts["train"].features["label"], "names", None)
        if known:
            rows = {part: [(text, known[label]) for text, label in found] for part, found in rows.items()}
        return _labelled(name, rows["train"], rows["valid"])
    if path.is_file() and path.suffix in _TABLES:
        return _labelled(path.stem, _table(path))
    if path.is_dir():
        tables = {file.stem: file for file in sorted(path.iterdir()) if file.suffix in _TABLES}
        if "train" in tables:
            valid = next(
                (tables[name] for name in ("valid", "validation", "val", "test") if name in tables), None
            )
            return _labelled(path.resolve().name, _table(tables["train"]), _table(valid) if valid else None)
        files = [file for file in sorted(path.glob("*/*.txt"))]
        return _labelled(path.resolve().name, [(read_text(file), file.parent.name) for file in files])
    raise StrongTicketError(
        f"data={data!r} is not a file, folder or known set of labelled texts",
        hint="Expected builtin, a .csv, .tsv or .jsonl file, a folder, or owner/name of a Hugging Face dataset.",
    )


def _builtin() -> LabelledTexts:
    """Pieces of Python's documentation, and of the source of its standard library."""
    prose = load_corpus("builtin")
    sources = ("argparse", "ast", "dataclasses", "datetime", "decimal", "difflib", "inspect", "typing")
    library = Path(sys.modules["os"].__file__ or "").parent
    code = "\n".join(
        (library / f"{name}.py").read_text(encoding="utf-8")
        for name in sources
        if (library / f"{name}.py").is_file()
    )
    texts = {"prose": prose.train + prose.valid, "code": code}
    size = min(len(text) for text in texts.values())  # as many of each
    rows = [
        (text[start : start + _PIECE], label)
        for label, text in texts.items()
        for start in range(0, min(size, _PIECES * _PIECE) - _PIECE + 1, _PIECE)
    ]
    return _labelled(f"prose and code of {prose.name.split(' of ')[-1]}", rows)


def _labelled(
    name: str, train: Sequence[tuple[object, object]], valid: Sequence[tuple[object, object]] | None = None
) -> LabelledTexts:
    """Texts with the numbers of their labels; a part to validate on is split off if none is given."""
    labels = tuple(sorted({str(label) for _, label in train}))
    if len(labels) < 2:
        raise StrongTicketError(
            f"{name} has {len(labels)} labels, expected at least two", hint="Give a text and a label per row."
        )
    if valid is None:
        train, valid = _split(train)
    known = {label: number for number, label in enumerate(labels)}
    for _, label in valid:
        if str(label) not in known:
            raise StrongTicketError(f"{name}: the validation part has the label {label!r}, training does not")
    numbered = [[(str(text), known[str(label)]) for text, label in part] for part in (train, valid)]
    return LabelledTexts(name, numbered[0], numbered[1], labels)


def _split(
    rows: Sequence[tuple[object, object]],
) -> tuple[list[tuple[object, object]], list[tuple[object, object]]]:
    groups: dict[object, list[tuple[object, object]]] = {}
    for row in rows:
        groups.setdefault(row[1], []).append(row)
    train, valid = [], []
    for group in groups.values():
        end = len(group) - max(1, len(group) // _HELD_OUT)
        train += group[:end]
        valid += group[end:]
    return train, valid


def _table(path: Path) -> list[tuple[object, object]]:
    text = read_text(path)
    if path.suffix == ".jsonl":
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise StrongTicketError(f"{path}, line {number}: {error}") from None
    else:
        rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix == ".tsv" else ","))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not {"text", "label"} <= row.keys() or row["text"] is None:
            raise StrongTicketError(
                f"{path}, row {number} lacks text or label", hint="Name the columns `text` and `label`."
            )
    return [(row["text"], row["label"]) for row in rows]
