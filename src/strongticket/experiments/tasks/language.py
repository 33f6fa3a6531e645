"""What figures and studies of searches share: one search for a ticket, or one dense training, as a point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch

from strongticket.data.text import load_corpus
from strongticket.experiments.driver import Run
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row
from strongticket.experiments.tasks.accelerators import take_gpu, workers_for
from strongticket.searching import SearchConfig, preset, search

VERSION = code_version("seeds", "data", "searching", "experiments/tasks/language.py")
# How a run is made, not what comes out: a point is the same whatever these are.
_NOT_PART_OF_A_POINT = ("cache", "cpu", "redraw", "resume", "seeds")
# A network of a few thousand weights, for the tests.
TINY = preset(
    "paper-laptop", dim=16, heads=2, layers=1, context=32, batch=2, micro_batch=2, steps=4, warmup=1
)


def searches(run: Run, configs: Sequence[SearchConfig]) -> list[Row]:
    """Run every search and return its row, in order. A killed search continues from its last checkpoint.

    run: whose options say where and how to run
    configs: of the searches; those of method "dense" train all weights instead
    """
    # At the paper's scale a search has a GPU, or all cores, for itself.
    paper, gpus = run.options.scale == "paper", 0
    if paper and run.options.cluster is None:
        gpus = torch.cuda.device_count()
        run = replace(run, options=replace(run.options, workers=workers_for(run.options.workers, gpus)))
    function = partial(compute, cache=str(run.options.out / "cache"), cpu=not paper, gpus=gpus)
    rows = run.compute(
        f"{len(configs)} searches and trainings",
        function,
        [point(config) for config in configs],
        VERSION,
        threads=None if paper else 1,
    )
    return [dict(sorted(row.items())) for row in rows]  # the order in which a stored point comes back


def point(config: SearchConfig) -> Settings:
    """Return the settings of a search. Equal searches of both figures have equal settings, so each is run once."""
    plain = {name: value for name, value in asdict(config).items() if name not in _NOT_PART_OF_A_POINT}
    # The built-in text is that of the running Python.
    text = (
        load_corpus("builtin").name if (config.data, config.task) == ("builtin", "language") else config.data
    )
    return {"search": plain, "text": text}


def compute(settings: Settings, *, cache: str, cpu: bool, gpus: int = 0) -> Row:
    """Run one search and return its row: the lowest validation loss seen, as B.2 reports it; the standard
    deviation of the logits before training; and the processor time, which does not depend on what else the
    machine is doing.

    settings: of `point`
    cache: folder of prepared data and checkpoints
    cpu: do not use an accelerator
    gpus: of which this process takes one for itself; 0 or 1 leaves the choice to torch
    """
    take_gpu(Path(cache), gpus)
    start = time.process_time()
    found = search(SearchConfig(**settings["search"], cache=cache, cpu=cpu, resume=True))
    return {
        "loss": found.best_loss,
        "logit_std": found.logit_std,
        "parameters": found.parameters,
        "nonzero": found.kept,
        **found.measures,
        "file_bytes": found.file_bytes,
        "cpu_seconds": round(time.process_time() - start, 3),
    }


def head_size(config: SearchConfig) -> int:
    """Return n_K."""
    return config.dim // config.heads


def paper_scale(config: SearchConfig) -> float:
    """Return n_K^(1/4)."""
    return head_size(config) ** 0.25


def scale_text(scale: float) -> str:
    """Write a scale as a search's setting: rounding must not make two points of one.

    >>> scale_text(64**0.25) == scale_text(2**1.5)
    True
    """
    return f"{scale:.6g}"
