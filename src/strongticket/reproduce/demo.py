"""The demo: a language ticket that runs in the browser, and the paper's attention layer with its certificate.

The language ticket is a character model of Python's documentation. It comes with the package, since finding it takes
minutes and transformers: `strongticket search --preset laptop --out language.ticket`.
"""

from __future__ import annotations

import base64
import time
from contextlib import nullcontext, suppress
from importlib.resources import files
from pathlib import Path

import torch

from strongticket import nets
from strongticket.builders import build_network
from strongticket.errors import MissingDependency
from strongticket.files import JsonObject, write_file
from strongticket.report.ticket_page import write_ticket_page
from strongticket.reproduce.angular import Target, train_target, walks
from strongticket.reproduce.study import Step
from strongticket.ticket import Ticket, summarise
from strongticket.work.store import limited_threads

EPSILON = 1e-6  # the output error that the attention ticket is built for
LENGTHS = {4: 10_000, 256: 200}  # length of the test sequences -> how many


@limited_threads(1)
def demo(
    out: Path, seed: int = 0, step: Step = lambda what: nullcontext(lambda done, total: None)
) -> JsonObject:
    """Make both tickets and the page that shows them; return what was measured.

    Args:
        out: folder of the page and the language ticket; the other ticket and its target go to its subfolder attention.
        seed: of the attention layer, its training and its ticket.
        step: announces a part of the work and shows its progress.
    """
    start = time.perf_counter()
    file, target_file = out / "attention" / "attention.ticket", out / "attention" / "target.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    with step("training the paper's attention layer") as advance:
        target = train_target(seed, progress=advance)
        nets.save(target.network, target_file)
    with step("building its ticket and certifying it"):
        radius = float(target.inputs(walks(seed, "test")).norm(dim=-1).max()) * (1 + 1e-6)
        began = time.perf_counter()
        build_network(target.network, epsilon=EPSILON, radius=radius, seed=seed).save(file)
        build_seconds = time.perf_counter() - began
    with step("reloading and verifying it, measuring and attacking its error"):
        ticket = Ticket.load(file)
        ticket.verify()
        numbers = _measure(target, ticket, radius, seed) | {"build_seconds": round(build_seconds, 3)}
    with step("checking the language ticket and making the page"):
        language = out / "language.ticket"
        write_file(language, (files("strongticket.reproduce") / "language.ticket").read_bytes())
        with suppress(MissingDependency):  # without transformers; the page checks every weight too
            Ticket.load(language).verify()
        merged = nets.merge(target.network, torch.float64)
        attention = {
            "file": base64.b64encode(file.read_bytes()).decode("ascii"),
            # The two matrices that decide what the head computes.
            "target": {name: getattr(merged, name)[0].tolist() for name in ("query_key", "value_output")},
            "numbers": numbers,
        }
        page = write_ticket_page(language, out / "index.html", attention=attention)
    summary = summarise(language)
    return {
        "page": str(page),
        "language": {
            "weights": summary.weights,
            "kept": summary.kept,
            "bytes": summary.file_bytes,
            "float32": 4 * summary.weights,
            "loss": summary.metadata["loss"],
            "data": summary.metadata["data"],
        },
        "attention": {"ticket": str(file), "target": str(target_file), **numbers},
        "seconds": round(time.perf_counter() - start, 1),
    }


def _measure(target: Target, ticket: Ticket, radius: float, seed: int) -> JsonObject:
    """Compare the ticket with its target: on test data, under attack, and for every input."""
    test, network, trained = walks(seed, "test"), ticket.network(), target.network
    compared = nets.compare(trained, network, radius=radius, seed=seed)
    attacked = nets.attack(
        network, nets.Merged(trained), 2, radius, heads=trained.heads, restarts=16, steps=100, seed=seed
    )
    with torch.no_grad():
        answers = network(target.inputs(test))[:, 0, 0]
    masks = ticket.masks.values()
    weights = sum(mask.size for mask in masks)
    return {
        "certified_error": compared.certificate.bound,
        "paper_bound": compared.certificate.to_dict()["paper_bound"],
        "attacked_error": attacked.error,
        "largest_test_error": {
            str(length): float(nets.output_error(trained, network, target.inputs(test, length)[:count]).max())
            for length, count in LENGTHS.items()
        },
        "target_test_loss": target.test_loss,
        "ticket_test_loss": float((answers - test.velocity).square().mean()),
        "matrix_errors": {matrix.name: matrix.error for matrix in compared.matrices},
        "target_width": trained.key_dim,
        "width": ticket.settings["key_dim"],
        "weights": weights,
        "kept": sum(int(mask.sum()) for mask in masks),
        "bytes": {"file": len(ticket.to_bytes()), "float32": 4 * weights},
    }
