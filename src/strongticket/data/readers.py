"""Images and texts with labels from files: MNIST's idx format, and all that `datasets` reads."""

from __future__ import annotations

import glob
import gzip
import math
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from strongticket.errors import StrongTicketError, first_line, prefixed, require
from strongticket.files import read_text
from strongticket.models.folder import HUB_NAME

_TRAIN = ("train", "training")
_VALID = ("validation", "valid", "val", "dev", "test", "t10k")
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
_TABLES = (".csv", ".tsv", ".jsonl")
_LARGEST = 1 << 32  # bytes of an idx file once unpacked


class Rows(NamedTuple):
    """Images, uint8 (channels, height, width), or texts; and the names of their classes."""

    inputs: list[Any]
    labels: list[str]


class Parts(NamedTuple):
    """Rows to train and to validate on."""

    train: Rows
    valid: Rows | None
    classes: Sequence[str]  # in their order; empty if the order of their names will do


def read_idx_folder(folder: Path) -> Parts | None:
    """Read train-images-idx3-ubyte and so on, gzipped or not; None if one of the four files is missing."""
    arrays = []
    for names in (_TRAIN, _VALID):
        for kind in ("images", "labels"):
            files = [path for name in names for path in sorted(folder.glob(f"{name}-{kind}*-ubyte*"))]
            if not files:
                return None
            arrays.append(_read_idx(files[0]))
    for images, labels in (arrays[:2], arrays[2:]):
        if images.ndim not in (3, 4) or labels.ndim != 1 or len(images) != len(labels):
            raise StrongTicketError(
                f"{folder}: images have shape {images.shape} and the labels {labels.shape}",
                hint="Get a fresh copy of the files.",
            )
    train, valid = (
        Rows(list(images if images.ndim == 4 else images[:, None]), [str(label) for label in labels])
        for images, labels in (arrays[:2], arrays[2:])
    )
    count = 1 + max(int(labels.max(initial=0)) for labels in (arrays[1], arrays[3]))
    return Parts(train, valid, [str(label) for label in range(count)])


def _read_idx(path: Path) -> np.ndarray:
    """One idx file of unsigned bytes, gzipped or not; nothing is allocated before its header fits its length."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            head = file.read(4)
            if len(head) < 4 or head[:3] != b"\0\0\x08" or not 1 <= head[3] <= 4:
                raise StrongTicketError(f"{path} is not an idx file of unsigned bytes")
            shape = tuple(int.from_bytes(file.read(4), "big") for _ in range(head[3]))
            size = math.prod(shape)
            if size > _LARGEST:
                raise StrongTicketError(f"{path} declares {size:,} bytes: the limit is {_LARGEST:,}")
            data = file.read(size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise StrongTicketError(
            f"cannot read {path}: {error}", hint="Get a fresh copy of the file."
        ) from None
    if len(data) != size:
        raise StrongTicketError(f"{path} does not have the {size:,} bytes that its header declares")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def read_dataset(data: str, column: str) -> Parts:
    """Read a folder, a file or a dataset on the hub with `datasets`; `column` is image or text."""
    try:
        parts = _datasets(data, column)
        train, valid = (next((parts[part] for part in of if part in parts), None) for of in (_TRAIN, _VALID))
        if train is None:
            raise StrongTicketError(
                f"data={data!r} has no {column}s to train on",
                hint="Name them train, as a folder of images, a table or a part of a dataset.",
            )
        # In most sets of images on the hub the columns have other names.
        first = {type(feature).__name__: name for name, feature in reversed(train.features.items())}
        columns = (
            first.get("Image", column) if column == "image" else column,
            first.get("ClassLabel", "label"),
        )
        classes = getattr(train.features.get(columns[1]), "names", ())
        return Parts(_rows(train, *columns), None if valid is None else _rows(valid, *columns), classes)
    except StrongTicketError:
        raise
    except Exception as error:  # what it raises depends on the format, and offline on what is cached
        raise StrongTicketError(
            f"data={data!r} cannot be read: {first_line(error.__cause__ or error)}",
            hint=""
            if Path(data).exists()
            else "Datasets of the hub are downloaded once: that needs a network.",
        ) from error


def _datasets(data: str, column: str) -> Any:
    """Name of a part -> its Dataset."""
    datasets, path = require("datasets", "huggingface"), Path(data)
    if any((path / name).is_file() for name in ("dataset_dict.json", "dataset_info.json")):
        saved = datasets.load_from_disk(data)
        return {"train": saved} if isinstance(saved, datasets.Dataset) else saved
    if path.is_dir() and column == "image":
        folders = [folder for part in _TRAIN + _VALID if (folder := path / part).is_dir()]
        return {folder.name: _pictures(folder) for folder in folders} or {"train": _pictures(path)}
    if path.is_dir():
        return {file.stem: _table(file) for file in path.iterdir() if file.suffix in _TABLES}
    if path.suffix in _TABLES and path.is_file():
        return {"train": _table(path)}
    if path.exists() or "/" not in data or not HUB_NAME.fullmatch(data):
        raise StrongTicketError(
            f"data={data!r} is not a file, folder or known set of {column}s",
            hint="Expected builtin, a folder, a .csv, .tsv or .jsonl file, or owner/name of a Hugging Face dataset.",
        )
    return datasets.load_dataset(data)


def _pictures(folder: Path) -> Any:
    """The Dataset of a folder with a subfolder of images per class."""
    datasets = require("datasets", "huggingface")
    files = [file for file in sorted(folder.glob("*/*")) if file.suffix.lower() in _PICTURES]
    rows = {"image": [str(file) for file in files], "label": [file.parent.name for file in files]}
    features = datasets.Features(image=datasets.Image(), label=datasets.Value("string"))
    return datasets.Dataset.from_dict(rows, features=features)


def _table(path: Path) -> Any:
    """The Dataset of a .csv, .tsv or .jsonl file."""
    datasets = require("datasets", "huggingface")
    read_text(path)  # an error names the byte that is not text; `datasets` would unpack an archive
    with tempfile.TemporaryDirectory() as folder:
        where = dict(path_or_paths=glob.escape(str(path)), cache_dir=folder, keep_in_memory=True)
        if path.suffix == ".jsonl":
            return datasets.Dataset.from_json(**where)
        texts = datasets.Features(text=datasets.Value("string"), label=datasets.Value("string"))
        return datasets.Dataset.from_csv(
            **where,
            features=texts,
            sep="\t" if path.suffix == ".tsv" else ",",
            usecols=list(texts),
            keep_default_na=False,  # a text may be "NA"
        )


def _rows(part: Any, column: str, label: str) -> Rows:
    if missing := [name for name in (column, label) if name not in part.features]:
        raise StrongTicketError(f"there is no column {missing[0]!r}", hint="Name one `label`.")
    feature, classes = part.features[column], part.features[label]
    is_image = hasattr(feature, "decode_example")
    inputs = part.cast_column(column, type(feature)(decode=False))[column] if is_image else part[column]
    inputs, labels = list(inputs), list(part[label])
    if None in inputs or None in labels:
        raise StrongTicketError(f"a row has no {column if None in inputs else label}")
    names = classes.int2str(labels) if hasattr(classes, "int2str") else [str(value) for value in labels]
    if not is_image:
        return Rows([str(text) for text in inputs], names)
    images = []
    for stored in inputs:
        with prefixed(f"cannot read the image {stored['path']}"):
            # Its bytes, because a path may be an address, and would be left open by an error.
            data = stored["bytes"] or Path(stored["path"]).read_bytes()
            images.append(_pixels(feature.decode_example({"path": None, "bytes": data})))
    return Rows(images, names)


def _pixels(picture: Any) -> np.ndarray:
    """uint8 (channels, height, width): one channel for grey images, else three."""
    array = np.asarray(picture.convert("L" if picture.mode in ("1", "L", "LA", "I", "I;16") else "RGB"))
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
