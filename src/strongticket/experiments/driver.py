"""Run an experiment by its name: measure, write the numbers, draw the charts, make the page.

An experiment is a module (or a folder) with

    measure(run: Run) -> Result      everything that takes time; `run.compute` stores, resumes and distributes
    page(result) -> Page             what to show
    prints(result) -> tuple[Print]   which charts to draw as PNG and PDF

and a line in catalogue.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, get_args

from strongticket.errors import StrongTicketError
from strongticket.experiments.catalogue import load
from strongticket.experiments.chart import Print, save
from strongticket.experiments.points import Advance, Compute, Settings, run_points
from strongticket.experiments.spread import Row
from strongticket.report import Image, Images, Page, RunSummary, Section, write_results

Step = Callable[[str], AbstractContextManager[Advance]]  # announces a part of the work and shows its progress


SCALES = ("laptop", "paper", "test")  # "test" is for the tests: seconds, and no numbers to quote
MIP = ("highs", "gurobi", "cpsat")


@dataclass(frozen=True)
class Options:
    """Options of a run; an experiment reads those it needs.

    out: results go to out/<name>, finished points to out/points
    scale: "laptop" takes minutes on two cores, "paper" computes every point of the paper
    seed: of everything random, from 0 to 999999
    workers: number of processes; None means one per core, 1 runs in-process
    cluster: address of a Dask scheduler whose workers compute instead
    learning_rate: of the target of figures 4 and 5
    init: how the random sources of figures 5 and 6 draw queries and keys: "theory", "inverse" or "xavier"
    mip: the integer program that figure 4 compares with: "highs", "gurobi" or "cpsat"
    """

    out: Path
    scale: str = "laptop"
    seed: int = 0
    workers: int | None = None
    cluster: str | None = None
    learning_rate: float = 0.1
    init: str = "theory"
    mip: str = "highs"

    def __post_init__(self) -> None:
        from strongticket.builders.options import Init

        choices = {"scale": SCALES, "init": get_args(Init), "mip": MIP}
        for name, values in choices.items():
            if getattr(self, name) not in values:
                public = ", ".join(value for value in values if value != "test")
                raise StrongTicketError(
                    f"unknown {name} {getattr(self, name)!r}", hint=f"Use one of {public}."
                )
        if not 0 < self.learning_rate < float("inf"):
            raise StrongTicketError(
                f"learning_rate is {self.learning_rate}", hint="Expected a number above 0."
            )
        if not 0 <= self.seed < 1_000_000:
            raise StrongTicketError(f"seed is {self.seed}", hint="Expected a whole number from 0 to 999999.")

    def command(self, name: str) -> str:
        """Return the command that makes this experiment again, with the options that differ from the defaults.

        name: of the experiment, a name of the catalogue
        """
        changed = [option for option in self.changed() if option not in ("workers", "cluster")]
        arguments = [f"--{option.replace('_', '-')} {getattr(self, option)}" for option in changed]
        return " ".join(["strongticket reproduce", name, *arguments])

    def changed(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        return [f.name for f in fields(self) if f.name != "out" and getattr(self, f.name) != f.default]


@dataclass(frozen=True)
class Run:
    """One run of an experiment: what was asked for, where it goes, and how its progress is shown.

    folder: of the results; exists while `measure` runs
    """

    options: Options
    folder: Path
    step: Step = lambda what: nullcontext(lambda done, total: None)

    def compute(
        self,
        what: str,
        function: Compute,
        points: Sequence[Settings],
        version: str,
        *,
        threads: int | None = 1,
    ) -> list[Any]:
        """Return the result of every point, in order; finished points are kept in out/points.

        what: announces the work
        function: settings -> what JSON can hold; see run_points
        points: the settings of each point
        version: of the program behind `function`, see code_version
        threads: what torch and numba may use inside a point; None leaves them alone
        """
        with self.step(what) as advance:
            return run_points(
                function,
                points,
                self.options.out / "points",
                version=version,
                workers=self.options.workers,
                cluster=self.options.cluster,
                threads=threads,
                progress=advance,
            )


class Result(Protocol):
    """What an experiment measured."""

    def settings(self) -> dict[str, Any]:
        """Return what it was measured with, for summary.json."""

    def numbers(self) -> dict[str, Any]:
        """Return the numbers to quote, for summary.json."""

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """Return the rows of each CSV file by its name."""

    def headline(self) -> list[tuple[str, str]]:
        """Return a few (what, value) for the terminal."""


class Experiment(Protocol):
    """A module with these functions."""

    def measure(self, run: Run) -> Result:
        """Do everything that takes time."""

    def page(self, result: Any) -> Page:
        """Describe what to show."""

    def prints(self, result: Any) -> tuple[Print, ...]:
        """Return the charts to draw as PNG and PDF; the page shows them at its end."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind: its page, the time it took, and its numbers."""

    page: Path
    seconds: float
    result: Result

    def to_json(self, name: str) -> dict[str, Any]:
        """Return what the command line prints.

        name: of the experiment
        """
        return {
            "figure": name,
            "page": str(self.page),
            "seconds": round(self.seconds, 1),
            "headline": self.result.headline(),
            **self.result.numbers(),
        }


def reproduce(name: str, options: Options, step: Step) -> dict[str, Any]:
    """Run one experiment of the catalogue and return what the command line prints of it.

    name: a name of the catalogue
    options: see Options; the results folder is options.out / name
    step: announces a part of the work and shows its progress
    """
    experiment = load(name)
    run = Run(options, options.out / name, lambda what: step(f"{name}: {what}"))
    return run_experiment(experiment, run, options.command(name)).to_json(name)


def run_experiment(experiment: Experiment, run: Run, command: str) -> Outcome:
    """Measure, then write the results folder: CSV files, summary.json, charts for print and the page.

    experiment: a module, see above
    run: its options, folder and progress
    command: what makes the same results again
    """
    start = time.perf_counter()
    run.folder.mkdir(parents=True, exist_ok=True)
    result = experiment.measure(run)
    page, prints = experiment.page(result), experiment.prints(result)
    for picture in prints:
        save(picture, run.folder)
    if prints:
        page = replace(page, sections=(*page.sections, _for_print(prints)))
    seconds = time.perf_counter() - start
    summary = RunSummary(command, run.options.seed, result.settings(), result.numbers(), seconds)
    return Outcome(write_results(run.folder, page, summary, result.tables()), seconds, result)


def _for_print(prints: Sequence[Print]) -> Section:
    images = tuple(
        Image(f"{p.name}.png", p.alt, f"`{p.name}.png`; the same as vectors in `{p.name}.pdf`.")
        for p in prints
    )
    return Section("For print", (Images(images),))
