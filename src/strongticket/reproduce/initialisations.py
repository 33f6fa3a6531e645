"""Which property predicts the loss: the law of the weights, their variance or the attention logits?

Six initialisations with and without scaled queries and keys, for text and images, each with a learning rate of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from strongticket.files import JsonObject
from strongticket.reproduce.plots import Axes, curve, label
from strongticket.reproduce.rows import Row, groups, select, spread
from strongticket.reproduce.searches import cpu_seconds, tuned
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.reproduce.valley import LOGITS
from strongticket.searching import Scheme, SearchConfig, preset

# Kaiming and Xavier say which standard deviation a tensor has; the others share one and differ in their law.
INITIALISATIONS: dict[str, dict[str, Any]] = {
    "normal": dict(law="normal"),
    "uniform": dict(law="uniform"),
    "Kaiming": dict(law="normal", init="kaiming-normal"),
    "Xavier": dict(law="uniform", init="xavier-uniform"),
    "orthogonal": dict(law="hadamard"),
    "signed constant": dict(law="signed"),
}
SCALINGS = {"1": "unscaled", "paper": "n_K^¼", "calibrated": "logits' std 0.7"}
LAWS = ("normal", "uniform", "hadamard", "signed")
PROPERTIES = ("law", "variance", "logits")
_CASE = ("data", "initialisation", "scaling")
_DRAWS = 2000


@dataclass(frozen=True)
class Initialisations:
    """What is searched."""

    data: dict[str, SearchConfig]  # name -> the search; each case sets law, init, qk_scale, lr and seed
    initialisations: tuple[str, ...]
    scalings: tuple[str, ...]
    rates: tuple[float, ...]  # learning rates that each case tries on the first seed
    seeds: int


def measure(run: Run, settings: Initialisations) -> Tables:
    """Tune each case's learning rate on the first seed, then search with every seed."""
    cases = [
        (dict(zip(_CASE, case, strict=True)), configured(settings, *case))
        for case in product(settings.data, settings.initialisations, settings.scalings)
    ]
    tuning, losses = tuned(run, cases, settings.rates, settings.seeds)
    found = _cases(losses, settings)
    properties = [
        {"data": data} | row for data in settings.data for row in predictors(select(found, data=data))
    ]
    return {"losses": losses, "cases": found, "tuning": tuning, "properties": properties}


def configured(settings: Initialisations, data: str, name: str, scaling: str) -> SearchConfig:
    """Return the search of one case, except for its learning rate and seed."""
    scale = 1.0 if scaling == "1" else scaling
    return settings.data[data].changed(qk_scale=scale, **INITIALISATIONS[name])


def weight_std(config: SearchConfig) -> float:
    """Return the standard deviation of a square matrix's weights."""
    scheme, dim = Scheme(config.source.init, config.source.std, law="normal"), config.model.dim
    return scheme.linear(dim, dim).scale


def _cases(losses: list[Row], settings: Initialisations) -> list[Row]:
    """The spread of each case's loss over the seeds, with its properties."""
    found = []
    for keys, group in groups(losses, _CASE):
        config = configured(settings, *keys.values())
        logits = spread([row["logit_std"] for row in group])["mean"]
        found.append(
            keys
            | spread([row["loss"] for row in group])
            | dict(law=config.source.law, std_of_weights=weight_std(config), logit_std=logits)
            | dict(rate=group[0]["rate"])
        )
    return found


def predictors(cases: Sequence[Row]) -> list[Row]:
    """Return for each property what share of the losses' variance it predicts, from low to high its 95 % interval.

    Law and variance together are the initialisation; what all three predict beyond them is what the logits decide
    within an initialisation.
    """
    law = [[float(case["law"] == each) for each in LAWS[1:]] for case in cases]
    variance = [_valley(case["std_of_weights"]) for case in cases]
    logits = [_valley(case["logit_std"]) for case in cases]
    wanted = {
        "law": law,
        "variance": variance,
        "logits": logits,
        "law and variance": np.hstack([law, variance]),
        "all three": np.hstack([law, variance, logits]),
    }
    losses = [case["mean"] for case in cases]
    return [{"property": name} | predicted_share(features, losses) for name, features in wanted.items()]


def _valley(value: float) -> list[float]:
    """The features of a loss that may have a minimum: the logarithm and its square."""
    return [math.log(value), math.log(value) ** 2]


def predicted_share(features: Any, values: Sequence[float]) -> Row:
    """Return what share of the variance a linear fit predicts, and its 95 % interval over cases.

    Each case is predicted by the fit to all others: 1 − Σ(value − predicted)² / Σ(value − mean of the others)².
    1 is perfect, 0 is as good as the mean, below 0 worse. The interval is from drawing cases with replacement.

    Args:
        features: (cases, properties); a constant is added.
        values: one per case, at least three.

    >>> predicted_share([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0])["share"]
    1.0
    """
    y = np.asarray(values, dtype=np.float64)
    x = np.column_stack([np.ones(len(y)), features])
    errors, deviations = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        fit, *_ = np.linalg.lstsq(x[others], y[others], rcond=None)
        errors[i] = (y[i] - x[i] @ fit) ** 2
        deviations[i] = (y[i] - y[others].mean()) ** 2
    draws = np.random.default_rng(0).integers(len(y), size=(_DRAWS, len(y)))
    tiny = np.finfo(np.float64).tiny
    totals = np.maximum(deviations[draws].sum(axis=1), tiny)
    low, high = np.quantile(1 - errors[draws].sum(axis=1) / totals, (0.025, 0.975))
    share = round(1 - float(errors.sum()) / max(float(deviations.sum()), tiny), 12)
    return dict(share=share, low=float(low), high=float(high))


def answer(tables: Tables, settings: Initialisations) -> Answer:
    """Say for each kind of data which property predicts the loss."""
    sentences = []
    numbers: JsonObject = {}
    for data in settings.data:
        cases = select(tables["cases"], data=data)
        shares = {
            row["property"]: [row[name] for name in ("share", "low", "high")]
            for row in select(tables["properties"], data=data)
        }
        ranges = {
            keys["scaling"]: float(np.ptp([case["mean"] for case in group]))
            for keys, group in groups(cases, ("scaling",))
        }
        sentences.append(_sentence(data, shares, ranges))
        numbers[data] = {
            "predicted_share": shares,
            "range_over_initialisations": ranges,
            "seed_std": math.sqrt(sum(case["std"] ** 2 for case in cases) / len(cases)),
            "best": min(cases, key=lambda case: case["mean"]),
        }
    # Where the best rate is the lowest or the highest tried, it may lie beyond.
    ends = min(settings.rates), max(settings.rates)
    numbers["rates_at_an_end"] = sum(case["rate"] in ends for case in tables["cases"])
    numbers["cpu_seconds"] = cpu_seconds(tables["losses"], tables["tuning"])
    return Answer(" ".join(sentences), numbers, tables["cases"])


def _sentence(data: str, shares: dict[str, list[float]], ranges: dict[str, float]) -> str:
    order = sorted(PROPERTIES, key=lambda name: -shares[name][0])
    listed = ", ".join("{} {:.0%} ({:.0%} to {:.0%})".format(name, *shares[name]) for name in order)
    first, *_, last = ranges
    return (
        f"For {data} the best single predictor of the loss is the {order[0]}; share of the variance predicted on "
        f"left-out cases: {listed}. The initialisations are {ranges[first]:.3f} apart {SCALINGS[first]} and "
        f"{ranges[last]:.3f} with {SCALINGS[last]}."
    )


def plot(tables: Tables, settings: Initialisations, axes: Sequence[Axes]) -> None:
    """Draw the loss against the logits' deviation, a panel per kind of data and a line per initialisation."""
    for axis, data in zip(axes, settings.data, strict=False):
        for marker, name in zip("os^Dv*", settings.initialisations, strict=False):
            rows = sorted(
                select(tables["cases"], data=data, initialisation=name), key=lambda row: row["logit_std"]
            )
            curve(axis, rows, "logit_std", "mean", band="std", marker=marker, label=name)
        label(axis, data, LOGITS, "validation loss", log="x", ticks=(0.1, 0.3, 1), below=3)


_SHARED: dict[str, Any] = dict(
    layers=1, kept=0.3, method="edge-popup", scope="tensor", activation="relu", steps=300, warmup=30,
    init="gpt2", std=0.08, embedding_std=0.3,
)  # fmt: skip
_TEXT = preset("paper-laptop", dim=64, heads=4, context=32, **_SHARED)
IMAGES = preset("images", dim=32, heads=2, batch=32, micro_batch=32, **_SHARED)
_LARGE_IMAGES = IMAGES.changed(
    dim=192, heads=3, layers=12, batch=256, micro_batch=256, steps=20_000, std=0.02
)
_LAPTOP = Initialisations(
    {"text": _TEXT, "images": IMAGES}, tuple(INITIALISATIONS), tuple(SCALINGS), (2e-3, 6e-3, 1.8e-2), seeds=3
)
_PAPER_DATA = {"text": preset("gpt2-mini"), "images": _LARGE_IMAGES}
STUDY = Study(
    "Which property of the random weights decides the loss?",
    {
        "quick": replace(
            _LAPTOP,
            data={name: config.changed(steps=60, warmup=6) for name, config in _LAPTOP.data.items()},
            scalings=("1", "calibrated"),
            rates=(1.8e-2,),
            seeds=1,
        ),
        "laptop": _LAPTOP,
        "paper": replace(_LAPTOP, data=_PAPER_DATA, rates=(1e-4, 3e-4, 1e-3)),
    },
    measure,
    answer,
    plot,
    panels=2,
)
