"""The model card of a ticket: what it is, what it was made from, how accurate it is, how to use and check it."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from strongticket.hf._commands import made_by
from strongticket.hf._picture import mask_png
from strongticket.ticket import Ticket

PICTURE = "mask.png"
_CORNER, _ZOOM = (64, 160), 4  # of the mask that is shown: rows and columns, pixels per weight
_VAGUE = ("AutoModelForPreTraining", "AutoModelForTextEncoding")  # other classes say more
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
_SEED = """This repository holds a seed and a bitmask; the
weights come back from the seed, the same bits on every machine."""
_MERGED = """This repository holds the
merged weights in {}: an ordinary model, for which strongticket is not needed."""
_IMPORT = "import strongticket.hf  # pip install 'strongticket[huggingface]'\n"
_CHECK = """Every tensor is regenerated and its checksum compared:

```python
from strongticket import Ticket

ticket = Ticket.from_pretrained("this/repository")
ticket.verify()
ticket.save("F.ticket")  # then: strongticket verify F.ticket, strongticket compare F.ticket MODEL
```
"""
_CHECK_MERGED = """The ticket regenerates every tensor and compares its checksum; exported again, it gives equal bytes:

```bash
strongticket verify F.ticket
strongticket compare F.ticket MODEL
```
"""


@dataclass(frozen=True)
class About:
    """What the ticket itself does not know.

    base_model: hub name or folder of the model it was made from
    licence: of that model, as an SPDX identifier; empty takes it from the folder's README
    comparison: with the original, the facts of `Ticket.compare`
    """

    base_model: str = ""
    licence: str = ""
    comparison: dict[str, Any] | None = None


def model_card(ticket: Ticket, network: Any, file_bytes: int, about: About, *, dtype: str = "") -> str:
    """README.md of a ticket's folder.

    ticket: what the folder was made from
    network: its model
    file_bytes: of the folder's weights
    about: what the ticket does not know
    dtype: of the weights, if the folder holds the merged model instead of the ticket
    """
    class_name = type(network).__name__
    parameters = sum(parameter.numel() for parameter in network.parameters())
    random = sum(mask.size for mask in ticket.masks.values())
    kept = sum(int(np.count_nonzero(mask)) for mask in ticket.masks.values())
    trained = sum(tensor.size for tensor in ticket.floats.values())
    facts: list[tuple[str, Any]] = [
        ("model class", f"`{class_name}`, {parameters:,} parameters"),
        (f"{_source(ticket)} weights", f"{random:,}, of which {kept / max(random, 1):.1%} are kept"),
        ("trained numbers in it", f"{trained:,}" if trained else "none"),
        ("seed", ticket.seed),
        ("size", f"{file_bytes:,} bytes; in float32 it has {4 * parameters:,}"),
        ("bits per weight", f"{8 * file_bytes / parameters:.2f}"),
    ]
    if about.base_model:
        facts.append(("made from", about.base_model))
    measured = ticket.metadata | (about.comparison or {})
    facts += [(text, _shown(measured[name])) for name, text in _MEASURED.items() if _has(measured, name)]
    bound = (ticket.certificate or {}).get("bound")
    if bound is not None:
        facts.append(("certified output error", f"at most {bound:.3g}"))
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts)
    auto = auto_class(class_name)
    return f"""---
{_front_matter(about)}
---

# A strong lottery ticket

A {_source(ticket)} network in which weights are only kept or dropped. {_MERGED.format(dtype) if dtype else _SEED}

| | |
|---|---|
{rows}

![Kept (blue) and dropped weights of one tensor]({PICTURE})

## Use it

```python
{"" if dtype else _IMPORT}from transformers import {auto}

model = {auto}.from_pretrained("this/repository")
```

## Make it

```bash
{_one_line(made_by(ticket, about.base_model))}{_exported(ticket, dtype, about.base_model)}
```

## Check it

{_CHECK_MERGED if dtype else _CHECK}"""


def _source(ticket: Ticket) -> str:
    """What is pruned."""
    return "trained" if ticket.kind == "task" else "random"


def _exported(ticket: Ticket, dtype: str, base_model: str) -> str:
    """The second command of a merged model."""
    if not dtype:
        return ""
    base = f" --base {shlex.quote(base_model or 'MODEL')}" if ticket.settings.get("base") else ""
    return f"\nstrongticket export F.ticket{base} --dtype {dtype} --out FOLDER"


def picture(ticket: Ticket) -> bytes:
    """A corner of the largest mask as PNG: blue is kept."""
    mask = max(ticket.masks.values(), key=np.size)
    rows, columns = _CORNER
    corner = mask.reshape(mask.shape[0] if mask.ndim > 1 else 1, -1)[:rows, :columns]
    return mask_png(np.kron(corner, np.ones((_ZOOM, _ZOOM), bool)))


def auto_class(class_name: str) -> str:
    """The Auto class that gives a model of this class; AutoModel for one without a head.

    >>> auto_class("BertForSequenceClassification")
    'AutoModelForSequenceClassification'
    """
    from transformers.models.auto import modeling_auto

    for name, auto in vars(modeling_auto).items():
        usable = name.startswith("AutoModelFor") and name not in _VAGUE
        if usable and class_name in _class_names(auto):
            return name
    return "AutoModel"


def _class_names(auto: Any) -> set[str]:
    names = set()
    for found in getattr(auto._model_mapping, "_model_mapping", {}).values():
        names |= {found} if isinstance(found, str) else set(found)
    return names


def _front_matter(about: About) -> str:
    lines = ["library_name: transformers", "tags:", "- strong-lottery-ticket", "- strongticket"]
    if about.base_model:
        lines.append(f"base_model: {about.base_model}")
    licence = about.licence or _licence_of(about.base_model)
    if licence:
        lines.append(f"license: {licence}")
    return "\n".join(lines)


def _licence_of(base_model: str) -> str:
    """Licence in the front matter of the README in a model's folder; empty if it does not say."""
    readme = Path(base_model) / "README.md"
    if not base_model or not readme.is_file():
        return ""
    head = readme.read_text(encoding="utf-8", errors="replace").split("\n---", 1)[0]
    found = re.search(r"^license:\s*([\w.+-]+)\s*$", head, re.MULTILINE)
    return found[1] if found else ""


def _has(measured: dict[str, Any], name: str) -> bool:
    return measured.get(name) is not None


def _shown(value: Any) -> str:
    """Text for a cell of the table: what a ticket says must not become markup of the card."""
    text = f"{value:.6g}" if isinstance(value, float) else _one_line(str(value))
    return re.sub(r"([\\|`<\[\]])", r"\\\1", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
