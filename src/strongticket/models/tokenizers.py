"""Text to token numbers and back: characters, byte pairs trained on the text, or a tokenizer by name."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from strongticket.errors import MissingDependency, StrongTicketError, prefixed, require
from strongticket.files import JsonObject
from strongticket.models.folder import TOKENIZER, ModelFolder, from_hub
from strongticket.models.tokenizer_files import check_steps, clean_files

_PIECE = 1 << 20  # characters given to a byte-pair tokenizer at a time


class Tokenizer(Protocol):
    """What generating needs of a tokenizer: `size` is the number of its tokens."""

    size: int

    def encode(self, text: str) -> np.ndarray: ...
    def decode(self, tokens: list[int]) -> str: ...


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

    def to_json(self) -> JsonObject:
        return {"kind": "characters", "vocabulary": self.vocabulary}

    def definition(self) -> str:
        """The text of a tokenizer.json: words of length one, glued together again without spaces."""
        library = require("tokenizers", "huggingface")
        numbers = {character: number for number, character in enumerate(self.vocabulary)}
        with prefixed("the vocabulary cannot be read"):
            inner = library.Tokenizer(library.models.WordLevel(numbers, unk_token=self.vocabulary[0]))
        inner.pre_tokenizer = library.pre_tokenizers.Split(library.Regex(r"[\s\S]"), "isolated")
        inner.decoder = library.decoders.Fuse()
        return str(inner.to_str())


class BytePairs:
    """A tokenizer of the `tokenizers` library: trained here, or by name. It neither truncates nor pads a text."""

    def __init__(self, inner: Any, name: str = "") -> None:
        inner.no_truncation()
        inner.no_padding()
        self._inner = inner
        self.name = name
        self.size = inner.get_vocab_size()

    @classmethod
    def trained(cls, text: str, size: int) -> BytePairs:
        if size < 257:
            raise StrongTicketError(f"vocabulary must be at least 257 (256 bytes and one pair), got {size}")
        library = require("tokenizers", "huggingface")
        inner = _byte_level(library.models.BPE())
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
        inner.train_from_iterator(_pieces(text), trainer)
        return cls(inner)

    @classmethod
    def from_text(cls, text: str, name: str = "") -> BytePairs:
        """The tokenizer of the text of a tokenizer.json."""
        library = require("tokenizers", "huggingface")
        with prefixed(f"{name or 'the tokenizer'} cannot be read"):
            check_steps(text)
            return cls(library.Tokenizer.from_str(text), name)

    @classmethod
    def named(cls, name: str) -> BytePairs:
        """A folder with tokenizer.json, or vocab.json and merges.txt; else a name on the Hugging Face hub."""
        if not Path(name).exists():
            return cls.on_hub(name)
        folder = ModelFolder(Path(name))
        if texts := folder.tokenizer_files():
            return cls.from_text(texts[TOKENIZER], name)
        vocabulary, merges = folder.file("vocab.json"), folder.file("merges.txt")
        if not vocabulary or not merges:
            raise StrongTicketError(
                f"tokens={name!r} is not a tokenizer",
                hint="Expected a folder with tokenizer.json, or with vocab.json and merges.txt.",
            )
        library = require("tokenizers", "huggingface")
        with prefixed(f"{vocabulary} cannot be read"):
            return cls(_byte_level(library.models.BPE.from_file(str(vocabulary), str(merges))), name)

    @classmethod
    def on_hub(cls, name: str) -> BytePairs:
        """The tokenizer.json of a repository of the Hugging Face hub; never a folder of this machine."""
        with prefixed("tokenizer"):
            folder = from_hub(name, TOKENIZER, [TOKENIZER])
        return cls.from_text(ModelFolder(folder).tokenizer_files()[TOKENIZER], name)

    def encode(self, text: str) -> np.ndarray:
        with prefixed("the text cannot be read"):
            parts = [self._inner.encode(piece, add_special_tokens=False).ids for piece in _pieces(text)]
        return np.concatenate([np.array(part, np.uint32) for part in parts] or [np.empty(0, np.uint32)])

    def decode(self, tokens: list[int]) -> str:
        with prefixed("the tokens cannot be read"):
            return str(self._inner.decode(tokens, skip_special_tokens=False))

    def definition(self) -> str:
        """The text of its tokenizer.json: all that its tokens depend on."""
        return str(self._inner.to_str())

    def to_json(self) -> JsonObject:
        if self.name:
            return {"kind": "named", "name": self.name}
        return {"kind": "bpe", "tokenizer": self.definition()}


class FromFiles:
    """A transformers tokenizer, from the texts of its files: tokenizer.json and its companions, no other."""

    def __init__(self, files: dict[str, str]) -> None:
        with tempfile.TemporaryDirectory() as folder, prefixed("the files of the tokenizer cannot be read"):
            for name, text in clean_files(files).items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            # A class that comes with the files would be code: it is not offered, and nothing is downloaded.
            self.inner = require("transformers", "huggingface").AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        self.size = len(self.inner)

    def encode(self, text: str) -> np.ndarray:
        with prefixed("the text cannot be read"):
            return np.array(self.inner(text).input_ids, np.int64)

    def decode(self, tokens: list[int]) -> str:
        with prefixed("the tokens cannot be read"):
            return str(self.inner.decode(tokens, skip_special_tokens=True))


StoredTokenizer = Characters | BytePairs  # what the ticket of a search names


def make_tokenizer(tokens: str, vocabulary: int, train: str, valid: str) -> StoredTokenizer:
    """Make a tokenizer of characters (`characters`) or byte pairs (`bpe`), or load one by its name or folder."""
    if tokens == "characters":
        return Characters.of(train + valid)
    if tokens == "bpe":
        return BytePairs.trained(train, vocabulary)
    return BytePairs.named(tokens)


def from_json(stored: JsonObject, *, name: str | None = None) -> StoredTokenizer:
    """Return the tokenizer that a ticket names; `name` says where a named one is now."""
    kind = stored.get("kind") if isinstance(stored, dict) else None
    fields = {"characters": "vocabulary", "bpe": "tokenizer", "named": "name"}
    if not isinstance(kind, str) or kind not in fields:
        raise StrongTicketError(
            f"tokenizer kind {kind!r} is unknown", hint="Expected characters, bpe or named."
        )
    value = stored.get(fields[kind])
    if not isinstance(value, str) or not value:
        raise StrongTicketError(f"the tokenizer's {fields[kind]} is {value!r}: expected a text")
    if kind == "characters":
        return Characters(value)
    if kind == "bpe":
        return BytePairs.from_text(value)
    if name:
        return BytePairs.named(name)
    try:  # the hub alone: a file must not choose what is read on this machine
        return BytePairs.on_hub(value)
    except MissingDependency:
        raise
    except StrongTicketError as error:
        raise StrongTicketError(
            f"the ticket does not contain its tokenizer, {value!r}, and it cannot be loaded from the hub",
            hint="Give its folder: --tokenizer DIR, or tokenizer=... in Python.",
        ) from error


def _pieces(text: str) -> list[str]:
    """The text cut after line ends, so that memory stays bounded: _PIECE characters and the rest of their line."""
    return re.findall(rf"(?s:.{{1,{_PIECE}}})[^\n]*\n?", text)


def _byte_level(model: Any) -> Any:
    """A tokenizer of the library that works on the bytes of a text."""
    library = require("tokenizers", "huggingface")
    inner = library.Tokenizer(model)
    inner.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = library.decoders.ByteLevel()
    return inner
