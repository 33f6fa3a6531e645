"""Searches for tickets and dense trainings as points of a study, and learning rates tuned on the first seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from strongticket.data.text import load_corpus
from strongticket.reproduce.rows import Row
from strongticket.reproduce.study import Run
from strongticket.searching import SearchConfig, search
from strongticket.work.store import Settings, code_version

if TYPE_CHECKING:
    from torch import nn

    from strongticket.searching import Task

# A study's own task and model for a config, and further columns of its row, such as what it measured of the model.
# A function of a module, or a functools.partial of one with keywords that JSON can hold.
Make = Callable[[SearchConfig], "tuple[Task, nn.Module, Row]"]

CODE = ("seeds", "data", "searching", "ticket", "reproduce/searches.py")


def searches(run: Run, cases: Sequence[tuple[Row, SearchConfig]], make: Make | None = None) -> list[Row]:
    """Run every search and return its row, in order. A killed search continues from its last checkpoint.

    Args:
        run: at the paper's scale a search has all cores or the GPU for itself, elsewhere one core.
        cases: the columns that a row begins with, and the search; one of method "dense" trains all weights instead.
        make: for a task and model that the config alone does not describe.
    """
    alone = run.scale == "paper"
    if alone and run.cluster is None:
        run = replace(run, workers=run.workers or 1)
    results = run.map(
        f"{len(cases)} searches and trainings",
        partial(compute, make=make, cache=str(run.out / "cache"), cpu=not alone),
        [point(config, make) for _, config in cases],
        code_version(*CODE, *([] if make is None else [_file(make)])),
        threads=None if alone else 1,
    )
    return [columns | result for (columns, _), result in zip(cases, results, strict=True)]


def point(config: SearchConfig, make: Make | None = None) -> Settings:
    """Return the settings of a search; equal searches of several studies have equal ones, so each is run once."""
    # eval_every is a part of it because the lowest loss seen is reported.
    plain = config.settings() | {"eval_every": config.run.eval_every, "save_every": config.run.save_every}
    is_builtin = (config.task.data, config.task.task) == ("builtin", "language")
    # The built-in text is that of the running Python.
    found = {"search": plain, "text": load_corpus("builtin").name if is_builtin else config.task.data}
    if make is None:
        return found
    arguments = make.keywords if isinstance(make, partial) else {}
    return found | {"make": _file(make), "arguments": arguments}


def compute(settings: Settings, *, make: Make | None, cache: str, cpu: bool) -> Row:
    """Run one search and return its row.

    It has the lowest validation loss seen, as B.2 reports it; the standard deviation of the logits before training;
    and the processor time, which does not depend on what else the machine is doing.
    """
    start = time.process_time()
    config = SearchConfig().changed(**settings["search"], cache=cache, cpu=cpu, resume=True)
    task, model, extra = (None, None, {}) if make is None else make(config)
    found = search(config, task=task, model=model)
    return {
        "loss": found.best_loss,
        "trained_loss": found.curve[-1][1] if found.curve else None,
        "logit_std": found.logit_std,
        "parameters": found.parameters,
        "nonzero": found.kept,
        **found.measures,
        **extra,
        "file_bytes": found.file_bytes,
        "cpu_seconds": round(time.process_time() - start, 3),
    }


@dataclass(frozen=True)
class Case:
    """What gets a learning rate of its own."""

    columns: Row  # of its rows
    configure: Callable[[float], SearchConfig]  # learning rate -> the search with the first seed
    rates: Sequence[float]  # tried in any case
    higher: Sequence[float] = ()  # ascending, tried one by one while the highest so far is the best


def tune(run: Run, cases: Sequence[Case], make: Make | None = None) -> tuple[list[Row], list[float]]:
    """Return one row per case and rate tried, and the rate of the lowest loss of each case."""
    tuning: list[Row] = []
    tried: list[list[Row]] = [[] for _ in cases]
    wanted = [(number, rate) for number, case in enumerate(cases) for rate in case.rates]
    while wanted:
        tries = [(cases[i].columns | {"rate": rate}, cases[i].configure(rate)) for i, rate in wanted]
        rows = searches(run, tries, make)
        tuning += rows
        for (number, _), row in zip(wanted, rows, strict=True):
            tried[number].append(row)
        wanted = [
            (number, rate)
            for number, case in enumerate(cases)
            if _best(tried[number]) == max(row["rate"] for row in tried[number])
            for rate in [rate for rate in case.higher if rate > _best(tried[number])][:1]
        ]
    return tuning, [_best(rows) for rows in tried]


def tuned(
    run: Run,
    cases: Sequence[tuple[Row, SearchConfig]],
    rates: Sequence[float],
    seeds: int,
    make: Make | None = None,
) -> tuple[list[Row], list[Row]]:
    """Return one row per case and rate tried on the first seed, and one per case and seed at the case's best rate.

    Args:
        run: where and how.
        cases: the columns of each case, and its search but for learning rate and seed.
        rates: learning rates to try; each falls to zero along a cosine.
        seeds: how many.
        make: see `searches`.
    """

    def configure(config: SearchConfig, rate: float, seed: int = run.seed) -> SearchConfig:
        return config.changed(lr=rate, lr_end=0.0, seed=seed)

    wanted = [Case(columns, partial(configure, config), rates) for columns, config in cases]
    tuning, best = tune(run, wanted, make)
    rows = [
        (columns | {"rate": rate, "seed": seed}, configure(config, rate, seed))
        for seed in run.seeds(seeds)
        for (columns, config), rate in zip(cases, best, strict=True)
    ]
    return tuning, searches(run, rows, make)


def cpu_seconds(rows: Sequence[Row], tuning: Sequence[Row] = ()) -> float:
    """Return the processor time of all searches; those of the first seed are both in `rows` and in `tuning`."""
    later = [row for row in rows if not tuning or row["seed"] != rows[0]["seed"]]
    return round(sum(row["cpu_seconds"] for row in [*tuning, *later]), 1)


def head_size(config: SearchConfig) -> int:
    """Return n_K."""
    return config.model.dim // config.model.heads


def paper_scale(config: SearchConfig) -> float:
    """Return n_K^(1/4)."""
    return head_size(config) ** 0.25


def scaled(config: SearchConfig, scale: float | None, seed: int) -> SearchConfig:
    """Return the search with this scale of queries and keys; None trains all weights of the unscaled draw instead.

    The scale is rounded, so that its last bits do not make two points of one.

    >>> scaled(SearchConfig(), 64**0.25, 0) == scaled(SearchConfig(), 2**1.5, 0)
    True
    """
    if scale is None:
        return config.changed(method="dense", qk_scale=1.0, seed=seed)
    return config.changed(qk_scale=float(f"{scale:.6g}"), seed=seed)


def _best(rows: Sequence[Row]) -> float:
    rate: float = min(rows, key=lambda row: row["loss"])["rate"]
    return rate


def _file(make: Make) -> str:
    """The file of the package that `make` is in."""
    function = make.func if isinstance(make, partial) else make
    return function.__module__.removeprefix("strongticket.").replace(".", "/") + ".py"
