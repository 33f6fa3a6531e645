"""Six initialisations with and without scaled queries and keys, for text and images, each with a learning rate of
its own; then which property predicts the loss: the law of the weights, their variance or the attention logits.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from strongticket.experiments.driver import Run
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.explained import predicted_share
from strongticket.experiments.tasks.language import searches
from strongticket.experiments.tasks.tuning import cpu_seconds, tune_and_search
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


@dataclass(frozen=True)
class Scale:
    """What is searched.

    data: name -> the search; law, init, scale of queries and keys, learning rate and seed are set for each case
    rates: the learning rates that each case tries on the first seed
    """

    data: dict[str, SearchConfig]
    initialisations: tuple[str, ...]
    scalings: tuple[str, ...]
    rates: tuple[float, ...]
    seeds: int


_SHARED: dict[str, Any] = dict(
    layers=1,
    kept=0.3,
    method="edge-popup",
    scope="tensor",
    activation="relu",
    steps=300,
    warmup=30,
    init="gpt2",
    std=0.08,
    embedding_std=0.3,
)
_TEXT = preset("paper-laptop", dim=64, heads=4, context=32, **_SHARED)
_IMAGES = preset("images", dim=32, heads=2, batch=32, micro_batch=32, **_SHARED)
_QUICK: dict[str, Any] = dict(dim=8, heads=2, steps=2, warmup=1)
_RATES = (2e-3, 6e-3, 1.8e-2)
SCALES = {
    "laptop": Scale(
        {"text": _TEXT, "images": _IMAGES}, tuple(INITIALISATIONS), tuple(SCALINGS), _RATES, 3
    ),
    "paper": Scale(
        {
            "text": preset("gpt2-mini"),
            "images": replace(
                _IMAGES, dim=192, heads=3, layers=12, batch=256, micro_batch=256, steps=20_000, std=0.02
            ),
        },
        tuple(INITIALISATIONS),
        tuple(SCALINGS),
        (1e-4, 3e-4, 1e-3),
        3,
    ),
    "test": Scale(
        {"images": replace(_IMAGES, patch=4, batch=8, micro_batch=8, **_QUICK)},
        ("normal", "Kaiming"),
        ("1", "calibrated"),
        (1e-3, 1e-2),
        1,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class InitialisationsStudy:
    """What was measured. tuning: one row per case and rate tried; rows: one per case and seed."""

    scale: Scale
    tuning: list[Row]
    rows: list[Row]

    def case(self, data: str, name: str, scaling: str) -> Row:
        """Return the spread of one case's loss, with its properties."""
        group = select(self.rows, data=data, initialisation=name, scaling=scaling)
        config = configured(self.scale, data, name, scaling)
        return spread(column(group, "loss")) | {
            "law": config.law,
            "std_of_weights": weight_std(config),
            "logit_std": spread(column(group, "logit_std"))["mean"],
            "rate": group[0]["rate"],
        }

    def cases(self, data: str) -> list[Row]:
        """Return every case of one kind of data."""
        return [
            {"data": data, "initialisation": name, "scaling": scaling} | self.case(data, name, scaling)
            for name in self.scale.initialisations
            for scaling in self.scale.scalings
        ]

    def predictors(self, data: str) -> dict[str, tuple[float, float, float]]:
        """Return for each property the share of the losses' variance that it predicts, with its 95 % interval.

        Law and variance together are the initialisation; what all three predict beyond them is what the logits decide
        within an initialisation.
        """
        cases = self.cases(data)
        losses = column(cases, "mean")
        law = [[float(case["law"] == each) for each in LAWS[1:]] for case in cases]
        variance = [_valley(case["std_of_weights"]) for case in cases]
        logits = [_valley(case["logit_std"]) for case in cases]
        wanted = {
            "law": law,
            "variance": variance,
            "logits": logits,
            "law and variance": _joined(law, variance),
            "all three": _joined(law, variance, logits),
        }
        return {name: predicted_share(features, losses) for name, features in wanted.items()}

    def ranges(self, data: str) -> dict[str, float]:
        """Return for each scaling how far the best and the worst initialisation are apart."""
        found = {}
        for scaling in self.scale.scalings:
            means = [self.case(data, name, scaling)["mean"] for name in self.scale.initialisations]
            found[scaling] = max(means) - min(means)
        return found

    def seed_std(self, data: str) -> float:
        """Return the standard deviation between seeds, pooled over all cases."""
        stds = column(self.cases(data), "std")
        return math.sqrt(sum(std**2 for std in stds) / len(stds))

    def best(self, data: str) -> Row:
        """Return the case of the lowest mean loss."""
        return min(self.cases(data), key=lambda case: case["mean"])

    def settings(self) -> dict[str, Any]:
        return asdict(self.scale)

    def numbers(self) -> dict[str, Any]:
        return {
            data: {
                "predicted_share": self.predictors(data),
                "range_over_initialisations": self.ranges(data),
                "seed_std": self.seed_std(data),
                "best": self.best(data),
            }
            for data in self.scale.data
        } | {"cpu_seconds": cpu_seconds(self.tuning, self.rows)}

    def tables(self) -> dict[str, list[Row]]:
        shares = [
            {"data": data, "property": name, "share": share, "low": low, "high": high}
            for data in self.scale.data
            for name, (share, low, high) in self.predictors(data).items()
        ]
        cases = [case for data in self.scale.data for case in self.cases(data)]
        return {
            "losses.csv": self.rows,
            "cases.csv": cases,
            "tuning.csv": self.tuning,
            "properties.csv": shares,
        }

    def headline(self) -> list[tuple[str, str]]:
        return [
            (f"{data}: variance predicted by", ", ".join(f"{name} {found[name][0]:.0%}" for name in PROPERTIES))
            for data in self.scale.data
            for found in [self.predictors(data)]
        ]  # fmt: skip


def measure(run: Run) -> InitialisationsStudy:
    """Tune each case's learning rate on the first seed, then search with every seed."""
    scale = SCALES[run.options.scale]
    cases = [
        (
            {"data": data, "initialisation": name, "scaling": scaling},
            replace(configured(scale, data, name, scaling), seed=run.options.seed),
        )
        for data in scale.data
        for name in scale.initialisations
        for scaling in scale.scalings
    ]

    def rows(configs: Any) -> list[Row]:
        return [{name: row.get(name) for name in _COLUMNS} for row in searches(run, configs)]

    return InitialisationsStudy(scale, *tune_and_search(rows, cases, scale.rates, scale.seeds))


_COLUMNS = ("loss", "accuracy", "logit_std", "cpu_seconds")


def configured(scale: Scale, data: str, name: str, scaling: str) -> SearchConfig:
    """Return the search of one case, except for its learning rate and seed."""
    return replace(scale.data[data], qk_scale=scaling, **INITIALISATIONS[name])


def weight_std(config: SearchConfig) -> float:
    """Return the standard deviation of a square matrix's weights."""
    law = Scheme(config.init, config.std, law="normal").linear(config.dim, config.dim)
    return law.scale


def _valley(value: float) -> list[float]:
    """The features of a loss that may have a minimum: the logarithm and its square."""
    return [math.log(value), math.log(value) ** 2]


def _joined(*properties: list[list[float]]) -> list[list[float]]:
    """The features of several properties, side by side."""
    return [[value for features in row for value in features] for row in zip(*properties, strict=True)]
