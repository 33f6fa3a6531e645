"""Text to token numbers and back: characters, byte pairs trained on the text, or a tokenizer by name."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from strongticket.data.folder import TOKENIZER, ModelFolder, from_hub
from strongticket.data.tokenizer_files import check_steps, known_files, readable
from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.files import JsonObject

_PIECE = 1 << 20  # characters given to a byte-pair tokenizer at a time


class Tokenizer(Protocol):
    size: int

    def encode(self, text: str) -> np.ndarray: ...
    def decode(self, tokens: list[int]) -> str: ...
    def to_json(self) -> JsonObject: ...


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
    def from_text(cls, text: str, name: str = "", *, what: str = "the tokenizer") -> BytePairs:
        """The tokenizer of a tokenizer.json.

        text: of the file; what: its name in errors
        """
        library = _tokenizers()
        with readable(what):
            check_steps(text)
            return cls(library.Tokenizer.from_str(text), name)

    @classmethod
    def named(cls, name: str) -> BytePairs:
        """A folder with tokenizer.json, or vocab.json and merges.txt; else a name on the Hugging Face hub."""
        tokenizers = _tokenizers()
        folder = Path(name)
        whole, vocabulary, merges = map(ModelFolder(folder).file, (TOKENIZER, "vocab.json", "merges.txt"))
        if whole:
            return cls._of_folder(folder, name)
        if vocabulary and merges:
            with readable(str(vocabulary)):
                inner = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(vocabulary), str(merges)))
            inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            inner.decoder = tokenizers.decoders.ByteLevel()
            return cls(inner, name)
        if folder.exists():
            raise StrongTicketError(
                f"tokens={name!r} is not a tokenizer",
                hint="Expected a folder with tokenizer.json, or with vocab.json and merges.txt.",
            )
        return cls.on_hub(name)

    @classmethod
    def on_hub(cls, name: str) -> BytePairs:
        """The tokenizer.json of a repository of the Hugging Face hub; never a folder of this machine."""
        try:
            folder = from_hub(name, TOKENIZER, [TOKENIZER])
        except MissingDependency:
            raise
        except StrongTicketError as error:
            hint = "Check the name and the network, or pass its folder, or characters or bpe, which need neither."
            raise StrongTicketError(f"tokenizer {error.what}", hint=hint) from error
        return cls._of_folder(folder, name)

    @classmethod
    def _of_folder(cls, folder: Path, name: str) -> BytePairs:
        text = ModelFolder(folder).tokenizer_files()[TOKENIZER]
        return cls.from_text(text, name, what=str(folder / TOKENIZER))

    def encode(self, text: str) -> np.ndarray:
        with readable("the text"):
            parts = [self._inner.encode(piece, add_special_tokens=False).ids for piece in _pieces(text)]
        return np.concatenate([np.array(part, np.uint32) for part in parts] or [np.empty(0, np.uint32)])

    def decode(self, tokens: list[int]) -> str:
        with readable("the tokens"):
            return str(self._inner.decode(tokens, skip_special_tokens=False))

    def definition(self) -> str:
        """All that its tokens depend on."""
        return str(self._inner.to_str())

    def to_json(self) -> JsonObject:
        if self.name:
            return {"kind": "named", "name": self.name}
        return {"kind": "bpe", "tokenizer": self.definition()}


class FromFiles:
    """A transformers tokenizer, from the texts of its files: tokenizer.json and its companions, no other."""

    def __init__(self, files: dict[str, str]) -> None:
        from strongticket.data.configs import transformers

        self._files = files
        with tempfile.TemporaryDirectory() as folder, readable("the files of the tokenizer"):
            for name, text in known_files(files).items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            # A class that comes with the files would be code: it is not offered, and nothing is downloaded.
            self.inner = transformers().AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        self.size = len(self.inner)

    def encode(self, text: str) -> np.ndarray:
        with readable("the text"):
            return np.array(self.inner(text).input_ids, np.int64)

    def decode(self, tokens: list[int]) -> str:
        with readable("the tokens"):
            return str(self.inner.decode(tokens, skip_special_tokens=True))

    def to_json(self) -> JsonObject:
        return self._files


def make_tokenizer(tokens: str, vocabulary: int, train: str, valid: str) -> Tokenizer:
    """`characters`, `bpe` or a tokenizer's name or folder."""
    if tokens == "characters":
        return Characters.of(train + valid)
    if tokens == "bpe":
        return BytePairs.trained(train, vocabulary)
    return BytePairs.named(tokens)


def from_json(stored: JsonObject, *, name: str | None = None) -> Tokenizer:
    """The tokenizer a ticket names; `name` says where a named one is now."""
    kind = stored.get("kind") if isinstance(stored, dict) else None
    fields = {"characters": "vocabulary", "bpe": "tokenizer", "named": "name"}
    if isinstance(kind, str) and kind in fields:
        value = stored.get(fields[kind])
        if not isinstance(value, str) or not value:
            raise StrongTicketError(f"the tokenizer's {fields[kind]} is {value!r}: expected a text")
        if kind == "characters":
            return Characters(value)
        if kind == "bpe":
            return BytePairs.from_text(value)
        return BytePairs.named(name) if name else _named_by_ticket(value)
    raise StrongTicketError(f"tokenizer kind {kind!r} is unknown", hint="Expected characters, bpe or named.")


def _named_by_ticket(name: str) -> BytePairs:
    """The tokenizer from the hub alone: a file must not choose what is read on this machine."""
    try:
        return BytePairs.on_hub(name)
    except MissingDependency:
        raise
    except StrongTicketError as error:
        raise StrongTicketError(
            f"the ticket does not contain its tokenizer, {name!r}, and it cannot be loaded from the hub",
            hint="Give its folder: --tokenizer DIR, or tokenizer=... in Python.",
        ) from error


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
