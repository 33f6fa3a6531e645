"""The paper's figures by name: what a run may be asked for, and which modules answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from strongticket.errors import StrongTicketError
from strongticket.experiments.runner import Advance, Settings, run_points

Step = Callable[[str], AbstractContextManager[Advance]]  # announces a part of the work and shows its progress

FIGURES = ("figure4", "figure5", "figure6", "figure7", "figure8")
SCALES = ("laptop", "paper", "test")  # "test" is for the tests: seconds, and no numbers to quote
MIP = ("highs", "gurobi", "cpsat")


@dataclass(frozen=True)
class Options:
    """out: results go to out/<figure>, finished points to out/points. Figures take what they need."""

    out: Path
    scale: str = "laptop"
    seed: int = 0
    workers: int | None = None
    cluster: str | None = None
    learning_rate: float = 0.1
    init: str = "theory"
    mip: str = "highs"

    def __post_init__(self) -> None:
        from strongticket.build.source import Init

        known = {"scale": SCALES, "init": get_args(Init), "mip": MIP}
        for name, values in known.items():
            if getattr(self, name) not in values:
                told = ", ".join(value for value in values if value != "test")
                raise StrongTicketError(f"{name} is {getattr(self, name)!r}", hint=f"Expected one of {told}.")
        if not 0 < self.learning_rate < float("inf"):
            raise StrongTicketError(
                f"learning_rate is {self.learning_rate}", hint="Expected a number above 0."
            )
        if not 0 <= self.seed < 1_000_000:
            raise StrongTicketError(f"seed is {self.seed}", hint="Expected a whole number from 0 to 999999.")

    @property
    def store(self) -> Path:
        return self.out / "points"

    def results(
        self,
        compute: Callable[[Settings], Any],
        points: Sequence[Settings],
        version: str,
        progress: Advance,
        *,
        threads: int | None = 1,
    ) -> list[Any]:
        """Of all points, by the workers or the cluster asked for; see run_points."""
        where: dict[str, Any] = dict(workers=self.workers, cluster=self.cluster, threads=threads)
        return run_points(compute, points, self.store, version=version, progress=progress, **where)

    def command(self, figure: str) -> str:
        """The command that makes this figure again, with what differs from the defaults."""
        words = ["strongticket reproduce", figure]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("out", "workers", "cluster") and value != field.default:
                words.append(f"--{field.name.replace('_', '-')} {value}")
        return " ".join(words)


def reproduce(figure: str, options: Options, step: Step) -> dict[str, Any]:
    """Make one figure: its results folder, and what to tell of it ("figure", "page", "seconds", "headline").

    A figure is a module of this package with run(options, step) that returns such a dict.
    """
    if figure not in FIGURES:
        raise StrongTicketError(f"{figure!r} is no figure", hint=f"Use one of {', '.join(FIGURES)} or all.")
    return import_module(f"strongticket.experiments.{figure}").run(options, step)
