"""The gallery in a second language: `python -m benchmarks.gallery [--json] [--quick]`.

Every ticket of the gallery, and tests/known.ticket, is read by the library and by the JavaScript reader in node:
weights compared bit by bit, outputs to rounding. Then the bytes of the tickets and of their pages, and the loss of
the built one beside its original's, on stories that the original writes (left out if it is missing, see
benchmarks/models.py). --quick takes only the two smallest.
"""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tests.web.compare import GALLERY, ROOT, unequal_bits
from tests.web.conftest import HERE, NODE, plain

from benchmarks.harness import Row, figure, main, tell
from benchmarks.models import stories
from strongticket.report.ticket_page import write_ticket_page
from strongticket.ticket import Ticket


def node(*jobs: Row) -> list[Any]:
    """Jobs of tests/web/jobs.js -> their results."""
    if NODE is None:
        raise SystemExit("this benchmark needs node (https://nodejs.org)")
    asked = json.dumps(plain(list(jobs)))
    done = subprocess.run(
        [NODE, HERE / "run_jobs.mjs"], input=asked, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def compared(name: str, path: Path) -> Row:
    tell(name)
    ticket, file = Ticket.load(path), path.read_bytes()
    weights, differ = unequal_bits(node, file, ticket)
    row = {"ticket": name, "kind": ticket.kind, "bytes": len(file), "numbers": weights, "differ": differ}
    if ticket.kind in ("search", "model"):
        row["output_error"] = output_error(ticket, file)
    with TemporaryDirectory() as folder:
        row["page_bytes"] = write_ticket_page(path, Path(folder) / "page.html").stat().st_size
    return row


def output_error(ticket: Ticket, file: bytes) -> float:
    """The largest difference of logits between both, over the largest logit."""
    network: Any = ticket.network()
    generator = torch.Generator().manual_seed(0)
    if hasattr(network.config, "image_size"):
        size, channels = network.config.image_size, network.config.num_channels
        images = torch.rand((4, channels, size, size), generator=generator) * 2 - 1
        job = {"do": "images", "images": images.reshape(4, -1).tolist()}
        inputs = {"pixel_values": images}
    else:
        tokens = torch.randint(network.config.vocab_size, (1, 48), generator=generator)
        job = {"do": "language", "tokens": tokens[0].tolist()}
        inputs = {"input_ids": tokens}
    with torch.no_grad():
        expected = network(**inputs).logits.squeeze(0)
    (found,) = node(job | {"file": file})
    return float((torch.tensor(found) - expected).abs().max() / expected.abs().max())


def run(quick: bool = False) -> Row:
    files = {"known": ROOT / "tests/known.ticket"} | GALLERY
    if quick:
        files = {name: files[name] for name in ("known", "digits")}
    rows = [compared(name, path) for name, path in files.items()]
    differ, count = (sum(row[column] for row in rows) for column in ("differ", "numbers"))
    error = max(row.get("output_error", 0.0) for row in rows)
    together = sum(row["bytes"] for row in rows if row["ticket"] in GALLERY)
    page = max(row["page_bytes"] for row in rows)
    shown = [
        figure("JavaScript: numbers that differ in any bit", differ, "==", 0, f"of {count:,}"),
        figure("JavaScript: largest error of logits", error, "<=", 2e-6),
        figure("gallery: bytes together", together, "<=", 1_000_000),
        figure("largest page of a ticket, bytes", page, "<=", 1_500_000),
    ]
    if not quick and (model := stories()):
        growth = model.quality(Ticket.load(GALLERY["stories"]).network())["loss %"]
        shown.append(figure("stories: growth of the loss, percent", growth, "<=", 1))
    return {"gallery": rows, "must_show": shown}


if __name__ == "__main__":
    main(__doc__, run)
