"""The model card of a ticket: what it is, what it was made from, how near it is, and how to check it."""

from typing import Any

from strongticket.ticket import Ticket


def model_card(ticket: Ticket, class_name: str, file_bytes: int) -> str:
    """README.md of a ticket's folder, from what the ticket says about itself."""
    metadata = ticket.metadata
    kept = sum(int(mask.sum()) for mask in ticket.masks.values())
    random = sum(mask.size for mask in ticket.masks.values())
    facts: list[tuple[str, Any]] = [
        ("model class", f"`{class_name}`"),
        (
            "made by",
            "pruning random weights; nothing was trained"
            if not ticket.floats
            else f"pruning, with {sum(tensor.size for tensor in ticket.floats.values()):,} trained numbers",
        ),
        ("random weights", f"{random:,}, of which {kept / max(random, 1):.1%} are kept"),
        ("seed", ticket.seed),
        ("file", f"{file_bytes:,} bytes"),
        *_measured(metadata),
    ]
    if ticket.certificate:
        facts.append(("certified error", f"at most {ticket.certificate.get('bound')}"))
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts)
    base = metadata.get("base_model")
    head = ["library_name: transformers", "tags:", "- strong-lottery-ticket", "- strongticket"]
    if base:
        head += [f"base_model: {base}"]
    licence = metadata.get("licence")
    if licence:
        head += [f"license: {licence}"]
    yaml = "\n".join(head)
    command = metadata.get("command")
    made = f"\nIt was made by\n\n```bash\n{command}\n```\n" if command else ""
    return f"""---
{yaml}
---

# A strong lottery ticket

A random network in which weights are only kept or dropped. This repository holds a seed and a bitmask; the
weights come back from the seed, the same bits on every machine.

| | |
|---|---|
{rows}
{made}
## Use it

```python
import strongticket.hf  # pip install 'strongticket[huggingface]'
from transformers import AutoConfig
import transformers

name = "this/repository"
model = getattr(transformers, AutoConfig.from_pretrained(name).architectures[0]).from_pretrained(name)
```

or as a ticket, which regenerates every weight and compares its checksum:

```python
from strongticket import Ticket

Ticket.from_pretrained("this/repository").verify()
```
"""


def _measured(metadata: dict[str, Any]) -> list[tuple[str, Any]]:
    """What the search or the build measured, under the names people know."""
    names = {
        "loss": "validation loss (nats per token)",
        "accuracy": "validation accuracy",
        "bits_per_byte": "bits per byte",
        "data": "data",
        "bits_per_weight": "bits per weight of the model",
        "relative_error": "relative error of the weights (root mean square)",
        "loss_against_base": "loss against the original model",
    }
    return [(text, metadata[name]) for name, text in names.items() if name in metadata]
