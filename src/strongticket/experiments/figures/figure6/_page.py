"""Charts and report page for Figure 6."""

from __future__ import annotations

import math

import numpy as np

from strongticket import theory
from strongticket.experiments.chart import Chart, Curve, Print, plot, spread_curve
from strongticket.experiments.figures.figure6._measure import (
    BLOCKS,
    OURS,
    OUTLIER,
    PAPER,
    PRINTED,
    Figure6,
    Line,
)
from strongticket.experiments.spread import column, select
from strongticket.report import Cell, Facts, Page, PageBlock, Section, Table, Text, number

ALPHA = math.sqrt(2)  # the smallest radius that the theorems allow: α ≥ √d₁
EPSILON = 0.1  # the error whose width is compared
NAMES = {OURS: "ours", PAPER: "paper's assignment, solved exactly", PRINTED: "ours, target not normalised"}


def prints(result: Figure6) -> tuple[Print, ...]:
    """Return the charts for print."""
    alt = (
        "Three charts: error against width for one to six blocks, twice, and how the error grows with blocks."
    )
    return (Print("figure6", (_decay(result, OURS), _decay(result, PAPER), _growth(result)), alt),)


def page(result: Figure6) -> Page:
    """Return the page."""
    ours = result.shared[OURS.name]
    lead = (
        "Whole transformers, without normalisation layers, from pruned random ones. The more blocks, the larger "
        "the error. The paper says that only the factor γ before e^(−δn) grows with them. Fitted this way, with "
        f"the δ = {ours[0].delta:.3g} of one block, γ grows {number(ours[-1].gamma / ours[0].gamma)} times from "
        f"one block to {BLOCKS}, and R² is at least {min(fit.r2 for fit in ours):.2f}. Theorem 14, which must "
        f"hold for any target, allows for {number(math.exp(amplification(BLOCKS)))} times."
    )
    sections = (
        Section("In short", (_facts(result),)),
        Section("The error against the width", _plots(result)),
        Section("The fits", _fits(result)),
        Section("Sources that fail", (_failures(result),)),
        Section("Against Theorem 14", _theorem(result)),
        Section("The target as printed", _as_printed(result)),
        Section("What was measured", (_method(),)),
    )
    return Page("Figure 6: errors add up over blocks, and still fall exponentially", lead, sections)


def amplification(blocks: int) -> float:
    """Return log of 2^(B−1)·Π_{j=2..B} 16H√d₁β_j²: how much Theorem 14 lets the first block's error grow.

    blocks: B
    """
    radii = (theory.lemmas.block_radius_log(j, ALPHA, 1, 2) for j in range(2, blocks + 1))
    return sum(math.log(2) + math.log(16 * math.sqrt(2)) + 2 * radius for radius in radii)


def _facts(result: Figure6) -> Facts:
    ours = result.shared[OURS.name]
    return Facts(
        (
            (f"{ours[0].delta:.3f}", "δ of one block, used for all"),
            (f"{min(fit.r2 for fit in ours):.3f}", "R² of the log fits with that δ, at least"),
            (number(ours[-1].gamma / ours[0].gamma), f"γ of {BLOCKS} blocks over γ of one"),
        )
    )


def _plots(result: Figure6) -> tuple[PageBlock, ...]:
    caption = (
        f"The largest error over {result.scale.sequences:,} test sequences and all positions: median over "
        f"{result.scale.sources} random sources. Dashed: γ_B·e^(−δn) with the δ of one block, as the paper "
        "fits."
    )
    return tuple(
        plot(
            _decay(result, line),
            f"{NAMES[line]}: six lines, level at small widths and then falling, more blocks above fewer.",
            caption,
            source="spreads.csv",
        )
        for line in (OURS, PAPER)
    )


def _fits(result: Figure6) -> tuple[PageBlock, ...]:
    rows: list[tuple[Cell, ...]] = []
    for line in (OURS, PAPER):
        for b in range(BLOCKS):
            shared, own = result.shared[line.name][b], result.own[line.name][b]
            rows.append((NAMES[line], b + 1, shared.gamma, shared.delta, shared.r2, own.delta, own.r2))
    return (
        Text(
            "A linear map needs a positive and a negative subset sum for each of its two inputs, so four rows "
            "share the n hidden units of the feed-forward network where two share those of attention. The best "
            "to hope for is therefore δ = ln 2 / 4 ≈ 0.173 for wide sources, half of Figure 4's. Narrow sources "
            "lie on a plateau: with two or three products per sum, no subset comes near, and the error is of "
            "the size of the output. The more blocks, the longer the plateau, which is why the curves fitted "
            "with one δ are too steep on the left. All widths are in the fits; R² says how good they are."
        ),
        Table(
            ("assignment", "blocks", "γ", "shared δ", "R²", "own δ", "R² with it"),
            tuple(rows),
            "Least squares on log ε of the medians; R² is that of log ε.",
        ),
    )


def _failures(result: Figure6) -> Table:
    found = result.failures()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            NAMES[line],
            blocks,
            *(
                f"{row['share']:.0%} ({row['share_low']:.0%} to {row['share_high']:.0%})"
                for row in select(found, line=line.name, blocks=blocks)
            ),
        )
        for line in (OURS, PAPER, PRINTED)
        for blocks in (1, BLOCKS)
    )
    return Table(
        ("line", "blocks", *(f"n = {n}" for n in result.scale.widths)),
        rows,
        f"Share of the {result.scale.sources} sources with an error above {OUTLIER} times the median, and its "
        "95 % interval (Clopper and Pearson): an entry out of reach, or attention that chose another point.",
    )


def _theorem(result: Figure6) -> tuple[PageBlock, ...]:
    constant = theory.measured_constant("relu", "norm")
    fits = result.shared[OURS.name]
    rows: list[tuple[Cell, ...]] = []
    for b in range(BLOCKS):
        layers = theory.transformer_widths(EPSILON, 2, 1, ALPHA, 1, b + 1, constant=constant)
        widest = max(max(layer.n_MHA.n, layer.n_FC.n) for layer in layers)
        needed = math.log(fits[b].gamma / EPSILON) / fits[b].delta
        bound = result.of(OURS, b + 1, "bound")[-1]
        # Of the certified sources alone: medians of different sources would not compare.
        errors = column(result.certified(OURS, b + 1, bound["n"]), "error_max")
        rows.append(
            (
                b + 1,
                fits[b].gamma / fits[0].gamma,
                math.exp(amplification(b + 1)),
                max(1, round(needed)),
                widest,
                float(np.median(errors)),
                bound["median"],
            )
        )
    n = result.of(OURS, 1)[-1]["n"]
    return (
        Text(
            "Theorem 14 bounds what the worst target could do with the error of its first block: each block may "
            "multiply it by 32·√2·β², and β, the size of what flows through the network, may grow by 4·√2 per "
            "block. Real blocks do nothing of the kind. The widths it asks for follow: they are computed here "
            f"with C = {number(constant)}, measured for this solver (`strongticket plan` explains more). Our "
            "certificate follows the true weights block by block and is much closer, but it too must allow for "
            "inputs that make every block's error point the same way."
        ),
        plot(
            _growth(result),
            "The measured factor grows a little with the number of blocks, the theorem's by powers of ten.",
            "How much larger the error is than with one block: measured γ_B / γ_1, and what Theorem 14 allows.",
            source="spreads.csv",
        ),
        Table(
            (
                "blocks",
                "γ_B / γ_1",
                "Theorem 14's factor",
                f"n for ε = {EPSILON:g}, from the fit",
                "n that Theorem 14 asks for",
                f"error at n = {n}",
                "certificate there",
            ),
            tuple(rows),
            f"The last two columns are medians over the {result.scale.certified} sources that were certified.",
        ),
    )


def _as_printed(result: Figure6) -> tuple[PageBlock, ...]:
    widths = column(result.of(PRINTED, 1), "n")
    rows = tuple(
        (
            b,
            *column(result.of(PRINTED, b), "median"),
            result.own[PRINTED.name][b - 1].delta,
            result.shared[PRINTED.name][b - 1].r2,
        )
        for b in range(1, BLOCKS + 1)
    )
    return (
        Text(
            "The theorems assume matrices of spectral norm 1 at most, and the target above is drawn as "
            "appendix B.1 says and then shrunk to that. Left as drawn, from U[±8^(¼)] and U[±1], its norms are "
            "near 2, what flows through six blocks grows nearly a hundredfold, and the logits with its square: "
            "attention becomes a choice of one point, and small errors flip it. The error then stays of the "
            "size of the output until it is small enough for no choice to flip, and only then falls."
        ),
        Table(
            ("blocks", *(f"error, n = {n}" for n in widths), "own δ", "R², shared δ"),
            rows,
            f"Ours on the target that is not normalised: median over {result.scale.sources} sources of "
            "the largest error.",
        ),
    )


def _method() -> Text:
    return Text(
        "Single-head blocks of width 2 with d_K = 8, a one-layer feed-forward network and residuals, untrained, "
        "as in section 3.3 and appendix B.1. Sequences are those of Figure 4: a regression token, here at its "
        "initial zero, and four points. A transformer of B blocks is the first B blocks of the one with six, in "
        "target and source alike. Every number is in `errors.csv`, the largest and the mean error of every "
        "source."
    )


def _decay(result: Figure6, line: Line) -> Chart:
    fits = result.shared[line.name]
    medians = [
        spread_curve(
            f"{b} block{'s' if b > 1 else ''}",
            result.of(line, b),
            b,
            band="quantiles" if b in (1, BLOCKS) else "",
        )
        for b in range(1, BLOCKS + 1)
    ]
    fitted = [
        Curve(f"γ = {fit.gamma:.3g}", median.x, fit(median.x), median.colour, "fit")
        for fit, median in zip(fits, medians, strict=True)
    ]
    return Chart(
        f"{NAMES[line]}; δ = {fits[0].delta:.3f}",
        "hidden dimensions n_MHA = n_FC",
        "largest output error ε",
        (*medians, *fitted),
        legend_columns=4,
    )


def _growth(result: Figure6) -> Chart:
    blocks = list(range(1, BLOCKS + 1))
    curves = []
    for colour, line in ((1, OURS), (2, PAPER)):
        fits = result.shared[line.name]
        curves.append(Curve(NAMES[line], blocks, [fit.gamma / fits[0].gamma for fit in fits], colour))
    allowed = [math.exp(amplification(b)) for b in blocks]
    curves.append(Curve("Theorem 14's worst case", blocks, allowed, 6, "printed"))
    return Chart(
        "error against that of one block",
        "blocks B",
        "factor",
        tuple(curves),
        x_ticks=tuple(blocks),
    )
