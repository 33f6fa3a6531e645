"""A ticket's tokenizer as the files that transformers reads."""

import json
from typing import Any

from strongticket.data.tokenizer_files import clean_files
from strongticket.data.tokenizers import from_json
from strongticket.errors import StrongTicketError


def tokenizer_files(stored: Any) -> dict[str, str]:
    """File name -> text for what a ticket's metadata says of its tokenizer; empty if it names none."""
    if stored is None or stored == {}:
        return {}
    if not isinstance(stored, dict):
        raise StrongTicketError("the tokenizer must be file names with their texts")
    if "kind" not in stored:  # a built ticket carries the files of its model
        return clean_files(stored)
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {
        "tokenizer.json": from_json(stored).definition(),
        "tokenizer_config.json": json.dumps(about, indent=2, sort_keys=True) + "\n",
    }
