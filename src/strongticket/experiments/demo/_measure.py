"""The demo: train the paper's small target, build its ticket, certify, save, reload, verify, measure."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from strongticket import nets
from strongticket.builders import Plan, build_attention, plan
from strongticket.builders.options import Assignment
from strongticket.builders.source import certified
from strongticket.experiments.driver import Run
from strongticket.experiments.fit import Decay, fit_logs
from strongticket.experiments.points import Advance, limited_threads
from strongticket.experiments.spread import Row
from strongticket.experiments.tasks.angular import Target, Walks, train_target, walks
from strongticket.nets import Comparison, compare, output_error
from strongticket.ticket import Ticket

EPSILON = 1e-6  # the output error that the ticket is built for
WIDTHS = (4, 8, 16, 24, 32, 40, 48, 56, 64)
SOURCES = 8  # random sources for each width
SWEEP_WALKS = 500  # test sequences that a ticket of the sweep is measured on
LENGTHS = {4: 10_000, 256: 200}  # sequence length of the table of errors -> test sequences


@dataclass(frozen=True)
class SweptTicket:
    """A ticket of one random source at width n: its largest error on test data, and its certificate."""

    assignment: Assignment
    n: int
    seed: int
    error: float
    certificate: float


@dataclass(frozen=True)
class Demo:
    """What was measured.

    attacked: the largest error that gradient ascent found
    test_error: sequence length -> largest error on test data
    test_loss: the ticket's mean squared error
    answers: (walks, 2): of target and ticket at the regression token
    """

    seed: int
    radius: float
    test: Walks
    target: Target
    plan: Plan
    ticket: Ticket
    file: Path
    build_seconds: float
    comparison: Comparison
    attacked: float
    test_error: dict[int, float]
    test_loss: float
    answers: np.ndarray
    sweep: tuple[SweptTicket, ...]

    def medians(self, assignment: Assignment, what: Literal["error", "certificate"] = "error") -> list[float]:
        """Return the median over the sources for each of WIDTHS."""
        return [
            float(np.median([getattr(t, what) for t in self.sweep if (t.assignment, t.n) == (assignment, n)]))
            for n in WIDTHS
        ]

    def fit(self, assignment: Assignment) -> Decay:
        """Return the curve through the median errors, by least squares on log ε."""
        return fit_logs(WIDTHS, self.medians(assignment))

    def settings(self) -> dict[str, Any]:
        return {"epsilon": EPSILON, "radius": self.radius, "widths": list(WIDTHS), "sources": SOURCES}

    def numbers(self) -> dict[str, Any]:
        certificate = self.comparison.certificate
        sizes = self.ticket.sizes()
        masks = self.ticket.masks.values()
        fits = {name: self.fit(name) for name in get_args(Assignment)}
        return {
            "target_test_loss": self.target.test_loss,
            "ticket_test_loss": self.test_loss,
            "largest_test_error": {str(length): error for length, error in self.test_error.items()},
            "certified_error": certificate.bound,
            "paper_bound": certificate.paper_bound,
            "attacked_error": self.attacked,
            "matrix_errors": {matrix.name: matrix.error for matrix in self.comparison.matrices},
            "planned_widths": {layer.name: layer.width for layer in self.plan.in_practice.layers},
            "theorem_widths": {layer.name: layer.width for layer in self.plan.by_theorem.layers},
            "width": self.ticket.settings["key_dim"],
            "weights": sum(mask.size for mask in masks),
            "kept": sum(int(mask.sum()) for mask in masks),
            "bytes": {
                "file": sizes.file,
                "float32": sizes.float32,
                "target": 4 * sum(parameter.numel() for parameter in self.target.network.parameters()),
            },
            "build_seconds": round(self.build_seconds, 3),
            "fits": {name: {"gamma": fit.gamma, "delta": fit.delta} for name, fit in fits.items()},
        }

    def tables(self) -> dict[str, list[Row]]:
        return {
            "errors.csv": [vars(ticket) for ticket in self.sweep],
            "answers.csv": [
                {"velocity": float(velocity), "target": float(target), "ticket": float(ticket)}
                for velocity, (target, ticket) in zip(self.test.velocity, self.answers, strict=True)
            ],
            "training.csv": [
                {"epoch": epoch, "train_loss": train, "validation_loss": validation}
                for epoch, (train, validation) in enumerate(
                    zip(self.target.train_loss, self.target.validation_loss, strict=True), 1
                )
            ],
        }

    def headline(self) -> list[tuple[str, str]]:
        certificate, masks = self.comparison.certificate, self.ticket.masks.values()
        test = ", ".join(f"{error:.2g} (length {length})" for length, error in self.test_error.items())
        ours, paper = (self.fit(name).delta for name in ("balanced", "paper"))
        return [
            ("largest error on test data", test),
            ("attacked by gradient ascent", f"{self.attacked:.2g}"),
            ("certified for every input", f"{certificate.bound:.2g}"),
            (
                "weights",
                f"{sum(m.size for m in masks)} random, {sum(int(m.sum()) for m in masks)} kept, 0 trained",
            ),
            (
                "error falls as",
                f"e^(−{ours:.2f} n); paper's assignment e^(−{paper:.2f} n), its report e^(−0.06 n)",
            ),
        ]


@limited_threads(1)
def measure(run: Run) -> Demo:
    """Do everything; the target and its ticket become files of the results folder."""
    seed, step = run.options.seed, run.step
    with step("training the target on angular velocities") as advance:
        target = train_target(seed, progress=advance)
        nets.save(target.network, run.folder / "target.safetensors")
    test = walks(seed, "test")
    inputs = target.inputs(test)
    radius = float(inputs.norm(dim=-1).max()) * (1 + 1e-6)
    with step(f"planning for an error of {EPSILON:g}"):
        planned = plan(EPSILON, 2, dim_out=1, radius=radius)
    with step("building the ticket and certifying it"):
        start = time.perf_counter()
        built = build_attention(target.network, epsilon=EPSILON, radius=radius, seed=seed)
        build_seconds = time.perf_counter() - start
    with step("saving, reloading and verifying it"):
        file = built.save(run.folder / "attention.ticket")
        ticket = Ticket.load(file)
        ticket.verify()
        network = ticket.network()
        comparison = compare(target.network, network, radius=radius, seed=seed)
    with step("measuring it on test data, and attacking it"):
        errors = {
            length: float(output_error(target.network, network, target.inputs(test, length)[:count]).max())
            for length, count in LENGTHS.items()
        }
        attacked = nets.attack(
            network.double(), target.network.double(), 2, radius, restarts=16, steps=100, seed=seed
        ).error
        network.float(), target.network.float()
        answers = np.stack([n(inputs)[:, 0, 0].numpy() for n in (target.network, network)], 1)
        loss = float(np.square(answers[:, 1] - test.velocity.numpy()).mean())
    with step(f"building {2 * len(WIDTHS) * SOURCES} more, for the error against the width") as advance:
        sweep = _sweep(target, inputs[:SWEEP_WALKS], radius, seed, advance)
    return Demo(
        seed=seed,
        radius=radius,
        test=test,
        target=target,
        plan=planned,
        ticket=ticket,
        file=file,
        build_seconds=build_seconds,
        comparison=comparison,
        attacked=attacked,
        test_error=errors,
        test_loss=loss,
        answers=answers,
        sweep=sweep,
    )


def _sweep(
    target: Target, inputs: torch.Tensor, radius: float, seed: int, advance: Advance
) -> tuple[SweptTicket, ...]:
    tickets: list[SweptTicket] = []
    for n in WIDTHS:
        for assignment in get_args(Assignment):
            for source in range(seed, seed + SOURCES):
                built = build_attention(
                    target.network, width=n, radius=radius, seed=source, assignment=assignment
                )
                error = float(output_error(target.network, built.network(), inputs).max())
                tickets.append(SweptTicket(assignment, n, source, error, certified(built)))
        advance(len(tickets), 2 * len(WIDTHS) * SOURCES)
    return tuple(tickets)
