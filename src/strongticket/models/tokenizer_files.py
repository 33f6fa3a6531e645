"""The files of a tokenizer as data: what of them is used, and what they may do to a text.

A tokenizer.json is a list of steps. A few that double a text, one after the other, fill the memory, so how much
they can make of a character is computed before they run.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from strongticket import limits
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, dump_json
from strongticket.models.folder import TOKENIZER, TOKENIZER_FILES, parse_object

# Entries of tokenizer_config.json that are kept, besides the special tokens.
_SETTINGS = (
    *("tokenizer_class", "backend", "added_tokens_decoder", "additional_special_tokens", "add_prefix_space"),
    *("clean_up_tokenization_spaces", "model_max_length", "padding_side", "truncation_side"),
    *("model_input_names", "do_lower_case", "strip_accents", "tokenize_chinese_chars", "legacy"),
    *("use_default_system_prompt", "split_special_tokens", "trim_offsets", "errors"),
    *("chat_template", "extra_special_tokens"),
)
_ELSEWHERE = ("auto_map", "name_or_path", "_commit_hash")  # make other tools look for code or files
_CLASS = re.compile(r"\w*(Tokenizer|TokenizerFast|TokenizersBackend)")
_CHAINS = (("normalizer", "pre_tokenizer", "post_processor"), ("decoder",))  # steps in, and steps out


def check_steps(text: str) -> None:
    """Refuse the text of a tokenizer.json whose steps could make a huge text of a short one."""
    stored = parse_object(TOKENIZER, text.encode("utf-8", "surrogatepass"))
    for chain in _CHAINS:
        growth = math.prod(_growth(step) for name in chain for step in _steps(stored.get(name)))
        if growth > limits.factor() * limits.GROWTH:
            raise limits.exceeded(f"the steps of the tokenizer turn one character into up to {growth:,}")


def _steps(stored: Any) -> Iterator[JsonObject]:
    """A step, or those of a sequence."""
    if isinstance(stored, dict):
        yield stored
        stored = list(stored.values())
    if isinstance(stored, list):
        for value in stored:
            yield from _steps(value)


def _growth(step: JsonObject) -> int:
    """How many times as long a step can make a text."""
    kind = step.get("type")
    if kind == "ByteLevel":
        return 2  # a byte becomes a letter of two
    if kind == "TemplateProcessing":
        pieces = step.get("single", ())
        return max(1, sum(isinstance(piece, dict) and "Sequence" in piece for piece in pieces))
    if kind == "Replace" and isinstance(content := step.get("content"), str):
        pattern = step.get("pattern")
        found = pattern.get("String", "") if isinstance(pattern, dict) else ""
        if isinstance(found, str) and found:
            return max(1, -(-len(content) // len(found)))
        return 1 + len(content)  # what matches nothing is found between all letters
    return 1


def clean_files(files: Any) -> dict[str, str]:
    """Texts by file name, reduced to how to tokenize and generate: nothing in them leads to code or other files."""
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise StrongTicketError("the tokenizer must be file names with their texts")
    if odd := sorted(files.keys() - set(TOKENIZER_FILES)):
        raise StrongTicketError(
            f"the tokenizer has the file {odd[0]!r}: expected some of {', '.join(TOKENIZER_FILES)}"
        )
    if TOKENIZER not in files:
        raise StrongTicketError(f"the tokenizer has no {TOKENIZER}")
    check_steps(files[TOKENIZER])
    clean = {TOKENIZER: files[TOKENIZER]}
    for name in sorted(files.keys() - {TOKENIZER}):
        stored = parse_object(name, files[name].encode("utf-8", "surrogatepass"))
        named = stored.get("tokenizer_class", "Tokenizer")
        if not isinstance(named, str) or not _CLASS.fullmatch(named):
            raise StrongTicketError(f"{name}: tokenizer_class is {named!r}, which is not a tokenizer")
        if name == "generation_config.json":
            keys = [key for key in stored if key not in _ELSEWHERE and not key.endswith("_file")]
        else:
            keys = [key for key in stored if key in _SETTINGS or key.endswith("_token")]
        clean[name] = dump_json({key: stored[key] for key in keys}).decode() + "\n"
    return clean
