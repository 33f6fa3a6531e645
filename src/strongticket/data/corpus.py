"""Text to search on: Python's own documentation, text files, or a Hugging Face dataset."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.files import read_text

# short name -> (repository, configuration)
DATASETS = {
    "wikitext-103": ("Salesforce/wikitext", "wikitext-103-raw-v1"),
    "wikitext-2": ("Salesforce/wikitext", "wikitext-2-raw-v1"),
}
_VALIDATION_SHARE = 0.1  # of a text that has no validation part of its own: its end
_VALIDATION_NAMES = ("valid", "validation", "val", "dev")


@dataclass(frozen=True)
class Corpus:
    name: str
    train: str
    valid: str


def load_corpus(data: str) -> Corpus:
    """`builtin`, a dataset's name, a text file, or a folder of .txt files.

    In a folder, files named valid.txt (or validation, val, dev) are the validation text and test.txt is left
    out; without them, and in a single file, the last tenth of the text is held out.
    """
    if data == "builtin":
        return _split(f"pydoc_data.topics of Python {platform.python_version()}", _builtin())
    if data in DATASETS:
        return _dataset(data)
    path = Path(data)
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return _split(path.name, read_text(path))
    raise StrongTicketError(
        f"data={data!r} is not a file, folder or known dataset",
        hint=f"Expected builtin, a path or one of {', '.join(DATASETS)}.",
    )


def _builtin() -> str:
    """The language reference as `help()` shows it. It differs between Python versions, and so do losses."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def _folder(path: Path) -> Corpus:
    files = sorted(path.glob("*.txt"))
    valid = [file for file in files if file.stem.lower() in _VALIDATION_NAMES]
    train = [file for file in files if file not in valid and file.stem.lower() != "test"]
    if not train:
        raise StrongTicketError(
            f"folder {path} has no .txt file to train on", hint="Put the text in files *.txt."
        )
    text = "\n".join(read_text(file) for file in train)
    if not valid:
        return _split(path.name, text)
    return Corpus(path.name, text, "\n".join(read_text(file) for file in valid))


def _dataset(name: str) -> Corpus:
    try:
        import datasets
    except ImportError:
        raise MissingDependency("datasets", "huggingface") from None
    try:
        parts = datasets.load_dataset(*DATASETS[name])
    except (OSError, ValueError, RuntimeError) as error:  # what it raises offline depends on what is cached
        raise StrongTicketError(
            f"dataset {name} could not be loaded ({type(error).__name__}): it is downloaded once and needs "
            "a network for that",
            hint="Pass a text file or folder, or builtin, which needs none.",
        ) from error
    return Corpus(name, *("".join(parts[split]["text"]) for split in ("train", "validation")))


def _split(name: str, text: str) -> Corpus:
    end = len(text) - round(_VALIDATION_SHARE * len(text))
    return Corpus(name, text[:end], text[end:])
