"""A ticket's tokenizer as the files that transformers reads."""

import json
from typing import Any

from strongticket.data.tokenizer_files import files_to_write, readable
from strongticket.data.tokenizers import Characters, from_json
from strongticket.errors import StrongTicketError


def tokenizer_files(stored: Any) -> dict[str, str]:
    """File name -> text for what a ticket's metadata says of its tokenizer; empty if it names none."""
    if stored is None or stored == {}:
        return {}
    if not isinstance(stored, dict):
        raise StrongTicketError("the tokenizer must be file names with their texts")
    if "kind" not in stored:  # a built ticket carries the files of its model
        return files_to_write(stored)
    tokenizer = from_json(stored)
    text = _characters(tokenizer) if isinstance(tokenizer, Characters) else tokenizer.definition()  # type: ignore[attr-defined]
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {
        "tokenizer.json": text,
        "tokenizer_config.json": json.dumps(about, indent=2, sort_keys=True) + "\n",
    }


def _characters(tokenizer: Characters) -> str:
    """One token per character: a vocabulary of words of length one, glued together again without spaces."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {character: number for number, character in enumerate(tokenizer.vocabulary)}
    with readable("the vocabulary"):
        inner = Tokenizer(models.WordLevel(vocabulary, unk_token=tokenizer.vocabulary[0]))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.decoder = decoders.Fuse()
    return inner.to_str()
