"""Images with labels to search on: scikit-learn's digits, idx files, a folder of images, or a Hugging Face dataset."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.data.hub_datasets import is_dataset, load_dataset
from strongticket.errors import MissingDependency, StrongTicketError

_PARTS = {"train": ("train", "training"), "valid": ("valid", "validation", "val", "test", "t10k")}
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
_LARGEST = 1 << 32  # bytes of an idx file once unpacked
_HELD_OUT = 5  # of images without a validation part, the last fifth of each class is held out


@dataclass(frozen=True)
class LabelledImages:
    """Square images with labels.

    train, valid: uint8 (images, channels, side, side)
    train_labels, valid_labels: int64 (images,), each an index of `labels`
    labels: names of the classes
    """

    name: str
    train: np.ndarray
    train_labels: np.ndarray
    valid: np.ndarray
    valid_labels: np.ndarray
    labels: tuple[str, ...]

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


def load_images(data: str, side: int = 0) -> LabelledImages:
    """Read a data set of images.

    data: `builtin` or `digits` (scikit-learn's 8 × 8 digits), a folder with MNIST's idx files, a folder with a
        subfolder of images per class (or train/ and valid/ with such subfolders), a folder that `datasets`
        saved, or the name of a dataset on the Hugging Face hub such as ylecun/mnist
    side: images are resized to side × side pixels; 0 leaves them as they are, and they must be square
    """
    if data in ("builtin", "digits"):
        found = _digits()
    elif is_dataset(data):
        found = _hugging_face(data, side)
    elif Path(data).is_dir():
        found = _idx(Path(data)) or _folder(Path(data), side)
    else:
        raise StrongTicketError(
            f"data={data!r} is not a folder or a known set of images",
            hint="Expected builtin, a folder with idx files or images, or owner/name of a Hugging Face dataset.",
        )
    if side and found.train.shape[-1] != side:
        found = LabelledImages(
            found.name, *(_resized(found.train, side), found.train_labels),
            *(_resized(found.valid, side), found.valid_labels), found.labels,
        )  # fmt: skip
    if found.train.shape[-1] != found.train.shape[-2]:
        height, width = found.train.shape[-2:]
        raise StrongTicketError(
            f"the images of {found.name} are {width} × {height}", hint="Give image_size to make them square."
        )
    if not len(found.train) or not len(found.valid):
        raise StrongTicketError(f"{found.name} has too few images to train and to validate on")
    return found


def _digits() -> LabelledImages:
    """The last fifth is held out: it is by other writers."""
    digits = _read_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    labels = digits.target.astype(np.int64)
    end = len(images) - len(images) // _HELD_OUT
    names = tuple(str(digit) for digit in range(10))
    return LabelledImages(
        "digits of scikit-learn", images[:end], labels[:end], images[end:], labels[end:], names
    )


@cache
def _read_digits() -> Any:
    """Once: scikit-learn reads a table of text each time, and a study searches many times."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingDependency("scikit-learn", "images") from None
    return load_digits()


def _idx(folder: Path) -> LabelledImages | None:
    """MNIST's format: train-images-idx3-ubyte and so on, gzipped or not."""
    found = {}
    for part, names in _PARTS.items():
        for kind in ("images", "labels"):
            files = [path for name in names for path in sorted(folder.glob(f"{name}-{kind}*-ubyte*"))]
            if not files:
                return None
            found[part, kind] = _read_idx(files[0])
    arrays = []
    for part in _PARTS:
        images, labels = found[part, "images"], found[part, "labels"]
        if images.ndim not in (3, 4) or labels.ndim != 1 or len(images) != len(labels):
            raise StrongTicketError(
                f"{folder}: the {part} images have shape {images.shape} and the labels {labels.shape}",
                hint="Get a fresh copy of the files.",
            )
        arrays += [images[:, None] if images.ndim == 3 else images, labels.astype(np.int64)]
    classes = 1 + max(int(labels.max(initial=0)) for labels in (arrays[1], arrays[3]))
    names = tuple(str(number) for number in range(classes))
    return LabelledImages(folder.resolve().name, arrays[0], arrays[1], arrays[2], arrays[3], names)


def _read_idx(path: Path) -> np.ndarray:
    """One idx file of unsigned bytes; nothing is allocated before its header fits its length."""
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


def _folder(folder: Path, side: int) -> LabelledImages:
    """A subfolder per class, in train/ and valid/ or right below."""
    parts = {}
    for part, names in _PARTS.items():
        parts[part] = next((folder / name for name in names if (folder / name).is_dir()), None)
    train = _classes(parts["train"] or folder)
    labels = tuple(sorted(train))
    if parts["train"] and parts["valid"]:
        valid = _classes(parts["valid"])
        if odd := sorted(valid.keys() - train.keys()):
            raise StrongTicketError(
                f"{parts['valid']} has the class {odd[0]!r}, which {parts['train']} lacks"
            )
    else:
        ends = {label: len(files) - max(1, len(files) // _HELD_OUT) for label, files in train.items()}
        valid = {label: files[ends[label] :] for label, files in train.items()}
        train = {label: files[: ends[label]] for label, files in train.items()}
    arrays = []
    for files_of in (train, valid):
        pairs = [(path, labels.index(label)) for label in labels for path in files_of.get(label, [])]
        arrays += [_stacked([_open(path, side) for path, _ in pairs]), np.array([n for _, n in pairs])]
    return LabelledImages(folder.resolve().name, arrays[0], arrays[1], arrays[2], arrays[3], labels)


def _classes(folder: Path) -> dict[str, list[Path]]:
    """Class -> its image files."""
    found = {
        path.name: [file for file in sorted(path.iterdir()) if file.suffix.lower() in _SUFFIXES]
        for path in sorted(folder.iterdir())
        if path.is_dir()
    }
    found = {label: files for label, files in found.items() if files}
    if len(found) < 2:
        raise StrongTicketError(
            f"{folder} has fewer than two subfolders with images",
            hint=f"Make one subfolder per class, with files {', '.join(_SUFFIXES)}.",
        )
    return found


def _hugging_face(data: str, side: int) -> LabelledImages:
    name, parts = load_dataset(data, kind="Image")
    columns = parts["train"].features
    image = next(column for column, feature in columns.items() if type(feature).__name__ == "Image")
    label = next((column for column, f in columns.items() if type(f).__name__ == "ClassLabel"), "label")
    if label not in columns:
        raise StrongTicketError(f"{name} has no column of labels", hint="Name it `label`.")
    arrays = []
    for part in ("train", "valid"):
        arrays += [_stacked([_array(picture, side) for picture in parts[part][image]])]
        arrays += [np.asarray(parts[part][label], dtype=np.int64)]
    known = getattr(columns[label], "names", None)
    count = 1 + int(max(arrays[1].max(initial=0), arrays[3].max(initial=0)))
    labels = tuple(known or (str(number) for number in range(count)))
    return LabelledImages(name, arrays[0], arrays[1], arrays[2], arrays[3], labels)


def _open(path: Path, side: int) -> np.ndarray:
    image = _pillow()
    try:
        with image.open(path) as picture:
            return _array(picture, side)
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise StrongTicketError(f"cannot read the image {path}: {error}") from None


def _array(picture: Any, side: int) -> np.ndarray:
    """uint8 (channels, height, width): one channel for grey images, else three."""
    picture = picture.convert("L" if picture.mode in ("1", "L", "LA", "I", "I;16") else "RGB")
    if side and picture.size != (side, side):
        picture = picture.resize((side, side))
    array = np.asarray(picture, dtype=np.uint8)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def _stacked(images: list[np.ndarray]) -> np.ndarray:
    shapes = sorted({image.shape for image in images})
    if len(shapes) > 1:
        raise StrongTicketError(
            f"the images differ in size or colour: (channels, height, width) {shapes[0]} and {shapes[-1]}",
            hint="Give image_size; make all of them grey or all coloured.",
        )
    return np.stack(images) if images else np.zeros((0, 1, 1, 1), np.uint8)


def _resized(images: np.ndarray, side: int) -> np.ndarray:
    picture = _pillow()
    return np.stack([
        np.stack([
            np.asarray(picture.fromarray(channel).resize((side, side)), dtype=np.uint8) for channel in image
        ])
        for image in images
    ])  # fmt: skip


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependency("Pillow", "images") from None
    return Image
