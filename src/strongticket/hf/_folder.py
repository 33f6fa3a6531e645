"""A ticket as a folder that `from_pretrained` loads and the hub stores, and as an ordinary exported model."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch

from strongticket.data.configs import alone, transformers
from strongticket.data.folder import ModelFolder, from_hub
from strongticket.data.models import tokenizer_files as base_tokenizer
from strongticket.errors import StrongTicketError, TicketError
from strongticket.files import write_file
from strongticket.hf._card import PICTURE, About, model_card, picture
from strongticket.hf._quantizer import METHOD, TENSOR
from strongticket.hf._tokenizer import tokenizer_files
from strongticket.ticket import Ticket

WEIGHTS = "model.safetensors"


def save_pretrained(ticket: Ticket, folder: str | os.PathLike[str], *, about: About | None = None) -> Path:
    """Write a folder that transformers loads after `import strongticket.hf`: the ticket, config, tokenizer, card.

    ticket: built from a transformers model, or searched with one
    folder: created if missing; files of these names in it are replaced, the weights last
    about: what the card says besides what the ticket knows
    """
    if ticket.settings.get("base") is not None:
        raise StrongTicketError(
            f"the ticket is not a whole model: it needs the trained model {ticket.settings['base']}, so "
            "from_pretrained could not load it",
            hint="Save the merged model: strongticket export F.ticket --base MODEL --out FOLDER.",
        )
    network = _transformers_network(ticket)
    config = _config(network) | {"quantization_config": {"quant_method": METHOD}}
    data = np.frombuffer(ticket.to_bytes(), np.uint8).copy()
    weights = safetensors.torch.save({TENSOR: torch.from_numpy(data)}, {"format": "pt"})
    return _write(ticket, network, config, weights, Path(folder), about)


def export(
    ticket: Ticket,
    folder: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    about: About | None = None,
    **options: Any,
) -> Path:
    """Write the merged network as an ordinary model that any tool loads, without strongticket.

    ticket: of a transformers model
    folder: where to write, which is returned
    dtype: of its weights: float32, float16 or bfloat16
    about: what the card says besides what the ticket knows
    options: of `Ticket.network`, such as the base of a partial ticket: if a folder or hub name, its tokenizer too
    """
    if dtype not in ("float32", "float16", "bfloat16"):
        raise StrongTicketError(f"dtype={dtype!r}: expected float32, float16 or bfloat16")
    network = _transformers_network(ticket, **options).to(getattr(torch, dtype))
    folder = Path(folder)
    with tempfile.TemporaryDirectory() as name, alone(transformers()):
        network.save_pretrained(name)
        weights = (Path(name) / WEIGHTS).read_bytes()
    config, base = _config(network) | {"dtype": dtype}, options.get("base")
    texts = base_tokenizer(str(base)) if isinstance(base, str | Path) else {}
    return _write(ticket, network, config, weights, folder, about, dtype=dtype, texts=texts)


def from_pretrained(name: str | os.PathLike[str]) -> Ticket:
    """The ticket in a folder that save_pretrained wrote, or in the repository `name` of the hub."""
    folder = Path(name)
    if not folder.is_dir():
        try:
            folder = from_hub(str(name), WEIGHTS, [WEIGHTS])
        except StrongTicketError as error:
            raise StrongTicketError(
                f"{name} is not a folder with a ticket: {error.what}", error.hint
            ) from error
    path = ModelFolder(folder).file(WEIGHTS)
    if path is None:
        raise TicketError(f"{folder} has no {WEIGHTS}", hint="Give a folder that save_pretrained wrote.")
    try:
        with safetensors.safe_open(path, framework="np") as file:
            if file.keys() != [TENSOR]:
                raise TicketError(f"{path} holds a model, but not a ticket")
            data = file.get_tensor(TENSOR).tobytes()
    except (OSError, safetensors.SafetensorError) as error:
        raise TicketError(f"cannot read {path}: {error}") from error
    return Ticket.from_bytes(data)


def push_to_hub(ticket: Ticket, name: str, *, private: bool = False, about: About | None = None) -> str:
    """Upload what save_pretrained writes to the hub repository `name`, created if missing; returns its address.

    ticket: of a transformers model
    private: whether a repository that is created is private
    about: what the card says besides what the ticket knows
    """
    from huggingface_hub import HfApi

    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(ticket, folder, about=about)
        api = HfApi()
        repository = api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository.repo_id, folder_path=folder, commit_message="Upload ticket")
    return str(repository)


def _transformers_network(ticket: Ticket, **options: Any) -> Any:
    network: Any = ticket.network(**options)
    if not hasattr(network, "config") or not hasattr(network, "save_pretrained"):
        raise StrongTicketError(
            f"a ticket of a {type(network).__name__} is not a transformers model, so Hugging Face cannot load it",
            hint="Use Ticket.save and Ticket.load.",
        )
    if "save_pretrained" in vars(network):  # refuses: the network has other parameters than its class
        network.save_pretrained(None)
    return network


def _config(network: Any) -> dict[str, Any]:
    config: dict[str, Any] = network.config.to_dict()
    return config | {"architectures": [type(network).__name__], "dtype": "float32"}


def _write(
    ticket: Ticket,
    network: Any,
    config: dict[str, Any],
    weights: bytes,
    folder: Path,
    about: About | None,
    *,
    dtype: str = "",
    texts: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """The weights come last: a folder without them is not mistaken for a model.

    dtype: of merged weights
    texts: file name -> text of the tokenizer, if the ticket has none
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, bytes] = {"config.json": _json(config)}
    if network.can_generate():
        files["generation_config.json"] = _json(network.generation_config.to_dict())
    stored = tokenizer_files(ticket.metadata.get("tokenizer", {})) or texts
    files |= {name: text.encode() for name, text in stored.items()}
    files["README.md"] = model_card(ticket, network, len(weights), about or About(), dtype=dtype).encode()
    files[PICTURE] = picture(ticket)
    for name, data in files.items():
        write_file(folder / name, data)
    write_file(folder / WEIGHTS, weights)
    return folder


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, default=str) + "\n").encode()
