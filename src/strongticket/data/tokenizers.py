"""Text to token numbers and back: characters, byte pairs trained on the text, or a tokenizer by name."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from strongticket.errors import MissingDependency, StrongTicketError

_PIECE = 1 << 20  # characters given to a byte-pair tokenizer at a time


class Tokenizer(Protocol):
    size: int

    def encode(self, text: str) -> np.ndarray: ...
    def decode(self, tokens: list[int]) -> str: ...
    def to_json(self) -> dict[str, Any]: ...


class Characters:
    """Each character of the training and validation text is a token, numbered by code point."""

    def __init__(self, vocabulary: str) -> None:
        self.vocabulary = vocabulary
        self.size = len(vocabulary)
        self._points = np.array([ord(character) for character in vocabulary], np.uint32)

    @classmethod
    def of(cls, text: str) -> Characters:
        return cls("".join(sorted(set(text))))

    def encode(self, text: str) -> np.ndarray:
        points = np.frombuffer(text.encode("utf-32-le"), "<u4")
        tokens = np.minimum(np.searchsorted(self._points, points), self.size - 1)
        if (wrong := self._points[tokens] != points).any():
            raise StrongTicketError(
                f"character {text[int(wrong.argmax())]!r} at {int(wrong.argmax())} is not in the "
                f"vocabulary of {self.size} characters the network was trained on",
                hint="Leave it out.",
            )
        return tokens

    def decode(self, tokens: list[int]) -> str:
        return "".join(self.vocabulary[token] for token in tokens)

    def to_json(self) -> dict[str, Any]:
        return {"kind": "characters", "vocabulary": self.vocabulary}


class BytePairs:
    """A tokenizer of the `tokenizers` library: trained here, or by name."""

    def __init__(self, inner: Any, name: str = "") -> None:
        self._inner = inner
        self.name = name
        self.size = inner.get_vocab_size()

    @classmethod
    def trained(cls, text: str, size: int) -> BytePairs:
        if size < 257:
            raise StrongTicketError(f"vocabulary must be at least 257 (256 bytes and one pair), got {size}")
        tokenizers = _tokenizers()
        inner = tokenizers.Tokenizer(tokenizers.models.BPE())
        inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = tokenizers.decoders.ByteLevel()
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=alphabet, show_progress=False
        )
        inner.train_from_iterator(_pieces(text), trainer)
        return cls(inner)

    @classmethod
    def named(cls, name: str) -> BytePairs:
        """A folder with tokenizer.json, or vocab.json and merges.txt; else a name on the Hugging Face hub."""
        tokenizers = _tokenizers()
        folder = Path(name)
        if (folder / "tokenizer.json").is_file():
            return cls(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")), name)
        if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            files = str(folder / "vocab.json"), str(folder / "merges.txt")
            inner = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))
            inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            inner.decoder = tokenizers.decoders.ByteLevel()
            return cls(inner, name)
        if folder.exists():
            raise StrongTicketError(
                f"tokens={name!r} is no tokenizer",
                hint="Expected a folder with tokenizer.json, or with vocab.json and merges.txt.",
            )
        try:
            return cls(tokenizers.Tokenizer.from_pretrained(name), name)
        except Exception as error:  # the library raises bare Exceptions, offline and for unknown names
            raise StrongTicketError(
                f"tokenizer {name!r} could not be loaded from the Hugging Face hub",
                hint="Check the name and the network, or pass its folder, or characters or bpe, which need "
                "neither.",
            ) from error

    def encode(self, text: str) -> np.ndarray:
        parts = (self._inner.encode(piece, add_special_tokens=False).ids for piece in _pieces(text))
        return np.concatenate([np.array(part, np.uint32) for part in parts] or [np.empty(0, np.uint32)])

    def decode(self, tokens: list[int]) -> str:
        return self._inner.decode(tokens, skip_special_tokens=False)

    def definition(self) -> str:
        """All that its tokens depend on."""
        return self._inner.to_str()

    def to_json(self) -> dict[str, Any]:
        if self.name:
            return {"kind": "named", "name": self.name}
        return {"kind": "bpe", "tokenizer": self.definition()}


class FromFiles:
    """A transformers tokenizer, from the texts of its files (tokenizer.json and its companions)."""

    def __init__(self, files: dict[str, str]) -> None:
        from strongticket.data.models import transformers

        self._files = files
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / Path(name).name).write_text(text, encoding="utf-8")
            self.inner = transformers().AutoTokenizer.from_pretrained(folder)
        self.size = len(self.inner)

    def encode(self, text: str) -> np.ndarray:
        return np.array(self.inner(text).input_ids, np.int64)

    def decode(self, tokens: list[int]) -> str:
        return self.inner.decode(tokens, skip_special_tokens=True)

    def to_json(self) -> dict[str, Any]:
        return self._files


def make_tokenizer(tokens: str, vocabulary: int, train: str, valid: str) -> Tokenizer:
    """`characters`, `bpe` or a tokenizer's name or folder."""
    if tokens == "characters":
        return Characters.of(train + valid)
    if tokens == "bpe":
        return BytePairs.trained(train, vocabulary)
    return BytePairs.named(tokens)


def from_json(stored: dict[str, Any], *, name: str | None = None) -> Tokenizer:
    """The tokenizer a ticket names; `name` says where a named one lies now."""
    kind = stored.get("kind")
    if kind == "characters":
        return Characters(stored["vocabulary"])
    if kind == "bpe":
        return BytePairs(_tokenizers().Tokenizer.from_str(stored["tokenizer"]))
    if kind == "named":
        return BytePairs.named(name or stored["name"])
    raise StrongTicketError(f"tokenizer kind {kind!r} is unknown", hint="Expected characters, bpe or named.")


def _pieces(text: str) -> list[str]:
    """The text cut after line ends, so that memory stays bounded."""
    pieces, start = [], 0
    while start < len(text):
        end = start + _PIECE
        cut = text.find("\n", end)
        end = len(text) if cut < 0 else cut + 1
        pieces.append(text[start:end])
        start = end
    return pieces


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingDependency("tokenizers", "huggingface") from None
    return tokenizers
