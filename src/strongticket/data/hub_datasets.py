"""Hugging Face datasets with labels: a folder that `datasets` saved, or a name on the hub."""

from __future__ import annotations

import re
from pathlib import Path

from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.files import JsonObject

_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_SAVED = ("dataset_dict.json", "dataset_info.json")
_VALIDATION = ("validation", "valid", "val", "dev", "test")


def is_dataset(data: str) -> bool:
    """Whether `data` is a folder that `datasets` saved, or looks like a name on the hub and is not a path."""
    path = Path(data)
    if path.is_dir():
        return any((path / name).is_file() for name in _SAVED)
    return not path.exists() and bool(_HUB_NAME.fullmatch(data))


def load_dataset(data: str, *, kind: str) -> tuple[str, JsonObject]:
    """(name, {"train": ..., "valid": ...}) of a dataset that has a column of this kind.

    data: see is_dataset
    kind: class name of a feature, such as Image; "" asks for none
    Without a validation part, the last fifth is held out.
    """
    try:
        import datasets
    except ImportError:
        raise MissingDependency("datasets", "huggingface") from None
    local = Path(data).is_dir()
    try:
        parts = datasets.load_from_disk(data) if local else datasets.load_dataset(data)
    except Exception as error:  # what it raises offline depends on what is cached, on damage by the format
        raise StrongTicketError(
            f"dataset {data} could not be loaded ({type(error).__name__}: {str(error)[:200]})",
            hint="Datasets of the hub are downloaded once and need a network for that." if not local else "",
        ) from error
    if isinstance(parts, datasets.Dataset):
        parts = {"train": parts}
    if "train" not in parts:
        raise StrongTicketError(f"dataset {data} has no part `train`, only {', '.join(parts)}")
    train = parts["train"]
    valid = next((parts[name] for name in _VALIDATION if name in parts), None)
    if valid is None:
        end = len(train) - max(1, len(train) // 5)
        train, valid = train.select(range(end)), train.select(range(end, len(train)))
    if kind and not any(type(feature).__name__ == kind for feature in train.features.values()):
        raise StrongTicketError(f"dataset {data} has no column of kind {kind}")
    return (Path(data).resolve().name if local else data), {"train": train, "valid": valid}
