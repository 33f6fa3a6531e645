"""Run a figure or study by its name: measure, then write tables, pictures, a summary and a page of Markdown.

A figure or study is one file with one `STUDY = Study(...)`, and a line in catalogue.py. The driver here takes care
of resuming, processes, clusters and files, so the file itself holds nothing but the question and its answer.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strongticket import __version__
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, write_file
from strongticket.reproduce import plots
from strongticket.reproduce.catalogue import load
from strongticket.reproduce.plots import Axes
from strongticket.reproduce.rows import Row
from strongticket.work.store import Advance, Compute, Settings, Store, compute_points

Step = Callable[[str], AbstractContextManager[Advance]]  # announces a part of the work and shows its progress
Tables = dict[str, list[Row]]  # name of a CSV file, without its suffix -> its rows
SCALES = ("quick", "laptop", "paper")


@dataclass(frozen=True)
class Answer:
    """What a study found."""

    sentence: str  # the answer to its question
    numbers: JsonObject  # to quote
    table: Sequence[Row]  # what a reader wants to see, each row with the same columns


@dataclass(frozen=True)
class Study:
    """A question, how to measure it, and how to read what was measured."""

    question: str
    # scale -> a frozen dataclass of the study's own, passed to the functions below
    settings: Mapping[str, Any]
    measure: Callable[[Run, Any], Tables]  # everything that takes time
    answer: Callable[[Tables, Any], Answer]
    plot: Callable[[Tables, Any, Sequence[Axes]], None]  # on as many axes as there are panels
    panels: int = 1


@dataclass(frozen=True)
class Run:
    """One run of a study.

    Attributes:
        out: results go to out/<name>, finished points to out/points.
        scale: "quick" takes a minute and gives no numbers to quote, "laptop" takes minutes on two cores, "paper"
            computes every point of the paper.
        seed: of everything random, from 0 to 2**64 - 1.
        workers: number of processes; None means one per core, 1 runs in-process.
        cluster: address of a Dask scheduler whose workers compute instead.
        step: announces a part of the work and shows its progress.
    """

    out: Path
    scale: str = "laptop"
    seed: int = 0
    workers: int | None = None
    cluster: str | None = None
    step: Step = lambda what: nullcontext(lambda done, total: None)

    def seeds(self, count: int) -> list[int]:
        """Return so many seeds, counted from the run's; after the largest comes 0."""
        return [(self.seed + number) % 2**64 for number in range(count)]

    def map(
        self,
        what: str,
        function: Compute,
        points: Sequence[Settings],
        version: str,
        *,
        threads: int | None = 1,
    ) -> list[Any]:
        """Return the result of every point, in order; finished points are kept in out/points.

        `what` announces the work; `version` is that of the program behind `function`. For the rest see compute_points.
        """
        with self.step(what) as advance:
            return compute_points(
                function,
                points,
                Store(self.out / "points", version),
                workers=self.workers,
                cluster=self.cluster,
                threads=threads,
                progress=advance,
            )

    def rows(
        self, what: str, function: Compute, points: Sequence[Settings], version: str, columns: Sequence[str]
    ) -> list[Row]:
        """Return the rows that `function` makes of every point, each after these settings of its point; see `map`."""
        results = self.map(what, function, points, version)
        return [
            {name: point[name] for name in columns} | row
            for point, rows in zip(points, results, strict=True)
            for row in rows
        ]


def reproduce(name: str, run: Run) -> JsonObject:
    """Run a study, write its results to run.out/name, and return the summary that is also in summary.json."""
    study: Study = load(name).STUDY
    if run.scale not in study.settings:
        raise StrongTicketError(f"unknown scale {run.scale!r}", hint=f"Use one of {', '.join(SCALES)}.")
    folder = run.out / name
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    settings = study.settings[run.scale]
    tables = study.measure(run, settings)
    answer = study.answer(tables, settings)
    for table, rows in tables.items():
        write_file(folder / f"{table}.csv", _csv(rows).encode())
    plots.save(folder / name, study.panels, lambda axes: study.plot(tables, settings, axes))
    scale = "" if run.scale == "laptop" else f" --scale {run.scale}"
    command = f"strongticket reproduce {name}{scale}" + (f" --seed {run.seed}" if run.seed else "")
    write_file(folder / "README.md", _readme(name, study, answer, command, run.scale).encode())
    summary = {
        "study": name,
        "strongticket": __version__,
        "command": command,
        "scale": run.scale,
        "seed": run.seed,
        "settings": asdict(settings),
        "seconds": round(time.perf_counter() - start, 2),
        "sentence": answer.sentence,
        "numbers": answer.numbers,
    }
    text = json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False)
    write_file(folder / "summary.json", text.encode() + b"\n")
    return summary


def markdown(rows: Sequence[Row]) -> str:
    """Return rows as a table of Markdown, numbers with three digits.

    >>> print(markdown([{"n": 4, "error": 0.12345}]))
    | n | error |
    |---|---|
    | 4 | 0.123 |
    """
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _readme(name: str, study: Study, answer: Answer, command: str, scale: str) -> str:
    is_quick = scale not in ("laptop", "paper")
    warning = "**A quick look: too few runs to quote these numbers.**\n\n" if is_quick else ""
    return (
        f"# {name}: {study.question}\n\n{warning}{answer.sentence}\n\n![{study.question}]({name}.png)\n\n"
        f"{markdown(answer.table)}\n\nMade by `{command}`. The numbers are in the CSV files and in summary.json.\n"
    )


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    names = dict.fromkeys(name for row in rows for name in row)  # text has no accuracy, images have
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
