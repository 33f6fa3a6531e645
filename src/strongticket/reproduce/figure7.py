"""Figure 7: loss against non-zero parameters, of tickets with and without query and key scaling and of training.

Dense training starts from the same draw, without the scale, and trains everything, biases and norms too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strongticket.reproduce.plots import COLOURS, Axes, curve, label, within
from strongticket.reproduce.rows import Row, select, spread_by
from strongticket.reproduce.searches import cpu_seconds, head_size, paper_scale, scaled, searches
from strongticket.reproduce.study import Answer, Run, Study, Tables
from strongticket.searching import SearchConfig, preset

# Method -> its scale of queries and keys.
METHODS: dict[str, Callable[[SearchConfig], float | None]] = {
    "without scaling": lambda config: 1.0,
    "with scaling": paper_scale,
    "dense training": lambda config: None,
}


@dataclass(frozen=True)
class Figure7:
    """What is searched and trained."""

    sizes: dict[str, SearchConfig]  # name of the network -> its search
    seeds: int = 3


def measure(run: Run, settings: Figure7) -> Tables:
    """Search and train networks of every size."""
    cases = []
    for seed in run.seeds(settings.seeds):
        for size, base in settings.sizes.items():
            for method, scale in METHODS.items():
                shape = dict(dim=base.model.dim, layers=base.model.layers, head_size=head_size(base))
                columns = dict(size=size, method=method, **shape, seed=seed)
                cases.append((columns, scaled(base, scale(base), seed)))
    rows = searches(run, cases)
    by = ("size", "method", "parameters", "nonzero")
    spreads = spread_by(rows, by, "loss")
    return {
        "losses": rows,
        "spreads": [{name: row[name] for name in (*by, "mean", "std")} for row in spreads],
    }


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
    },
    measure,
    answer,
    plot,
)
