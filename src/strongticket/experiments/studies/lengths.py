"""Sequences far beyond the paper's: the error of attention tickets up to 65,536 tokens, and language models whose
context grows at equal tokens.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from strongticket.builders import build_attention
from strongticket.experiments.chart import Chart, Curve, Print, plot
from strongticket.experiments.driver import Run
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row, column, select, spread
from strongticket.experiments.tasks.language import TINY, searches
from strongticket.nets import MultiHeadAttention, certify, initialise
from strongticket.report import Facts, Page, Section, Table, Text
from strongticket.searching import SearchConfig, preset

VERSION = code_version("seeds", "subset_sum", "theory", "nets", "builders", "experiments/studies/lengths.py")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
RADIUS = 1.0
METHODS = ("ticket", "dense")
_DIM, _KEY_DIM, _HEADS, _QUERIES = 8, 8, 2, 16  # of the target, and how many positions are looked at


@dataclass(frozen=True)
class Scale:
    """lengths: of attention's input; width: units per row of the source; sources: how many
    contexts: of the language models, each at `tokens` tokens a step; seeds: how many
    """

    lengths: tuple[int, ...]
    width: int
    sources: int
    contexts: tuple[int, ...]
    config: SearchConfig
    tokens: int
    seeds: int


_LAPTOP = preset(
    "laptop",
    method="edge-popup",
    law="signed",
    qk_scale="paper",
    dim=64,
    heads=4,
    steps=200,
    warmup=20,
    lr=3e-3,
)
SCALES = {
    "laptop": Scale(tuple(4**k for k in range(1, 9)), 16, 5, (64, 256, 1024), _LAPTOP, 1024, 3),
    "paper": Scale(
        tuple(2**k for k in range(2, 17)), 24, 100, (64, 128, 256, 512, 1024), preset("gpt2-mini", data="wikitext-103"),
        512 * 1024, 3,
    ),
    "test": Scale((4, 64), 6, 2, (8, 16), replace(TINY, dim=8), 32, 1),
}  # fmt: skip


@dataclass(frozen=True)
class LengthsStudy:
    """What was measured. errors: one row per source, length and arithmetic; losses: one per language model."""

    scale: Scale
    errors: list[Row]
    losses: list[Row]

    def error(self, arithmetic: str, length: int) -> Row:
        """Return the spread over sources of the largest error at one length."""
        return spread(column(select(self.errors, arithmetic=arithmetic, length=length), "error"))

    def bound(self, arithmetic: str) -> float:
        """Return the largest certificate of all sources."""
        return max(column(select(self.errors, arithmetic=arithmetic), "bound"))

    def growth(self, arithmetic: str) -> float:
        """Return the largest median error at any length over that of the shortest."""
        medians = [self.error(arithmetic, length)["median"] for length in self.scale.lengths]
        return max(medians) / medians[0]

    def broken(self) -> int:
        """Return how many errors exceed their certificate."""
        return sum(row["error"] > row["bound"] for row in self.errors)

    def loss(self, method: str, context: int) -> Row:
        """Return the spread over seeds of a language model's loss."""
        return spread(column(select(self.losses, method=method, context=context), "loss"))

    def gaps(self) -> dict[int, float]:
        """Return how far tickets are above dense training, by context."""
        return {
            context: self.loss("ticket", context)["mean"] - self.loss("dense", context)["mean"]
            for context in self.scale.contexts
        }

    def settings(self) -> dict[str, Any]:
        return asdict(self.scale)

    def numbers(self) -> dict[str, Any]:
        return {
            "growth": {name: self.growth(name) for name in DTYPES},
            "bound": {name: self.bound(name) for name in DTYPES},
            "errors_above_their_certificate": self.broken(),
            "gap_to_dense": {str(context): gap for context, gap in self.gaps().items()},
        }

    def tables(self) -> dict[str, list[Row]]:
        return {"errors.csv": self.errors, "losses.csv": self.losses}

    def headline(self) -> list[tuple[str, str]]:
        gaps = self.gaps()
        return [
            (
                "median error at any length over that of the shortest",
                f"{self.growth('float32'):.2f} (float32)",
            ),
            ("errors above their certificate", f"{self.broken()} of {len(self.errors)}"),
            ("tickets above dense, by context", ", ".join(f"{t}: {gap:.3f}" for t, gap in gaps.items())),
        ]


def measure(run: Run) -> LengthsStudy:
    """Build tickets of attention and measure them at every length; search and train at every context."""
    scale = SCALES[run.options.scale]
    points = [
        dict(study="lengths", seed=run.options.seed + source, width=scale.width, lengths=list(scale.lengths))
        for source in range(scale.sources)
    ]
    built = run.compute(f"attention up to {max(scale.lengths):,} tokens", compute, points, VERSION)
    errors = [dict(sorted(row.items())) for rows in built for row in rows]  # as stored points come back
    wanted = [
        (method, context, _language(scale, method, context, run.options.seed + seed))
        for seed in range(scale.seeds)
        for context in scale.contexts
        for method in METHODS
    ]
    found = searches(run, [config for *_, config in wanted])
    losses = [
        dict(method=method, context=context, seed=config.seed, **row)
        for (method, context, config), row in zip(wanted, found, strict=True)
    ]
    return LengthsStudy(scale, errors, losses)


def compute(settings: Settings) -> list[Row]:
    """Build one ticket and return its largest error at every length, in float32 and float64.

    The error is that of a few positions against the target in float64, over tokens of random directions on the
    sphere of radius 1; all tokens are attended to.
    """
    seed = settings["seed"]
    target = initialise(
        MultiHeadAttention(_DIM, _DIM, _HEADS, _KEY_DIM, _KEY_DIM), seed=seed, normalised=True
    )
    ticket = build_attention(target, width=settings["width"] * _DIM, seed=seed, radius=RADIUS)
    exact = target.double()
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for name, dtype in DTYPES.items():
        network = ticket.network(dtype=dtype)
        bound = certify(target, network, RADIUS).bound
        generator.manual_seed(seed)
        for length in settings["lengths"]:
            tokens = torch.randn(length, _DIM, generator=generator, dtype=torch.float64)
            tokens /= tokens.norm(dim=-1, keepdim=True).clamp(min=1e-12) / RADIUS
            tokens = tokens.float().double()  # the same input in both arithmetics
            asked = tokens[: min(length, _QUERIES)]
            with torch.no_grad():
                found = network(asked.to(dtype), tokens.to(dtype)).double()
                error = float((found - exact(asked, tokens)).norm(dim=-1).max())
            rows.append(
                {"arithmetic": name, "length": length, "source": seed, "error": error, "bound": bound}
            )
    return rows


def _language(scale: Scale, method: str, context: int, seed: int) -> SearchConfig:
    """The search or training at one context: every step sees the same number of tokens."""
    batch = max(1, scale.tokens // context)
    config = replace(scale.config, context=context, batch=batch, micro_batch=min(batch, 16), seed=seed)
    return replace(config, method="dense", qk_scale="1") if method == "dense" else config


def verdict(result: LengthsStudy) -> str:
    """Say in a sentence what was found."""
    gaps = list(result.gaps().values())
    return (
        f"The error of an attention ticket does not grow with the sequence: up to {max(result.scale.lengths):,} tokens "
        f"its median stays within {max(result.growth(name) for name in DTYPES):.2f} × that of "
        f"{result.scale.lengths[0]} tokens, and {result.broken()} of {len(result.errors)} errors exceed their "
        f"certificate. In language models at equal tokens the gap to dense training goes from {gaps[0]:.3f} nats at "
        f"context {result.scale.contexts[0]} to {gaps[-1]:.3f} at {result.scale.contexts[-1]}."
    )


def prints(result: LengthsStudy) -> tuple[Print, ...]:
    """Return the charts for print."""
    return (Print("lengths", _charts(result), "Attention error against length, and loss against context."),)


def page(result: LengthsStudy) -> Page:
    """Return the page."""
    errors, losses = _charts(result)
    rows = tuple(
        (f"{length:,}", *(f"{result.error(name, length)['median']:.3g}" for name in DTYPES))
        for length in result.scale.lengths
    )
    texts = tuple(
        (
            f"{context:,}",
            *(
                f"{result.loss(m, context)['mean']:.3f} ± {result.loss(m, context)['std']:.3f}"
                for m in METHODS
            ),
        )
        for context in result.scale.contexts
    )
    bounds = tuple((f"{result.bound(name):.3g}", f"largest certificate, {name}") for name in DTYPES)
    sections = (
        Section("In short", (Facts((*bounds, (str(result.broken()), "errors above their certificate"))),)),
        Section(
            "Attention",
            (
                plot(errors, "Largest error against length, with certificates.", source="errors.csv"),
                Table(("tokens", "median error, float32", "median error, float64"), rows),
            ),
        ),
        Section(
            "Language models at equal tokens",
            (
                plot(losses, "Loss against context for tickets and dense training.", source="losses.csv"),
                Table(("context", *METHODS), texts, f"{result.scale.seeds} seeds, mean ± deviation."),
            ),
        ),
        Section("What was measured", (Text(_method(result.scale)),)),
    )
    return Page("Lengths: sequences far beyond the paper's", verdict(result), sections)


def _method(scale: Scale) -> str:
    config = scale.config
    return (
        f"Attention: {scale.sources} random targets ({_HEADS} heads, width {_DIM}) and their tickets, "
        f"{scale.width} source units per row; tokens of random directions and length {RADIUS:g}; the largest error of "
        f"{_QUERIES} positions against the target in float64. Language: `{config.data}` text, {config.layers} blocks "
        f"of width {config.dim}, {config.steps:,} steps of {scale.tokens:,} tokens at every context."
    )


def _charts(result: LengthsStudy) -> tuple[Chart, Chart]:
    lengths, contexts = result.scale.lengths, result.scale.contexts
    curves = []
    for colour, name in enumerate(DTYPES, 1):
        spreads = [result.error(name, length) for length in lengths]
        edges = column(spreads, "low"), column(spreads, "high")
        curves.append(Curve(f"error, {name}", lengths, column(spreads, "median"), colour, band=edges))
        ends = (lengths[0], lengths[-1])
        curves.append(
            Curve(f"certificate, {name}", ends, (result.bound(name),) * 2, colour, "bound", marker="")
        )
    errors = Chart("attention", "tokens", "largest error", tuple(curves), log_x=True)
    trained = []
    for colour, method in enumerate(METHODS, 1):
        spreads = [result.loss(method, context) for context in contexts]
        trained.append(Curve(method, contexts, column(spreads, "mean"), colour))
    losses = Chart(
        "language models",
        "context",
        "validation loss",
        tuple(trained),
        log_x=True,
        log_y=False,
        x_ticks=contexts,
    )
    return errors, losses
