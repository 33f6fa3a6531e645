"""Images and texts with labels to search on."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.data.readers import Parts, Rows, read_dataset, read_idx_folder
from strongticket.data.text import load_corpus
from strongticket.errors import StrongTicketError, require
from strongticket.files import read_text
from strongticket.models.tokenizers import Tokenizer

_HELD_OUT = 5  # without a validation part, the last fifth of each class is held out
_PIECE, _PIECES = 64, 2500  # characters of a built-in text, and how many of each class


@dataclass(frozen=True)
class Labelled:
    """Images or texts with labels."""

    name: str
    train: Any  # uint8 (images, channels, side, side), or a list of texts
    train_labels: np.ndarray  # int64, each an index of `labels`
    valid: Any
    valid_labels: np.ndarray
    labels: tuple[str, ...]  # names of the classes

    @property
    def pixels(self) -> tuple[float, float]:
        """(mean, standard deviation) of the training pixels, from 0 to 1; rounded, because they are stored."""
        mean = float(self.train.mean(dtype=np.float64)) / 255
        std = float(self.train.std(dtype=np.float64)) / 255
        return round(mean, 4), round(std, 4) or 1.0


class ImageItems(Dataset[dict[str, torch.Tensor]]):
    """Normalised images as a model of transformers takes them: pixel_values and labels."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, pixels: tuple[float, float]) -> None:
        self.images, self.labels, self.pixels = images, labels, pixels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        mean, std = self.pixels
        image = torch.from_numpy(self.images[index].astype(np.float32) / 255)
        return {"pixel_values": (image - mean) / std, "labels": torch.tensor(int(self.labels[index]))}


class TextItems(Dataset[dict[str, torch.Tensor]]):
    """Texts as a classifier of transformers takes them.

    First a token that stands for the whole text (its number is the tokenizer's size + 1), then at most context − 1
    tokens, then padding (the tokenizer's size).
    """

    def __init__(self, texts: Sequence[str], labels: np.ndarray, tokenizer: Tokenizer, context: int) -> None:
        self.labels, self.context, self.padding = labels, context, tokenizer.size
        self.tokens = [
            np.array([tokenizer.size + 1, *tokenizer.encode(text)[: context - 1]], dtype=np.int64)
            for text in texts
        ]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.from_numpy(self.tokens[index])
        ids = torch.full((self.context,), self.padding)
        ids[: len(tokens)] = tokens
        seen = (torch.arange(self.context) < len(tokens)).long()
        return {"input_ids": ids, "attention_mask": seen, "labels": torch.tensor(int(self.labels[index]))}


def load_images(data: str, side: int = 0) -> Labelled:
    """Read a data set of images.

    Args:
        data: `builtin` or `digits` (scikit-learn's 8 × 8 digits), a folder with MNIST's idx files, a folder with a
            subfolder of images per class (or train/ and valid/ with such subfolders), a folder that `datasets`
            saved, or the name of a dataset on the Hugging Face hub such as ylecun/mnist.
        side: images are resized to side × side pixels; 0 leaves them as they are, and they must be square.
    """
    if data in ("builtin", "digits"):
        found = _labelled("digits of scikit-learn", _digits())
    else:
        found = _labelled(_name(data), read_idx_folder(Path(data)) or read_dataset(data, "image"))
    images = _stacked(found.name, [*found.train, *found.valid], side)
    return replace(found, train=images[: len(found.train)], valid=images[len(found.train) :])


def load_texts(data: str) -> Labelled:
    """Read a data set of labelled texts.

    Args:
        data: `builtin` (is it prose or code?), a file .csv, .tsv or .jsonl with `text` and `label`, a folder with
            train and valid in such files, a folder that `datasets` saved, or the name of a dataset on the Hugging
            Face hub.
    """
    if data == "builtin":
        return _labelled(f"prose and code of Python {platform.python_version()}", _prose_and_code())
    return _labelled(_name(data), read_dataset(data, "text"))


def _name(data: str) -> str:
    path = Path(data)
    return path.stem if path.is_file() else path.resolve().name if path.is_dir() else data


def _labelled(name: str, parts: Parts) -> Labelled:
    """Number the classes, and hold out rows if there is no validation part."""
    classes = parts.classes or sorted(set(parts.train.labels))
    if len(classes) < 2:
        raise StrongTicketError(
            f"{name} has {len(classes)} classes: expected at least two",
            hint="Make a subfolder of images per class, or give every text a label.",
        )
    train, valid = (parts.train, parts.valid) if parts.valid else _hold_out(parts.train)
    if not len(train.inputs) or not len(valid.inputs):
        raise StrongTicketError(f"{name} has too little to train and to validate on")
    numbers = {label: number for number, label in enumerate(classes)}
    if odd := sorted(set(valid.labels) - numbers.keys()):
        raise StrongTicketError(f"{name}: the validation part has the class {odd[0]!r}, training does not")
    train_labels, valid_labels = (
        np.array([numbers[label] for label in part.labels]) for part in (train, valid)
    )
    return Labelled(name, train.inputs, train_labels, valid.inputs, valid_labels, tuple(classes))


def _hold_out(rows: Rows) -> tuple[Rows, Rows]:
    """Hold out the last fifth of each class."""
    sizes, seen = Counter(rows.labels), Counter[str]()
    train, valid = Rows([], []), Rows([], [])
    for each, label in zip(*rows, strict=True):
        seen[label] += 1
        part = valid if seen[label] > sizes[label] - max(1, sizes[label] // _HELD_OUT) else train
        part.inputs.append(each)
        part.labels.append(label)
    return train, valid


@cache  # scikit-learn reads a table of text each time, and a study searches many times
def _digits() -> Parts:
    """The last fifth is held out, whatever its classes: it is by other writers."""
    digits = require("sklearn.datasets", "images", "scikit-learn").load_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    labels = [str(digit) for digit in digits.target]
    end = len(images) - len(images) // _HELD_OUT
    return Parts(Rows(list(images[:end]), labels[:end]), Rows(list(images[end:]), labels[end:]), ())


def _prose_and_code() -> Parts:
    """Pieces of Python's documentation, and of the source of its standard library."""
    prose = load_corpus("builtin")
    sources = ("argparse", "ast", "dataclasses", "datetime", "decimal", "difflib", "inspect", "typing")
    library = Path(sys.modules["os"].__file__ or "").parent
    files = [file for name in sources if (file := library / f"{name}.py").is_file()]
    texts = {"prose": prose.train + prose.valid, "code": "\n".join(read_text(file) for file in files)}
    size = min(_PIECES * _PIECE, *(len(text) for text in texts.values()))  # as many of each
    starts = range(0, size - _PIECE + 1, _PIECE)
    pieces = [text[start : start + _PIECE] for text in texts.values() for start in starts]
    return Parts(Rows(pieces, [label for label in texts for _ in starts]), None, ())


def _stacked(name: str, images: list[np.ndarray], side: int) -> np.ndarray:
    """The images as one array, resized if a side is given."""
    if side:
        images = [_resized(image, side) for image in images]
    shapes = sorted({image.shape for image in images})
    if len(shapes) > 1:
        raise StrongTicketError(
            f"{name}: the images differ in size or colour: (channels, height, width) {shapes[0]} and {shapes[-1]}",
            hint="Give image_size; make all of them grey or all coloured.",
        )
    _, height, width = shapes[0]
    if height != width:
        raise StrongTicketError(
            f"the images of {name} are {width} × {height}", hint="Give image_size to make them square."
        )
    return np.stack(images)


def _resized(image: np.ndarray, side: int) -> np.ndarray:
    if image.shape[1:] == (side, side):
        return image
    pillow = require("PIL.Image", "images", "Pillow")
    return np.stack([np.asarray(pillow.fromarray(channel).resize((side, side))) for channel in image])
