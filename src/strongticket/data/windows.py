"""A corpus as token numbers: made once, kept in memory-mapped files named by what made them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from strongticket.data.corpus import load_corpus
from strongticket.data.tokenizers import BytePairs, Tokenizer, from_json, make_tokenizer
from strongticket.errors import StrongTicketError

_VERSION = 1  # of the file format


@dataclass(frozen=True)
class TokenisedText:
    name: str
    tokenizer: Tokenizer
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


def load_tokens(data: str, tokens: str, vocabulary: int, cache: Path) -> TokenisedText:
    """The corpus `data` in tokens, from the cache; if it is not there, it is made and stored."""
    corpus = load_corpus(data)
    key = hashlib.blake2b(digest_size=16)
    # A name may mean another tokenizer tomorrow, and a relative path in another folder.
    definition = "" if tokens in ("characters", "bpe") else BytePairs.named(tokens).definition()
    for part in (
        str(_VERSION),
        tokens + definition,
        str(vocabulary if tokens == "bpe" else 0),
        corpus.train,
        corpus.valid,
    ):
        key.update(len(part).to_bytes(8, "little") + part.encode("utf-8"))
    folder = cache / "tokens" / key.hexdigest()
    if not (folder / "about.json").is_file():
        tokenizer = make_tokenizer(tokens, vocabulary, corpus.train, corpus.valid)
        _write(folder, tokenizer, corpus.train, corpus.valid)
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    train, valid = (
        np.memmap(folder / f"{part}.bin", dtype=about["dtype"], mode="r") for part in ("train", "valid")
    )
    tokenizer = from_json(about["tokenizer"], name=tokens)
    return TokenisedText(corpus.name, tokenizer, train, valid, about["valid_bytes"])


def _write(folder: Path, tokenizer: Tokenizer, train: str, valid: str) -> None:
    """The folder appears by rename; of two processes that make it the first one wins."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    dtype = "<u2" if tokenizer.size <= 1 << 16 else "<u4"
    new = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for name, text in (("train", train), ("valid", valid)):
            ids = tokenizer.encode(text)
            if not len(ids):
                raise StrongTicketError(f"the {name} text is empty", hint="Give a longer text.")
            ids.astype(dtype).tofile(new / f"{name}.bin")
        about = {
            "dtype": dtype,
            "tokenizer": tokenizer.to_json(),
            "valid_bytes": len(valid.encode("utf-8")),
        }
        (new / "about.json").write_text(json.dumps(about), encoding="utf-8")
        try:
            os.replace(new, folder)
        except OSError:
            if not (folder / "about.json").is_file():
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
