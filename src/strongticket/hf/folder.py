"""A ticket as a folder that `from_pretrained` loads and the hub stores, and as an ordinary exported model."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from huggingface_hub import HfApi

from strongticket.errors import StrongTicketError
from strongticket.files import write_file
from strongticket.hf.card import CardInfo, model_card
from strongticket.hf.quantizer import METHOD, TENSOR, read_ticket
from strongticket.models.configs import quiet_transformers
from strongticket.models.folder import WEIGHTS, open_folder
from strongticket.models.loading import OpenedModel
from strongticket.models.tokenizer_files import clean_files
from strongticket.models.tokenizers import from_json
from strongticket.ticket import Ticket


def save_pretrained(
    ticket: Ticket, folder: str | os.PathLike[str], *, card_info: CardInfo | None = None
) -> Path:
    """Write a folder that transformers loads after `import strongticket.hf`: the ticket, config, tokenizer, card.

    Args:
        ticket: built from a transformers model, or searched with one.
        folder: created if missing; files of these names in it are replaced, the weights last.
        card_info: what the card says besides what the ticket knows.
    """
    if ticket.settings.get("base") is not None:
        raise StrongTicketError(
            f"the ticket is not a whole model: it needs the trained model {ticket.settings['base']}, so "
            "from_pretrained could not load it",
            hint="Save the merged model: strongticket export F.ticket --base MODEL --out FOLDER.",
        )
    network = _transformers_network(ticket)
    data = np.frombuffer(ticket.to_bytes(), np.uint8)
    weights = safetensors.numpy.save({TENSOR: data}, {"format": "pt"})
    config = {"dtype": "float32", "quantization_config": {"quant_method": METHOD}}
    card = model_card(ticket, network, len(weights), card_info or CardInfo())
    return _write(Path(folder), network, config, _tokenizer(ticket) | {"README.md": card}, weights)


def export(
    ticket: Ticket,
    folder: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    base: Any = None,
    card_info: CardInfo | None = None,
) -> Path:
    """Write the merged network as an ordinary model that any tool loads, without strongticket.

    Args:
        ticket: of a transformers model.
        folder: where to write, which is returned.
        dtype: of its weights: float32, float16 or bfloat16.
        base: the trained model of a partial ticket or a task mask; if a folder or hub name, its tokenizer too.
        card_info: what the card says besides what the ticket knows.
    """
    if dtype not in ("float32", "float16", "bfloat16"):
        raise StrongTicketError(f"dtype={dtype!r}: expected float32, float16 or bfloat16")
    files = _tokenizer(ticket)
    if isinstance(base, str | Path):
        opened = OpenedModel(str(base))
        base, files = opened.load(), files or opened.folder.tokenizer_files()
    network = _transformers_network(ticket, base).to(getattr(torch, dtype))
    with tempfile.TemporaryDirectory() as name, quiet_transformers():
        network.save_pretrained(name)
        weights = (Path(name) / WEIGHTS).read_bytes()
    files["README.md"] = model_card(ticket, network, len(weights), card_info or CardInfo(), dtype=dtype)
    return _write(Path(folder), network, {"dtype": dtype}, files, weights)


def from_pretrained(name: str | os.PathLike[str]) -> Ticket:
    """The ticket in a folder that save_pretrained wrote, or in the repository `name` of the hub."""
    return read_ticket(open_folder(str(name)).weight_files()[0])


def push_to_hub(
    ticket: Ticket, name: str, *, private: bool = False, card_info: CardInfo | None = None
) -> str:
    """Upload what save_pretrained writes to the hub repository `name`, created if missing; returns its address."""
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ticket, folder, card_info=card_info)
        api = HfApi()
        repository = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository.repo_id, folder_path=folder, commit_message="Upload ticket")
    return str(repository)


def _transformers_network(ticket: Ticket, base: Any = None) -> Any:
    network: Any = ticket.network(base=base)
    if not hasattr(network, "save_pretrained"):
        raise StrongTicketError(
            f"a ticket of a {type(network).__name__} is not a transformers model, so Hugging Face cannot load it",
            hint="Use Ticket.save and Ticket.load.",
        )
    if "save_pretrained" in vars(network):  # refuses: the network has other parameters than its class
        network.save_pretrained(None)
    return network


def _tokenizer(ticket: Ticket) -> dict[str, str]:
    """File name -> text, as transformers reads the ticket's tokenizer; empty if it has none."""
    stored = ticket.metadata.get("tokenizer")
    if not stored:
        return {}
    if not isinstance(stored, dict) or "kind" not in stored:  # a built ticket carries the files of its model
        return clean_files(stored)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return {"tokenizer.json": from_json(stored).definition(), "tokenizer_config.json": _json(config)}


def _write(folder: Path, network: Any, config: dict[str, Any], files: dict[str, str], weights: bytes) -> Path:
    """The weights come last: a folder without them is not mistaken for a model.

    config: what config.json says besides the network's own
    files: file name -> text of the card and the tokenizer
    """
    config = network.config.to_dict() | {"architectures": [type(network).__name__]} | config
    texts = {"config.json": _json(config)}
    if network.can_generate():
        texts["generation_config.json"] = _json(network.generation_config.to_dict())
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (texts | files).items():
        write_file(folder / name, text.encode())
    write_file(folder / WEIGHTS, weights)
    return folder


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str) + "\n"
