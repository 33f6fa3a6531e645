"""The demo: train the paper's small target, build its ticket, certify, save, reload, verify, measure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from strongticket import nets
from strongticket.build import Plan, build_attention, plan
from strongticket.build.source import certified
from strongticket.experiments.angular import Target, one_thread, train_target, walks
from strongticket.experiments.reproduce import Step
from strongticket.nets import Comparison, compare, output_error
from strongticket.report import Summary, write_results
from strongticket.ticket import Ticket

EPSILON = 1e-6  # the output error that the ticket is built for
WIDTHS = (4, 8, 16, 24, 32, 40, 48, 56, 64)
SOURCES = 8  # random sources for each width
SWEEP_WALKS = 500  # test sequences a swept ticket is measured on
LENGTHS = {4: 10_000, 256: 200}  # sequence length of the table of errors -> test sequences


@dataclass(frozen=True)
class Point:
    """One random source of the sweep: the largest error on test data and the certificate, both at width n."""

    assignment: str
    n: int
    seed: int
    error: float
    certificate: float


@dataclass(frozen=True)
class Demo:
    """All that the page tells of."""

    seed: int
    target: Target
    plan: Plan
    ticket: Ticket
    file: Path
    build_seconds: float
    comparison: Comparison
    attacked: float  # the largest error that gradient ascent found
    test_error: dict[int, float]  # sequence length -> largest error on test data
    test_loss: float  # the ticket's mean squared error
    answers: np.ndarray  # (walks, 2): of target and ticket at the regression token
    sweep: tuple[Point, ...]


@one_thread()
def run(out: Path, seed: int, command: str, step: Step) -> dict[str, Any]:
    """Do everything, write the results folder `out`, return its numbers; `step` announces each part."""
    from strongticket.experiments.demo_page import demo_page

    start = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with step("training the target on angular velocities") as advance:
        target = train_target(seed, progress=advance)
        nets.save(target.network, out / "target.safetensors")
    test = walks(seed, "test")
    radius = float(target.inputs(test).norm(dim=-1).max()) * (1 + 1e-6)
    with step(f"planning for an error of {EPSILON:g}"):
        planned = plan(EPSILON, 2, dim_out=1, radius=radius)
    with step("building the ticket and certifying it"):
        began = time.perf_counter()
        built = build_attention(target.network, epsilon=EPSILON, radius=radius, seed=seed)
        build_seconds = time.perf_counter() - began
    with step("saving, reloading and verifying it"):
        file = built.save(out / "demo.ticket")
        ticket = Ticket.load(file)
        ticket.verify()
        network = ticket.network()
        comparison = compare(target.network, network, radius=radius, seed=seed)
    with step("measuring it on test data, and attacking it"):
        errors = {
            length: float(output_error(target.network, network, target.inputs(test, length)[:some]).max())
            for length, some in LENGTHS.items()
        }
        attacked = nets.attack(
            network.double(), target.network.double(), 2, radius, restarts=16, steps=100, seed=seed
        ).error
        network.float(), target.network.float()
        answers = np.stack([n(target.inputs(test))[:, 0, 0].numpy() for n in (target.network, network)], 1)
        loss = float(np.square(answers[:, 1] - test.velocity.numpy()).mean())
    with step(f"building {2 * len(WIDTHS) * SOURCES} more, for the error against the width") as advance:
        sweep = _sweep(target, target.inputs(test)[:SWEEP_WALKS], radius, seed, advance)
    demo = Demo(
        seed, target, planned, ticket, file, build_seconds, comparison, attacked, errors, loss, answers, sweep
    )
    results = _results(demo)
    settings = {"epsilon": EPSILON, "radius": radius, "widths": list(WIDTHS), "sources": SOURCES}
    summary = Summary(command, seed, settings, results, time.perf_counter() - start)
    tables = {
        "errors.csv": [vars(point) for point in sweep],
        "answers.csv": [
            {"velocity": float(v), "target": float(a), "ticket": float(b)}
            for v, (a, b) in zip(test.velocity, answers, strict=True)
        ],
        "training.csv": [
            {"epoch": i + 1, "train_loss": a, "validation_loss": b}
            for i, (a, b) in enumerate(zip(target.train_loss, target.validation_loss, strict=True))
        ],
    }
    page = write_results(out, demo_page(demo), summary, tables)
    return {"page": str(page), "ticket": str(file), "seconds": round(summary.seconds, 1), **results}


def _sweep(
    target: Target, inputs: torch.Tensor, radius: float, seed: int, advance: Callable[[int, int], None]
) -> tuple[Point, ...]:
    points: list[Point] = []
    for n in WIDTHS:
        for assignment in ("balanced", "paper"):
            for source in range(seed, seed + SOURCES):
                built = build_attention(
                    target.network, width=n, radius=radius, seed=source, assignment=assignment
                )
                error = float(output_error(target.network, built.network(), inputs).max())
                points.append(Point(assignment, n, source, error, certified(built)))
        advance(len(points), 2 * len(WIDTHS) * SOURCES)
    return tuple(points)


def median_errors(demo: Demo, assignment: str, what: str = "error") -> list[float]:
    """For each of WIDTHS the median over the sources."""
    return [
        float(np.median([getattr(p, what) for p in demo.sweep if (p.assignment, p.n) == (assignment, n)]))
        for n in WIDTHS
    ]


def fit(errors: list[float]) -> tuple[float, float]:
    """γ, δ of ε = γ·e^(−δn), by least squares on log ε."""
    slope, offset = np.polyfit(WIDTHS, np.log(errors), 1)
    return math.exp(offset), -float(slope)


def _results(demo: Demo) -> dict[str, Any]:
    certificate = demo.comparison.certificate
    sizes = demo.ticket.sizes()
    masks = demo.ticket.masks.values()
    fits = {name: fit(median_errors(demo, name)) for name in ("balanced", "paper")}
    return {
        "target_test_loss": demo.target.test_loss,
        "ticket_test_loss": demo.test_loss,
        "largest_test_error": {str(length): error for length, error in demo.test_error.items()},
        "certified_error": certificate.bound,
        "paper_bound": certificate.paper_bound,
        "attacked_error": demo.attacked,
        "matrix_errors": {matrix.name: matrix.error for matrix in demo.comparison.matrices},
        "planned_widths": {layer.name: layer.width for layer in demo.plan.in_practice.layers},
        "theorem_widths": {layer.name: layer.width for layer in demo.plan.by_theorem.layers},
        "width": demo.ticket.settings["key_dim"],
        "weights": sum(mask.size for mask in masks),
        "kept": sum(int(mask.sum()) for mask in masks),
        "bytes": {"file": sizes.file, "float32": sizes.float32, "target": 4 * _count(demo.target.network)},
        "build_seconds": round(demo.build_seconds, 3),
        "fits": {name: {"gamma": gamma, "delta": delta} for name, (gamma, delta) in fits.items()},
    }


def _count(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
