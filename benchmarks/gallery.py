"""The gallery in a second language: `python -m benchmarks.gallery [--json] [--quick]`.

Every ticket of the gallery, and tests/known.ticket, is read by the library and by the JavaScript reader in node:
weights compared bit by bit, for the built one also the tensors that its factors make, outputs to rounding. Then the
bytes of the tickets and of their pages, and the loss of the built one beside its original's, on stories that the
original writes (STRONGTICKET_STORIES or ../shared/models/stories260K; left out if it is missing).
"""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tests.web.compare import GALLERY, ROOT, unequal_bits, unequal_folded_bits
from tests.web.conftest import HERE, NODE, plain

from benchmarks.harness import figure, main, tell
from benchmarks.stories import FOLDER
from strongticket.report.ticket_page import write_ticket_page
from strongticket.ticket import Ticket

PAGE_BYTES, GALLERY_BYTES = 1_500_000, 1_000_000
ROUNDING = 2e-6  # of the largest output
STORIES = 32  # of 256 tokens


def node(*jobs: dict[str, Any]) -> list[Any]:
    """Jobs of tests/web/jobs.js -> their results."""
    if NODE is None:
        raise SystemExit("this benchmark needs node (https://nodejs.org)")
    asked = json.dumps(plain(list(jobs)))
    done = subprocess.run(
        [NODE, HERE / "run_jobs.mjs"], input=asked, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def compared(name: str, path: Path) -> dict[str, Any]:
    tell(name)
    ticket, file = Ticket.load(path), path.read_bytes()
    weights, differ = unequal_bits(node, file, ticket)
    row = {
        "ticket": name,
        "kind": ticket.kind,
        "bytes": len(file),
        "weights": weights,
        "weights_that_differ": differ,
    }
    if ticket.kind == "pretrained":
        folded, differ = unequal_folded_bits(node, file, ticket)
        row |= {"folded": folded, "folded_that_differ": differ}
    if ticket.kind in ("search", "pretrained"):
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


def story_losses() -> list[dict[str, Any]]:
    """Nats per token of the original and of its ticket, on stories that the original writes."""
    if not FOLDER.is_dir():
        tell("loss of the stories skipped: set STRONGTICKET_STORIES to the model's folder")
        return []
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(FOLDER).eval()
    torch.manual_seed(0)
    start = torch.full((STORIES, 1), model.config.bos_token_id)
    text = model.generate(start, do_sample=True, max_new_tokens=255, min_new_tokens=255, pad_token_id=0)
    with torch.no_grad():
        both = {
            which: float(each(text, labels=text).loss)
            for which, each in (("original", model), ("ticket", Ticket.load(GALLERY["stories"]).network()))
        }
    return [both | {"growth_percent": 100 * (both["ticket"] / both["original"] - 1)}]


def benchmark(quick: bool) -> dict:
    files = {"known": ROOT / "tests/known.ticket"} | GALLERY
    if quick:
        files = {name: files[name] for name in ("known", "digits")}
    rows = [compared(name, path) for name, path in files.items()]
    losses = [] if quick else story_losses()
    differ = sum(row["weights_that_differ"] + row.get("folded_that_differ", 0) for row in rows)
    count = sum(row["weights"] + row.get("folded", 0) for row in rows)
    return {
        "gallery": rows,
        "stories": losses,
        "must_show": [
            figure("JavaScript: numbers that differ in any bit", differ, "==", 0, note=f"of {count:,}"),
            figure(
                "JavaScript: largest error of logits",
                float(np.max([r.get("output_error", 0) for r in rows])),
                "<=",
                ROUNDING,
            ),
            figure(
                "gallery: bytes together",
                sum(r["bytes"] for r in rows if r["ticket"] in GALLERY),
                "<=",
                GALLERY_BYTES,
            ),
            figure(
                "largest page of a ticket, bytes", max(row["page_bytes"] for row in rows), "<=", PAGE_BYTES
            ),
            *(
                figure("stories: growth of the loss, percent", row["growth_percent"], "<=", 1)
                for row in losses
            ),
        ],
    }


if __name__ == "__main__":
    main(__doc__ or "", benchmark, quick="only the two smallest")
