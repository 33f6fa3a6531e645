"""Figure 7: loss against non-zero parameters, of tickets with and without query and key scaling and of training.

Dense training starts from the same draw, without the scale, and trains everything, biases and norms too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strongticket.reproduce.plots import COLOURS, Axes, curve, label, within
from strongticket.reproduce.rows import Row, groups, select, spread
from strongticket.reproduce.searches import (
    TINY,
    cpu_seconds,
    head_size,
    paper_scale,
    rounded_scale,
    searches,
)
from strongticket.reproduce.study import Answer, Run, Study, Tables, nth_seed
from strongticket.searching import SearchConfig, preset

METHODS = ("without scaling", "with scaling", "dense training")


@dataclass(frozen=True)
class Figure7:
    """What is searched and trained."""

    sizes: dict[str, SearchConfig]  # name of the network -> its search
    seeds: int = 3


def measure(run: Run, settings: Figure7) -> Tables:
    """Search and train networks of every size."""
    cases = []
    for number in range(settings.seeds):
        for size, base in settings.sizes.items():
            for method in METHODS:
                config = configure(base, method, nth_seed(run.seed, number))
                columns = dict(
                    size=size,
                    method=method,
                    dim=config.model.dim,
                    layers=config.model.layers,
                    head_size=head_size(config),
                    seed=config.seed,
                )
                cases.append((columns, config))
    rows = searches(run, cases)
    return {"losses": rows, "spreads": _spreads(rows)}


def configure(config: SearchConfig, method: str, seed: int) -> SearchConfig:
    """Return the search of one size, method and seed."""
    if method == "dense training":
        return config.changed(method="dense", qk_scale=1.0, seed=seed)
    scale = paper_scale(config) if method == "with scaling" else 1.0
    return config.changed(qk_scale=rounded_scale(scale), seed=seed)


def _spreads(rows: list[Row]) -> list[Row]:
    found = []
    for keys, group in groups(rows, ("size", "method")):
        losses = spread([row["loss"] for row in group])
        counts = {name: group[0][name] for name in ("parameters", "nonzero")}
        found.append({**keys, **counts, "mean": losses["mean"], "std": losses["std"]})
    return found


def answer(tables: Tables, settings: Figure7) -> Answer:
    """Compare the losses with and without scaling, and with dense training."""
    by_method = [select(tables["spreads"], method=method) for method in METHODS]
    gains = [_gain(*spreads) for spreads in zip(*by_method, strict=True)]
    shares = [gain["of_the_way_to_dense"] for gain in gains]
    lower = ", ".join(f"{gain['gain']:.3f} ({gain['size']})" for gain in gains)
    worse = [gain["size"] for gain in gains if gain["gain"] <= 0]
    where = f"Not at {', '.join(worse)}" if worse else "Yes, at every size"
    sentence = (
        f"{where}: scaling lowers the loss by {lower}, "
        f"{min(shares):.0%} to {max(shares):.0%} of the way to dense training."
    )
    numbers = {
        "loss": {
            method: [row["mean"] for row in rows] for method, rows in zip(METHODS, by_method, strict=True)
        },
        "gains": gains,
        "cpu_seconds": cpu_seconds(tables["losses"]),
    }
    return Answer(sentence, numbers, tables["spreads"])


def _gain(without: Row, scaled: Row, dense: Row) -> Row:
    """How much scaling lowers the loss, and how far that is on the way to dense training."""
    gain = without["mean"] - scaled["mean"]
    std = max(without["std"], scaled["std"])
    return {
        "size": without["size"],
        "gain": gain,
        "in_stds": gain / std if std > 0 else None,
        "of_the_way_to_dense": gain / (without["mean"] - dense["mean"]),
    }


def plot(tables: Tables, settings: Figure7, axes: Sequence[Axes]) -> None:
    """Draw the loss against the non-zero parameters."""
    looks = zip(METHODS, (COLOURS[1], COLOURS[0], COLOURS[5]), "so^", strict=True)
    for method, colour, marker in looks:
        rows = select(tables["spreads"], method=method)
        curve(axes[0], rows, "nonzero", "mean", band="std", color=colour, marker=marker, label=method)
    title = f"tickets of {', '.join(settings.sizes)}, and training"
    counts = [row["nonzero"] for row in tables["spreads"]]
    ticks = [first * 10**power for power in range(12) for first in (1, 2, 5)]
    label(axes[0], title, "non-zero parameters", "validation loss", log="x", ticks=within(counts, ticks, 1))


# n_K is 64 in laptop and paper sizes, as in the paper; the middle one of "laptop" is Figure 8's network.
STUDY = Study(
    "Does scaling queries and keys by n_K^¼ give better tickets?",
    {
        "quick": Figure7(
            {f"d = {d}": preset("paper-laptop", dim=d, heads=d // 64, steps=400) for d in (64, 128)}, 1
        ),
        "laptop": Figure7({f"d = {d}": preset("paper-laptop", dim=d, heads=d // 64) for d in (64, 128, 192)}),
        "paper": Figure7({name: preset(name) for name in ("gpt2-mini", "gpt2", "gpt2-medium")}),
        # for the tests: seconds, and no numbers to quote
        "test": Figure7({f"d = {d}": TINY.changed(dim=d, heads=d // 8) for d in (8, 16)}, 1),
    },
    measure,
    answer,
    plot,
)
