"""Figure 6 drawn and told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from strongticket import theory
from strongticket.experiments.chart import Chart, Curve, plot, save
from strongticket.experiments.figure6 import BLOCKS, OURS, PAPER, PRINTED, Line, Result
from strongticket.report import Block, Facts, Image, Images, Page, Section, Table, Text
from strongticket.report.html import number

ALPHA = math.sqrt(2)  # the least radius that the theorems allow: α ≥ √d₁
EPSILON = 0.1  # the error whose width is compared
NAMES = {OURS: "ours", PAPER: "paper's assignment, solved exactly", PRINTED: "ours, target not normalised"}


def charts(result: Result, folder: Path) -> None:
    save([_decay(result, OURS), _decay(result, PAPER), _growth(result)], folder, "figure6")


def draw_page(result: Result) -> Page:
    ours = result.fits[OURS.name]
    lead = (
        "Whole transformers, without normalisation layers, from pruned random ones. The more blocks, the "
        "larger the "
        f"error. The paper says that only the factor γ before e^(−δn) grows with them. Fitted so, with the δ = "
        f"{ours[0].delta:.3g} of one block, γ grows {number(ours[-1].gamma / ours[0].gamma)} times from "
        "one block to "
        f"{BLOCKS}, and R² is {min(f.r2 for f in ours):.2f} at least. Theorem 14, which must hold for any "
        "target, "
        f"allows for {number(math.exp(amplification(BLOCKS)))} times."
    )
    sections = (
        Section("In short", (_facts(result),)),
        Section("The error against the width", _plots(result)),
        Section("The fits", _fits(result)),
        Section("Against Theorem 14", _theorem(result)),
        Section("The target as printed", _as_printed(result)),
        Section("For print", _images()),
        Section("What was measured", (_method(),)),
    )
    return Page("Figure 6: errors add up over blocks, and still fall exponentially", lead, sections)


def amplification(blocks: int) -> float:
    """log of 2^(B−1)·Π_{j=2..B} 16H√d₁β_j²: by how much Theorem 14 lets the first block's error grow."""
    radii = (theory.lemmas.block_radius_log(j, ALPHA, 1, 2) for j in range(2, blocks + 1))
    return sum(math.log(2) + math.log(16 * math.sqrt(2)) + 2 * radius for radius in radii)


def _facts(result: Result) -> Facts:
    ours = result.fits[OURS.name]
    return Facts(
        (
            (f"{ours[0].delta:.3f}", "δ of one block, used for all"),
            (f"{min(fit.r2 for fit in ours):.3f}", "R² of the log fits with that δ, at least"),
            (number(ours[-1].gamma / ours[0].gamma), f"γ of {BLOCKS} blocks over γ of one"),
        )
    )


def _plots(result: Result) -> tuple[Block, ...]:
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


def _fits(result: Result) -> tuple[Block, ...]:
    rows: list[tuple[Any, ...]] = []
    for line in (OURS, PAPER):
        for b in range(BLOCKS):
            shared, own = result.fits[line.name][b], result.own[line.name][b]
            rows.append((NAMES[line], b + 1, shared.gamma, shared.delta, shared.r2, own.delta, own.r2))
    return (
        Text(
            "A linear map needs a positive and a negative subset sum for each of its two inputs, so four "
            "rows share "
            "the n hidden units of the feed-forward network where two share those of attention. The most "
            "to hope for "
            "is therefore δ = ln 2 / 4 ≈ 0.173 for wide sources, half of figure 4's. Narrow sources lie "
            "on a plateau: "
            "with two or three products a sum, no subset comes near, and the error is of the size of the "
            "output. "
            "The more blocks, the longer the plateau, which is why the curves fitted with one δ are too steep "
            "on the left. All widths are in the fits; R² says how well they do."
        ),
        Table(
            ("assignment", "blocks", "γ", "shared δ", "R²", "own δ", "R² with it"),
            tuple(rows),
            "Least squares on log ε of the medians; R² is that of log ε.",
        ),
    )


def _theorem(result: Result) -> tuple[Block, ...]:
    constant = theory.measured_constant("relu", "norm")
    rows: list[tuple[Any, ...]] = []
    for b in range(BLOCKS):
        fits = result.fits[OURS.name]
        asked = theory.transformer_widths(EPSILON, 2, 1, ALPHA, 1, b + 1, constant=constant)
        widest = max(max(width.n_MHA.n, width.n_FC.n) for width in asked)
        needed = math.log(fits[b].gamma / EPSILON) / fits[b].delta
        bound = result.of(OURS, b + 1, "bound")[-1]
        # Of the certified sources alone: medians of different sources would not compare.
        errors = [row["error_max"] for row in result.certified(OURS, b + 1, bound["n"])]
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
            "Theorem 14 bounds what the worst target could do with the error of its first block: each "
            "block may "
            "multiply it by 32·√2·β², and β, the size of what flows through the network, may grow by 4·√2 "
            "a block. "
            "Real blocks do nothing of the kind. The widths it asks for follow: they are computed here with "
            f"C = {number(constant)}, measured for this solver (`strongticket plan` tells more). Our "
            "certificate "
            "follows the true weights block by block and is much nearer, but it too must allow for inputs that "
            "make every block's error point the same way."
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


def _as_printed(result: Result) -> tuple[Block, ...]:
    widths = [s["n"] for s in result.of(PRINTED, 1)]
    rows = tuple(
        (
            b,
            *(s["median"] for s in result.of(PRINTED, b)),
            result.own[PRINTED.name][b - 1].delta,
            result.fits[PRINTED.name][b - 1].r2,
        )
        for b in range(1, BLOCKS + 1)
    )
    return (
        Text(
            "The theorems assume matrices of spectral norm 1 at most, and the target above is drawn as "
            "appendix B.1 "
            "says and then shrunk to that. Left as drawn, from U[±8^(¼)] and U[±1], its norms are near 2, "
            "what flows "
            "through six blocks grows nearly a hundredfold, and the logits with its square: attention becomes "
            "a choice of one point, and small errors flip it. The error then stays of the size of the "
            "output until "
            "it is small enough for no choice to flip, and only then falls."
        ),
        Table(
            ("blocks", *(f"error, n = {n}" for n in widths), "own δ", "R², shared δ"),
            rows,
            f"Ours on the target that is not normalised: median over {result.scale.printed_sources} "
            "sources of the "
            "largest error.",
        ),
    )


def _images() -> tuple[Block, ...]:
    alt = (
        "Three charts: error against width for one to six blocks, twice, and how the error grows with blocks."
    )
    return (Images((Image("figure6.png", alt, "`figure6.png`; the same as vectors in `figure6.pdf`."),)),)


def _method() -> Text:
    return Text(
        "Single-head blocks of width 2 with d_K = 8, a one-layer feed-forward network and residuals, "
        "untrained, as in "
        "section 3.3 and appendix B.1. Sequences are those of figure 4: a regression token, here at its "
        "initial zero, "
        "and four points. A transformer of B blocks is the first B blocks of the one with six, in target "
        "and source "
        "alike. Every number is in `errors.csv`, the largest and the mean error of every source."
    )


def _decay(result: Result, line: Line) -> Chart:
    curves = []
    for b in range(1, BLOCKS + 1):
        spreads = result.of(line, b)
        n = [s["n"] for s in spreads]
        name = f"{b} block{'s' if b > 1 else ''}"
        band = ([s["low"] for s in spreads], [s["high"] for s in spreads]) if b in (1, BLOCKS) else None
        curves.append(Curve(name, n, [s["median"] for s in spreads], b, band=band))
    for b in range(1, BLOCKS + 1):
        fit = result.fits[line.name][b - 1]
        n = [s["n"] for s in result.of(line, b)]
        curves.append(Curve(f"γ = {fit.gamma:.3g}", n, fit(n), b, "fit"))
    title = f"{NAMES[line]}; δ = {result.fits[line.name][0].delta:.3f}"
    return Chart(
        title, "hidden dimensions n_MHA = n_FC", "largest output error ε", tuple(curves), legend_columns=4
    )


def _growth(result: Result) -> Chart:
    blocks = list(range(1, BLOCKS + 1))
    curves = [
        Curve(
            NAMES[line],
            blocks,
            [f.gamma / result.fits[line.name][0].gamma for f in result.fits[line.name]],
            c,
        )
        for line, c in ((OURS, 1), (PAPER, 2))
    ]
    allowed = [math.exp(amplification(b)) for b in blocks]
    curves.append(Curve("Theorem 14's worst case", blocks, allowed, 6, "printed"))
    return Chart(
        "error against that of one block",
        "blocks B",
        "factor",
        tuple(curves),
        x_ticks=tuple(blocks),
    )
