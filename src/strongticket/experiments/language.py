"""What figures 7 and 8 share: one search for a ticket, or one dense training, as a point of the runner."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from strongticket.data.corpus import load_corpus
from strongticket.experiments.reproduce import Options, Step
from strongticket.experiments.runner import Settings, code_version
from strongticket.search import SearchConfig, preset, search

VERSION = code_version("seeds.py", "data", "search", "experiments/language.py")
# How a run is made, not what comes out: a point is the same whatever these are.
_BOUND = ("cache", "cpu", "redraw", "resume", "seeds")
# A network of a few thousand weights, for the tests.
TINY = preset("laptop", dim=16, heads=2, layers=1, context=32, batch=2, micro_batch=2, steps=4, warmup=1)


def searches(
    what: str, configs: Sequence[SearchConfig], options: Options, step: Step
) -> list[dict[str, Any]]:
    """One result a config, in their order. A run that was killed between checkpoints goes on from the last."""
    # At the paper's scale a run has an accelerator, or all cores, for itself.
    paper = options.scale == "paper"
    job = partial(compute, cache=str(options.out / "cache"), cpu=not paper)
    with step(what) as advance:
        return options.results(
            job, [point(config) for config in configs], VERSION, advance, threads=None if paper else 1
        )


def point(config: SearchConfig) -> Settings:
    """Both figures name an equal run equally, so it is made once."""
    plain = {name: value for name, value in asdict(config).items() if name not in _BOUND}
    # The built-in text is that of the running Python.
    return {"search": plain, "text": load_corpus("builtin").name if config.data == "builtin" else config.data}


def compute(settings: Settings, *, cache: str, cpu: bool) -> dict[str, Any]:
    """loss: the lowest seen on the validation text, as B.2 reports it; logit_std: before training.

    The time is the processor's: what a run costs does not depend on what else a machine is doing.
    """
    start = time.process_time()
    found = search(SearchConfig(**settings["search"], cache=cache, cpu=cpu, resume=True))
    return {
        "loss": found.best_loss,
        "logit_std": found.logit_std,
        "parameters": found.parameters,
        "nonzero": found.kept,
        "cpu_seconds": round(time.process_time() - start, 3),
    }


def head_size(config: SearchConfig) -> int:
    """n_K"""
    return config.dim // config.heads


def paper_scale(config: SearchConfig) -> float:
    """n_K^(1/4)"""
    return head_size(config) ** 0.25


def scale_text(scale: float) -> str:
    """A scale as a search's setting: rounding must not make two points of one.

    >>> scale_text(64**0.25) == scale_text(2**1.5)
    True
    """
    return f"{scale:.6g}"
