"""Corpora, tokens, and the memory-mapped cache."""

import json
import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.faults.cluster import small_model

from strongticket.data.text import Windows, load_corpus, load_tokens
from strongticket.errors import StrongTicketError
from strongticket.models.generation import generate
from strongticket.models.tokenizers import BytePairs, Characters, from_json

TEXT = "the cat sat on the mat.\nthe dog säß on the log.\n" * 30


def test_builtin_text_needs_no_download():
    corpus = load_corpus("builtin")
    assert len(corpus.train) > 300_000
    assert len(corpus.valid) == pytest.approx(len(corpus.train) / 9, abs=9)
    assert "Python 3." in corpus.name


def test_files_and_folders(tmp_path):
    (tmp_path / "b.txt").write_text("second")
    (tmp_path / "a.txt").write_text("first")
    single = load_corpus(str(tmp_path / "a.txt"))
    assert single.train + single.valid == "first"
    whole = load_corpus(str(tmp_path))
    assert whole.train + whole.valid == "first\nsecond"
    (tmp_path / "valid.txt").write_text("held out")
    (tmp_path / "test.txt").write_text("never read")
    parts = load_corpus(str(tmp_path))
    assert (parts.train, parts.valid) == ("first\nsecond", "held out")


def test_bad_data_is_named(tmp_path):
    with pytest.raises(StrongTicketError, match="data='nowhere' is not a file"):
        load_corpus("nowhere")
    with pytest.raises(StrongTicketError, match=r"has no .txt file"):
        load_corpus(str(tmp_path))
    (tmp_path / "latin.txt").write_bytes("säß".encode("latin-1"))
    with pytest.raises(StrongTicketError, match="not UTF-8 text: byte 1 is 0xe4"):
        load_corpus(str(tmp_path / "latin.txt"))


@pytest.mark.slow
def test_a_dataset_offline_says_what_to_do(tmp_path):
    """In a process of its own: the libraries read these settings when they are imported."""
    code = "from strongticket.data.text import load_corpus; load_corpus('wikitext-103')"
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | offline, capture_output=True, text=True
    )
    assert "dataset wikitext-103 could not be loaded" in done.stderr
    assert "Pass a text file or folder, or builtin" in done.stderr


@given(st.text(alphabet="abcäß€😀\n ", min_size=1))
def test_characters_round_trip(text):
    tokens = Characters.of("abcäß€😀\n ").encode(text)
    assert Characters.of("abcäß€😀\n ").decode(tokens.tolist()) == text


def test_an_unknown_character_is_named():
    with pytest.raises(StrongTicketError, match=r"character 'x' at 2 is not in the vocabulary of 2"):
        Characters.of("ab").encode("abxab")


def test_byte_pairs_round_trip_and_compress():
    words = BytePairs.trained(TEXT, 300)
    tokens = words.encode(TEXT)
    assert 256 < words.size <= 300
    assert len(tokens) < len(TEXT) / 2
    assert words.decode(tokens.tolist()) == TEXT
    again = from_json(json.loads(json.dumps(words.to_json())))
    np.testing.assert_array_equal(again.encode(TEXT), tokens)
    assert again.decode(again.encode("never seen: 😀").tolist()) == "never seen: 😀"
    with pytest.raises(StrongTicketError, match="vocabulary must be at least 257"):
        BytePairs.trained(TEXT, 100)


def test_named_tokenizers(tmp_path):
    trained = BytePairs.trained(TEXT, 300)
    trained._inner.save(str(tmp_path / "tokenizer.json"))
    named = BytePairs.named(str(tmp_path))
    np.testing.assert_array_equal(named.encode(TEXT), trained.encode(TEXT))
    pair = tmp_path / "pair"
    pair.mkdir()
    trained._inner.model.save(str(pair))
    np.testing.assert_array_equal(BytePairs.named(str(pair)).encode(TEXT), trained.encode(TEXT))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(StrongTicketError, match=r"is not a tokenizer\. Expected a folder"):
        BytePairs.named(str(empty))


@pytest.mark.parametrize("tokens", ["characters", "bpe"])
def test_tokens_are_computed_once(tmp_path, monkeypatch, tokens):
    source = tmp_path / "text.txt"
    source.write_text(TEXT)
    cache = tmp_path / "cache"
    first = load_tokens(str(source), tokens, 300, cache)
    assert isinstance(first.train, np.memmap)
    corpus = load_corpus(str(source))
    assert first.tokenizer.decode(first.train.tolist()) == corpus.train
    assert first.bytes_per_token == len(corpus.valid.encode()) / len(first.valid)
    monkeypatch.setattr("strongticket.data.text.make_tokenizer", lambda *_: pytest.fail("made again"))
    second = load_tokens(str(source), tokens, 300, cache)
    np.testing.assert_array_equal(first.train, second.train)
    monkeypatch.undo()
    source.write_text(TEXT + "more")
    load_tokens(str(source), tokens, 300, cache)
    assert len(list((cache / "tokens").iterdir())) == 4  # tokens and tokenizer, and nothing half-made


def test_another_tokenizer_in_the_same_place_is_noticed(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    found = []
    for size in (300, 260):
        BytePairs.trained(TEXT, size)._inner.save(str(tmp_path / "tokenizer.json"))
        found.append(load_tokens(str(tmp_path / "text.txt"), str(tmp_path), 0, tmp_path / "cache"))
        decoded = found[-1].tokenizer.decode(found[-1].train.tolist())
        assert decoded == load_corpus(str(tmp_path / "text.txt")).train
    assert len(found[0].train) < len(found[1].train)


def test_an_empty_text_is_refused(tmp_path):
    (tmp_path / "text.txt").write_text("")
    for tokens in ("characters", "bpe"):
        with pytest.raises(StrongTicketError, match="the training text is empty"):
            load_tokens(str(tmp_path / "text.txt"), tokens, 300, tmp_path / "cache")


def test_windows_cover_the_text_once():
    windows = Windows(np.arange(10, dtype=np.uint16), 3)
    rows = [windows[i]["input_ids"].tolist() for i in range(len(windows))]
    assert rows == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert windows[1]["labels"].tolist() == [-100, 4, 5]
    with pytest.raises(StrongTicketError, match="has 10 tokens, fewer than one sequence of 11"):
        Windows(np.arange(10), 11)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_network_that_overflows_does_not_write(value):
    model = small_model()
    model.lm_head = torch.nn.Linear(model.config.n_embd, 4)
    torch.nn.init.constant_(model.lm_head.bias, value)
    with pytest.raises(StrongTicketError, match="outputs are not numbers"):
        list(generate(model, Characters("abcd"), "a", context=8, tokens=2))


class Scripted:
    """A model that writes given tokens."""

    def __init__(self, tokens, size):
        self.tokens, self.size = iter(tokens), size
        self.config = SimpleNamespace()

    def get_input_embeddings(self):
        return SimpleNamespace(num_embeddings=self.size)

    def __call__(self, ids, **_):
        logits = torch.zeros(1, ids.shape[1], self.size)
        logits[0, -1, next(self.tokens)] = 1
        return SimpleNamespace(logits=logits, past_key_values=None)


def test_text_comes_piece_by_piece_and_characters_whole():
    words = BytePairs.trained("the cat sat on the mat", 260)
    text = " säß 😀 the cat"
    tokens = words.encode(text).tolist()
    write = partial(generate, tokenizer=words, prompt="sat", context=99, temperature=0.0)
    pieces = list(write(Scripted(tokens, words.size), tokens=len(tokens)))
    assert "".join(pieces) == text
    assert "ä" in pieces
    assert "😀" in pieces
    half = list(write(Scripted(tokens, words.size), tokens=pieces.index("ä") + 1))
    assert "".join(half) == " s\ufffd"  # what is left of a character is shown at the end
