"""The model card of a ticket: what it is, what it was made from, how accurate it is, how to use and check it."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import ModelCardData, metadata_load

from strongticket.models.folder import HUB_NAME
from strongticket.searching.config import SearchConfig
from strongticket.ticket import Ticket

# What a comparison, a search or a build measured -> how the card says it.
_MEASURED = {
    "data": "data",
    "loss": "validation loss (nats per token)",
    "bits_per_byte": "validation, bits per byte",
    "accuracy": "validation accuracy",
    "relative_error": "relative error of the weights (root mean square)",
    "loss_against_base": "loss against the original",
    "target_loss": "loss of the original",
    "source_loss": "loss of this ticket",
    "divergence": "KL divergence from the original (nats)",
    "agreement": "same likeliest answer as the original",
    "cosine_mean": "cosine of mean hidden states, mean",
    "cosine_min": "cosine of mean hidden states, least",
}
_IMPORT = "import strongticket.hf  # pip install 'strongticket[huggingface]'\n"
_SAVE = """python -c 'from strongticket import Ticket; Ticket.from_pretrained("this/repository").save("F.ticket")'\n"""


@dataclass(frozen=True)
class CardInfo:
    """What a model card says and the ticket itself does not know.

    Args:
        base_model: hub name or folder of the model it was made from; the card names a folder by its last part.
        licence: of that model, as an SPDX identifier; empty takes it from the folder's README.
        comparison: with the original, the facts of `Ticket.compare`.
    """

    base_model: str = ""
    licence: str = ""
    comparison: dict[str, Any] | None = None


def model_card(ticket: Ticket, network: Any, file_bytes: int, info: CardInfo, *, dtype: str = "") -> str:
    """README.md of a ticket's folder.

    Args:
        ticket: what the folder was made from.
        network: its model; it may be on the meta device.
        file_bytes: of the folder's weights.
        info: what the ticket does not know.
        dtype: of the weights, if the folder holds the merged model instead of the ticket.
    """
    base = info.base_model
    # A path of this machine means nothing to others and is not theirs to know: the card names its last part.
    is_local = bool(base) and (Path(base).is_dir() or not HUB_NAME.fullmatch(base))
    name = Path(base).resolve().name if is_local else base
    data = ModelCardData(
        library_name="transformers",
        tags=["strong-lottery-ticket", "strongticket"],
        base_model=None if is_local else base or None,
        license=info.licence or (_licence_in(Path(base)) if is_local else None),
    )
    source = "trained" if ticket.kind == "task" else "random"
    holds = "a seed and a bitmask, from which the same weights come back on every machine"
    if ticket.choices:
        holds = (
            "a seed and choices: every connection has many random weights, evenly spaced with a random offset from "
            "the seed, and one of them is kept. Stored are the choices, a scale for each row and a table for each "
            "tensor. It is entropy-coded trellis quantisation with a random offset, read as a lottery ticket: the "
            "randomness costs at most 0.01 bits a weight against a fixed grid, independent random weights would take "
            "0.1 bits a weight more or far more, and subset sums need fewer random weights but more bits. The ideas "
            "come from slot machines (Aladago & Torresani 2021), dither (Roberts 1962; Zamir & Feder 1992), trellis "
            "codes (Ungerboeck 1982; Fischer & Wang 1992) and EntQuant (Putzky et al. 2026)"
        )
    if dtype:
        holds = f"the merged weights in {dtype}: an ordinary model, for which strongticket is not needed"
    class_name = type(network).__name__
    parameters = network.num_parameters()
    random = sum(mask.size for mask in ticket.masks.values())
    kept = sum(int(np.count_nonzero(mask)) for mask in ticket.masks.values())
    share = f"{random:,}, of which {kept / max(random, 1):.1%} are kept"
    trained = sum(tensor.size for tensor in ticket.floats.values())
    facts = {
        "model class": f"{class_name}, {parameters:,} parameters",
        f"{source} weights": "many for each connection, one of them kept" if ticket.choices else share,
        "trained numbers in it": f"{trained:,}" if trained else "none",
        "seed": ticket.seed,
        "size": f"{file_bytes:,} bytes; in float32 it has {4 * parameters:,}",
        "bits per weight": f"{8 * file_bytes / parameters:.2f}",
        "made from": f"a local model, {name}" if is_local else base or None,
    }
    measured = ticket.metadata | (info.comparison or {})
    facts |= {text: measured.get(key) for key, text in _MEASURED.items()}
    if (bound := (ticket.certificate or {}).get("bound")) is not None:
        facts["certified output error"] = f"at most {bound:.3g}"
    rows = "\n".join(f"| {text} | {_cell(value)} |" for text, value in facts.items() if value is not None)
    made = " ".join(made_by(ticket, name).split())
    if dtype:
        base_option = f" --base {shlex.quote(name or 'MODEL')}" if ticket.settings.get("base") else ""
        made += f"\nstrongticket export F.ticket{base_option} --dtype {dtype} --out FOLDER"
    return f"""---
{data.to_yaml()}
---

# A strong lottery ticket

A {source} network in which weights are only kept or dropped.
This repository holds {holds}.

| | |
|---|---|
{rows}

## Use it

```python
{"" if dtype else _IMPORT}from transformers import {class_name}

model = {class_name}.from_pretrained("this/repository")
```

## Make it

```bash
{made}
```

## Check it

Every tensor is regenerated and its checksum compared:

```bash
{"" if dtype else _SAVE}strongticket verify F.ticket
strongticket compare F.ticket MODEL
```
"""


def made_by(ticket: Ticket, model: str = "") -> str:
    """The command that makes a ticket, from what the ticket says about itself; for a task mask, the Python.

    model: what a built ticket was made from
    """
    settings, metadata = ticket.settings, ticket.metadata
    if ticket.kind == "task":
        return "# attach(model, weights='pretrained'), see docs/hugging-face.md"
    if ticket.kind == "search":
        usual, found = SearchConfig().settings(), metadata.get("search")
        options = {name: found[name] for name in usual if name in found} if isinstance(found, dict) else {}
        return _command(["search"], options, usual)
    accuracy = next((name for name in ("bits", "loss") if metadata.get(name) is not None), "tolerance")
    options = {
        "seed": ticket.seed,
        accuracy: metadata.get(accuracy),
        "data": "TEXT" if accuracy == "loss" else None,
        "by": settings["by"],
        "attention": settings["attention"],
        "states": metadata.get("states"),
        "per_row": settings["per_row"],
        "calibrate": metadata.get("calibrated_on"),
        # A ticket knows its tensors, not the patterns that chose them.
        "only": None if settings["base"] is None else "PATTERN",
    }
    usual = {"by": "choice", "attention": "linear", "states": 8, "per_row": 24}
    return _command(["build", model or "MODEL"], options, usual)


def _command(words: list[str], options: dict[str, Any], usual: dict[str, Any]) -> str:
    """A command with the options that are given and are not the usual ones."""
    for name, value in options.items():
        option = name.replace("_", "-")
        if value in (None, "", []) or value == usual.get(name):
            continue
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join(["strongticket", *words, "--out", "F.ticket"])


def _licence_in(folder: Path) -> str | None:
    """Licence in the front matter of the folder's README; None if it does not say."""
    try:
        licence = (metadata_load(folder / "README.md") or {}).get("license")
    except Exception:  # no README, or not one of the hub's: anyone can have written it
        return None
    return licence if isinstance(licence, str) else None


def _cell(value: Any) -> str:
    """Text for a cell of the table: what a ticket says must not become markup of the card."""
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return re.sub(r"([\\|`<\[\]])", r"\\\1", text)
