"""A tokenizer of a file reads text: it cuts nothing off, makes nothing huge, and its panics are errors."""

import json

import pytest

from strongticket.errors import StrongTicketError
from strongticket.models.tokenizer_files import check_steps, clean_files
from strongticket.models.tokenizers import BytePairs, FromFiles, from_json

pytest.importorskip("transformers", reason="needs strongticket[huggingface]")


def tokenizer(**changes):
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}
    spaces = {"pre_tokenizer": {"type": "Whitespace"}}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model} | empty | spaces | changes)


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


LONG = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
SHORT = {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}


TEMPLATE = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}] * 999}


def test_a_text_is_neither_cut_nor_filled_up(tmp_path):
    """Tokenizers are saved with the lengths they were trained with, which would drop most of a text."""
    text = tokenizer(truncation=SHORT, padding={"strategy": {"Fixed": 30_000_000}, **LONG})
    (tmp_path / "tokenizer.json").write_text(text)
    for made in (from_json({"kind": "bpe", "tokenizer": text}), BytePairs.named(str(tmp_path))):
        assert made.encode("a b a b").tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "steps",
    [
        {"normalizer": {"type": "Sequence", "normalizers": [replace({"String": "a"}, "aa")] * 28}},
        {"normalizer": {"type": "Sequence", "normalizers": [replace({"Regex": ""}, "a")] * 28}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 28}},
        {"decoder": {"type": "Sequence", "decoders": [replace({"String": "a"}, "a" * 300)] * 2}},
        {"post_processor": {"type": "Sequence", "processors": [TEMPLATE] * 2}},
    ],
)
def test_steps_that_fill_the_memory_are_refused(steps, monkeypatch):
    with pytest.raises(StrongTicketError, match="turn one character into"):
        from_json({"kind": "bpe", "tokenizer": tokenizer(**steps)})
    monkeypatch.setenv("STRONGTICKET_LIMIT_FACTOR", "1e9")
    check_steps(tokenizer(**steps))


@pytest.mark.parametrize("text", ["", "[]", "{", "3", "[" * 100_000])
def test_what_is_not_a_tokenizer_is_refused(text):
    with pytest.raises(StrongTicketError):
        check_steps(text)


def test_a_panic_of_the_library_is_an_error():
    slow = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    made = from_json({"kind": "bpe", "tokenizer": tokenizer(pre_tokenizer=slow)})
    with pytest.raises(StrongTicketError, match="the text cannot be read"):
        made.encode("a" * 40 + "b")


def test_written_files_do_not_lead_to_code():
    """Whoever loads an exported folder would be asked whether to run it."""
    config = {
        "auto_map": {"AutoTokenizer": ["evil/evil--evil.Evil", None]},
        "vocab_file": "../outside/vocab.json",
        "name_or_path": "../outside",
        "chat_template": "{{ messages }}",
    }
    files = {"tokenizer.json": tokenizer(), "tokenizer_config.json": json.dumps(config)}
    written = clean_files(files | {"generation_config.json": '{"auto_map": {}, "top_k": 3}'})
    assert written["tokenizer.json"] == files["tokenizer.json"]
    assert json.loads(written["tokenizer_config.json"]) == {"chat_template": "{{ messages }}"}
    assert json.loads(written["generation_config.json"]) == {"top_k": 3}


def words(**config):
    return {"tokenizer.json": tokenizer(), "tokenizer_config.json": json.dumps(config)}


def test_a_tokenizer_of_files_reads_text():
    assert FromFiles(words(unk_token="a")).encode("b a x").tolist() == [1, 0, 0]


def test_code_beside_a_tokenizer_is_never_run(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    mark = tmp_path / "executed"
    files = words(auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, tokenizer_class="EvilTokenizer")
    FromFiles(files)  # the class is unknown: transformers' own reads the file
    for name in ("evil.py", "../evil.py", "/tmp/evil.json", "config.json"):
        with pytest.raises(StrongTicketError, match="expected some of"):
            FromFiles(files | {name: f"open({str(mark)!r}, 'w')"})
    assert not mark.exists()


@pytest.mark.parametrize(
    "files",
    [
        *({}, [], {"tokenizer.json": 3}, words() | {"tokenizer_config.json": "[]"}),
        *(words(tokenizer_class=3), words(tokenizer_class="AutoModel"), words(bos_token=[3])),
        words() | {"special_tokens_map.json": "{]"},
    ],
)
def test_odd_tokenizer_files_are_refused(files):
    with pytest.raises(StrongTicketError):
        FromFiles(files)
