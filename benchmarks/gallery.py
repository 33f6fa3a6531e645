"""The gallery in a second language: `python -m benchmarks.gallery [--json] [--quick]`.

Every ticket of the gallery, and tests/known.ticket, is read by the library and by the JavaScript reader in node:
weights compared bit by bit (choices as torch reads them, too), outputs to rounding. Then the bytes of the tickets and
of their pages, the loss of the built ones beside their original's, on stories that the original writes (left out if
it is missing, see benchmarks/models.py), and the time that node takes to read choices. --quick takes only the two
smallest tickets.
"""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from tests.web.compare import GALLERY, ROOT, unequal_bits, unequal_in_torch
from tests.web.conftest import HERE, NODE, plain

from benchmarks.harness import Row, figure, main, tell
from benchmarks.models import stories
from strongticket import choice
from strongticket.report.ticket_page import write_ticket_page
from strongticket.ticket import Ticket

LARGE = (2048, 1024)
# Reads the choices in a file, seed 0 and name "w", several times; prints the least ns a number, and that of sha256.
READING = """
import { readFileSync } from "node:fs";
const [web, file, rows, columns, ...sizes] = process.argv.slice(1);
const { cutBlocks, readChoices } = await import(`${web}/choices.js`);
const { sha256 } = await import(`${web}/sha256.js`);
const shape = [Number(rows), Number(columns)];
const choices = cutBlocks(new Uint8Array(readFileSync(file)), sizes.map(Number), shape, false);
const numbers = new Uint8Array(4 * shape[0] * shape[1]);
const best = (job) => Math.min(...Array.from({ length: 7 }, () => {
  const start = performance.now();
  job();
  return (1e6 * (performance.now() - start)) / (shape[0] * shape[1]);
}));
console.log(JSON.stringify([best(() => readChoices(0n, "w", shape, choices)), best(() => sha256(numbers))]));
"""


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
    row["differ in torch"] = unequal_in_torch(ticket)
    if ticket.kind in ("search", "model"):
        row["output_error"] = output_error(ticket, file)
    with TemporaryDirectory() as folder:
        row["page_bytes"] = write_ticket_page(path, Path(folder) / "page.html").stat().st_size
    return row


def reading_time() -> Row:
    """Nanoseconds a weight that node takes to read choices, and to hash the numbers for their checksum."""
    numbers = np.random.default_rng(0).standard_normal(LARGE, np.float32)
    coded = choice.encode(numbers, 0, "w", 0.2)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "choices"
        file.write_bytes(b"".join(coded.blocks))
        sizes = [str(len(block)) for block in coded.blocks]
        command = [NODE, "--input-type=module", "-e", READING, str(ROOT / "web/src"), str(file)]
        done = subprocess.run([*command, *map(str, LARGE), *sizes], stdout=subprocess.PIPE, check=True)
    both, hashing = json.loads(done.stdout)
    return {"numbers": numbers.size, "read ns": both - hashing, "hash ns": hashing}


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
        figure("torch: numbers that differ in any bit", sum(row["differ in torch"] for row in rows), "==", 0),
        figure("JavaScript: largest error of logits", error, "<=", 2e-6),
        figure("gallery: bytes together", together, "<=", 1_000_000),
        figure("largest page of a ticket, bytes", page, "<=", 1_500_000),
    ]
    if not quick and (model := stories()):
        for bits, limit in ((4, 15), (6, 1)):
            growth = model.quality(Ticket.load(GALLERY[f"stories-{bits}bit"]).network())["loss %"]
            shown.append(figure(f"stories, {bits} bits: growth of the loss, percent", growth, "<=", limit))
    time = reading_time()
    shown.append(figure("JavaScript: ns a weight to read, 8 states", time["read ns"], "<=", 25))
    return {"gallery": rows, "javascript": [time], "must_show": shown}


if __name__ == "__main__":
    main(__doc__, run)
