"""Text to search on (Python's documentation, text files, a Hugging Face dataset), as windows of token numbers."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.errors import StrongTicketError, require
from strongticket.files import dump_json, read_text, write_file
from strongticket.models.tokenizers import BytePairs, StoredTokenizer, from_json, make_tokenizer

# short name -> (repository, configuration)
DATASETS = {
    "wikitext-103": ("Salesforce/wikitext", "wikitext-103-raw-v1"),
    "wikitext-2": ("Salesforce/wikitext", "wikitext-2-raw-v1"),
}
_HELD_OUT = 0.1  # of a text that has no validation part of its own: its end
_VALIDATION_NAMES = ("valid", "validation", "val", "dev")
_VERSION = 2  # of the files with tokens


@dataclass(frozen=True)
class Corpus:
    """A text to train on and one to validate on."""

    name: str
    train: str
    valid: str


@dataclass(frozen=True)
class TokenisedText:
    """A corpus as token numbers."""

    name: str
    tokenizer: StoredTokenizer
    train: np.ndarray  # memory-mapped, uint16 or uint32
    valid: np.ndarray
    valid_bytes: int  # of the validation text in UTF-8

    @property
    def bytes_per_token(self) -> float:
        return self.valid_bytes / len(self.valid)


class Windows(Dataset[dict[str, torch.Tensor]]):
    """A text cut into sequences of `context` tokens, one after the other; what is left over is dropped."""

    def __init__(self, tokens: np.ndarray, context: int, name: str = "text") -> None:
        if len(tokens) < context:
            raise StrongTicketError(
                f"the {name} has {len(tokens)} tokens, fewer than one sequence of {context}",
                hint="Give more text or a smaller context.",
            )
        self.tokens, self.context = tokens, context

    def __len__(self) -> int:
        return len(self.tokens) // self.context

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        start = index * self.context
        ids = torch.from_numpy(self.tokens[start : start + self.context].astype(np.int64))
        labels = ids.clone()
        labels[0] = -100  # nothing predicts it: Trainer divides by the number of labels
        return {"input_ids": ids, "labels": labels}


def load_corpus(data: str) -> Corpus:
    """Read `builtin`, a dataset by its name, a text file, or a folder of .txt files.

    In a folder, files named valid.txt (or validation, val, dev) are the validation text and test.txt is left
    out; without them, and in a single file, the last tenth of the text is held out.
    """
    if data == "builtin":
        # The language reference as `help()` shows it. It differs between Python versions, and so do losses.
        from pydoc_data.topics import topics

        text = "\n\n".join(topics[name] for name in sorted(topics))
        return _split(f"pydoc_data.topics of Python {platform.python_version()}", text)
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


def load_tokens(data: str, tokens: str, vocabulary: int, cache: Path) -> TokenisedText:
    """Read a corpus as tokens, which are computed once and kept in files named by what they depend on."""
    corpus = load_corpus(data)
    # A name may mean another tokenizer tomorrow, and a relative path in another folder.
    definition = "" if tokens in ("characters", "bpe") else BytePairs.named(tokens).definition()
    size = vocabulary if tokens == "bpe" else 0
    key = hashlib.blake2b(digest_size=16)
    for part in (str(_VERSION), tokens + definition, str(size), corpus.train, corpus.valid):
        key.update(len(part).to_bytes(8, "little") + part.encode("utf-8"))
    path = cache / "tokens" / key.hexdigest()
    record_path = path.with_suffix(".json")
    if not record_path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        tokenizer = make_tokenizer(tokens, vocabulary, corpus.train, corpus.valid)
        train, valid = (tokenizer.encode(text) for text in (corpus.train, corpus.valid))
        if not len(train) or not len(valid):
            empty = "validation" if len(train) else "training"
            raise StrongTicketError(f"the {empty} text is empty", hint="Give a longer text.")
        dtype = "<u2" if tokenizer.size <= 1 << 16 else "<u4"
        write_file(path, [part.astype(dtype).tobytes() for part in (train, valid)])
        record = {"dtype": dtype, "train": len(train), "tokenizer": tokenizer.to_json()}
        write_file(record_path, dump_json(record))  # last: where it is, the tokens are too
    record = json.loads(record_path.read_bytes())
    numbers = np.memmap(path, dtype=record["dtype"], mode="r")
    return TokenisedText(
        corpus.name,
        from_json(record["tokenizer"], name=tokens),
        numbers[: record["train"]],
        numbers[record["train"] :],
        len(corpus.valid.encode("utf-8")),
    )


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
    datasets = require("datasets", "huggingface")
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
    end = len(text) - round(_HELD_OUT * len(text))
    return Corpus(name, text[:end], text[end:])
