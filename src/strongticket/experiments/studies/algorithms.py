"""Can a ticket run an algorithm? Modular addition, balanced parentheses and a needle in a haystack, against training
the embeddings of a random transformer alone (Zhong and Andreas, NeurIPS 2024) and against dense training.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.experiments.driver import Run
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.algorithms import (
    Algorithm,
    algorithm_task,
    modular_addition,
    needle,
    parentheses,
)
from strongticket.experiments.tasks.language import point
from strongticket.experiments.tasks.tuning import at_an_end, cpu_seconds, tune_and_search
from strongticket.report import Facts, Page, Section, Table, Text
from strongticket.searching import SearchConfig, preset, search
from strongticket.searching.models import build_model

VERSION = code_version(
    "seeds", "data", "searching", "experiments/tasks/algorithms.py", "experiments/studies/algorithms.py"
)
METHODS: dict[str, dict[str, Any]] = {
    "ticket": {},
    "embeddings only": dict(method="random", kept=1.0, train="embedding,head"),
    "dense": dict(method="dense", qk_scale="1"),
}
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "laptop": {
        "modular addition": modular_addition(29),
        "parentheses": parentheses(20, 4000),
        "needle": needle(4, 8, 4000),
    },
    "paper": {
        "modular addition": modular_addition(199),
        "parentheses": parentheses(60, 100_000),
        "needle": needle(30, 60, 100_000),
    },
    "test": {"modular addition": modular_addition(7), "needle": needle(2, 3, 60)},
}


@dataclass(frozen=True)
class Scale:
    """config: of the ticket; rates: the learning rates that each case tries on the first seed; seeds: how many"""

    config: SearchConfig
    rates: tuple[float, ...]
    seeds: int


_LAPTOP = preset(
    "laptop", method="edge-popup", law="signed", qk_scale="paper", architecture="gpt2", activation="relu",
    dim=64, heads=2, layers=2, std=0.1, embedding_std=0.3, steps=600, warmup=30, batch=64, micro_batch=64,
)  # fmt: skip
SCALES = {
    "laptop": Scale(_LAPTOP, (2e-3, 8e-3), 2),
    "paper": Scale(
        replace(_LAPTOP, dim=1024, heads=4, steps=20_000, batch=1000, micro_batch=1000, std=0.02),
        (3e-4, 1e-3, 3e-3),
        5,
    ),
    "test": Scale(
        replace(_LAPTOP, dim=8, layers=1, steps=2, warmup=1, batch=8, micro_batch=8), (1e-3, 1e-2), 1
    ),
}


@dataclass(frozen=True)
class AlgorithmsStudy:
    """What was measured. tuning: one row per case and rate tried; rows: one per case and seed."""

    scale: Scale
    algorithms: dict[str, Algorithm]
    tuning: list[Row]
    rows: list[Row]

    def at(self, algorithm: str, method: str) -> Row:
        """Return the spread of the held-out accuracy of one case."""
        return spread(column(select(self.rows, algorithm=algorithm, method=method), "accuracy"))

    def mean(self, algorithm: str, method: str, name: str) -> float:
        """Return the mean over seeds of a column."""
        return float(spread(column(select(self.rows, algorithm=algorithm, method=method), name))["mean"])

    def settings(self) -> dict[str, Any]:
        return asdict(self.scale)

    def numbers(self) -> dict[str, Any]:
        return {
            algorithm: {"chance": found.chance} | {method: self.at(algorithm, method) for method in METHODS}
            for algorithm, found in self.algorithms.items()
        } | {"cpu_seconds": cpu_seconds(self.tuning, self.rows)}

    def tables(self) -> dict[str, list[Row]]:
        return {"accuracies.csv": self.rows, "tuning.csv": self.tuning}

    def headline(self) -> list[tuple[str, str]]:
        return [
            (algorithm, " · ".join(f"{m} {self.at(algorithm, m)['mean']:.1%}" for m in METHODS))
            for algorithm in self.algorithms
        ]


def measure(run: Run) -> AlgorithmsStudy:
    """Tune each case's learning rate on the first seed, then search or train with every seed."""
    scale, algorithms = SCALES[run.options.scale], ALGORITHMS[run.options.scale]
    cases = [
        (
            {"algorithm": algorithm, "method": method},
            replace(scale.config, data=algorithm, seed=run.options.seed, **changes),
        )
        for algorithm in algorithms
        for method, changes in METHODS.items()
    ]

    def searches(configs: Sequence[SearchConfig]) -> list[Row]:
        points = [{"study": "algorithms", "scale": run.options.scale, **point(config)} for config in configs]
        rows = run.compute(f"{len(configs)} searches and trainings", compute, points, VERSION)
        return [dict(sorted(row.items())) for row in rows]

    return AlgorithmsStudy(scale, algorithms, *tune_and_search(searches, cases, scale.rates, scale.seeds))


def compute(settings: Settings) -> Row:
    """Run one search or training and return its row.

    settings: of `point`, with the scale whose algorithm `data` names
    """
    start = time.process_time()
    config = SearchConfig(**settings["search"], cpu=True)
    task = algorithm_task(config.data, ALGORITHMS[settings["scale"]][config.data])
    model = build_model({
        "model_type": "gpt2", "vocab_size": task.sizes["vocabulary"], "n_positions": task.sizes["length"],
        "n_embd": config.dim, "n_layer": config.layers, "n_head": config.heads,
        "activation_function": config.activation, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "bos_token_id": None, "eos_token_id": None,
        "tie_word_embeddings": False,  # as in Zhong and Andreas, who train both ends
    })  # fmt: skip
    found = search(config, task=task, model=model)
    return {
        "loss": found.loss,
        "accuracy": found.measures["accuracy"],
        "trained_loss": found.curve[-1][1] if found.curve else None,
        "parameters": found.parameters,
        "file_bytes": found.file_bytes,
        "cpu_seconds": round(time.process_time() - start, 3),
    }


def verdict(result: AlgorithmsStudy) -> str:
    """Say in a sentence what a ticket can do."""
    parts = []
    for algorithm, found in result.algorithms.items():
        listed = ", ".join(f"{method} {result.at(algorithm, method)['mean']:.0%}" for method in METHODS)
        parts.append(f"{algorithm}: {listed} (a guess {found.chance:.0%})")
    return f"Held-out accuracy of {'; '.join(parts)}."


def prints(result: AlgorithmsStudy) -> tuple[Print, ...]:
    """Return the chart for print."""
    return (Print("algorithms", (_chart(result),), "Held-out accuracy of three algorithms by method."),)


def page(result: AlgorithmsStudy) -> Page:
    """Return the page."""
    rows = []
    for algorithm, found in result.algorithms.items():
        for method in METHODS:
            accuracy = result.at(algorithm, method)
            rows.append((
                algorithm,
                method,
                f"{accuracy['mean']:.1%} ± {accuracy['std']:.1%}",
                f"{found.chance:.1%}",
                f"{result.mean(algorithm, method, 'trained_loss'):.3f}",
                f"{result.mean(algorithm, method, 'loss'):.3f}",
                f"{result.mean(algorithm, method, 'file_bytes') / 1000:.1f}",
                f"{select(result.rows, algorithm=algorithm, method=method)[0]['rate']:g}",
            ))  # fmt: skip
    columns = (
        "algorithm",
        "method",
        "held-out accuracy",
        "guess",
        "training loss",
        "held-out loss",
        "kB",
        "rate",
    )
    ends = at_an_end(result.rows, result.scale.rates)
    caption = (
        f"{result.scale.seeds} seeds, mean ± deviation. Each case has the best of {len(result.scale.rates)} learning "
        f"rates on the first seed; in {ends} of {len(result.algorithms) * len(METHODS)} cases it is at an end of them."
    )
    facts = Facts(
        tuple((f"{result.at(name, 'ticket')['mean']:.0%}", f"{name}, ticket") for name in result.algorithms)
    )
    sections = (
        Section("In short", (facts,)),
        Section("Accuracy", (
            plot(_chart(result), "Held-out accuracy by algorithm and method.", source="accuracies.csv"),
            Table(columns, tuple(rows), caption),
        )),
        Section("What was measured", (Text(_method(result)),)),
    )  # fmt: skip
    return Page("Algorithms: what can a ticket compute?", verdict(result), sections)


def _method(result: AlgorithmsStudy) -> str:
    config = result.scale.config
    return (
        f"A GPT-2 of {config.layers} blocks, width {config.dim}, {config.heads} heads; {config.steps:,} steps of "
        f"{config.batch} sequences; a tenth of the sequences is held out. The ticket keeps {config.kept:.0%} of "
        f"{config.law} weights everywhere, embeddings included, and trains no number. Embeddings only trains tokens, "
        "positions and output of the same random network, none of whose weights are dropped. Dense trains all."
    )


def _chart(result: AlgorithmsStudy) -> Chart:
    curves = []
    for colour, method in enumerate(METHODS, 1):
        x = [index + 0.25 * (colour - 2) for index in range(len(result.algorithms))]
        y = [result.at(algorithm, method)["mean"] for algorithm in result.algorithms]
        curves.append(Curve(method, x, y, colour, marker=("o", "s", "^")[colour - 1], line=False))
    names = ", ".join(f"{number}: {name}" for number, name in enumerate(result.algorithms))
    guesses = [found.chance for found in result.algorithms.values()]
    curves.append(Curve("guess", range(len(guesses)), guesses, 6, marker="x", line=False))
    return Chart(
        "algorithms", names, "held-out accuracy", tuple(curves), log_y=False,
        x_ticks=tuple(range(len(guesses))), y_range=(0, 1.05), legend_columns=4,
    )  # fmt: skip
