"""Charts and report page for Figure 5."""

from __future__ import annotations

from strongticket.experiments.chart import Chart, Print, plot, spread_curve
from strongticket.experiments.figures.figure5._measure import ASSIGNMENTS, SHORTEST, Figure5
from strongticket.experiments.spread import select
from strongticket.report import Cell, Facts, Page, PageBlock, Section, Table, Text, number

NAMES = {"balanced": "ours", "paper": "paper's assignment, solved exactly"}


def prints(result: Figure5) -> tuple[Print, ...]:
    """Return the charts for print."""
    alt = "Two charts of error against sequence length: level lines, one per width, below level certificates."
    return (Print("figure5", tuple(_lengths(result, assignment) for assignment in ASSIGNMENTS), alt),)


def page(result: Figure5) -> Page:
    """Return the page."""
    scale = result.scale
    worst = max(result.growth("balanced", n) for n in scale.widths)
    lead = (
        "A random attention head pruned to copy a trained one does so on sequences of any length: from "
        f"{min(scale.lengths)} to {max(scale.lengths):,} points its largest error is never more than "
        f"{worst:.2f} times that at {SHORTEST}."
    )
    sections = (
        Section("In short", (_facts(result, worst),)),
        Section("The error against the length", _plots(result)),
        Section("Length by length", (_table(result),)),
        Section("What was measured", (_method(),)),
    )
    return Page("Figure 5: the error does not grow with the sequence", lead, sections)


def _facts(result: Figure5, worst: float) -> Facts:
    n = result.scale.widths[-1]
    longest = result.of("balanced", n)[-1]
    bound = result.of("balanced", n, "bound")[-1]
    return Facts(
        (
            (f"{worst:.2f}", f"largest error at any T over that at T = {SHORTEST}, worst width"),
            (number(longest["median"]), f"median error at T = {longest['length']:,}, n = {n}"),
            (number(bound["median"]), "certified there, and for every other T"),
        )
    )


def _plots(result: Figure5) -> tuple[PageBlock, ...]:
    caption = (
        f"The largest error over {result.scale.sequences:,} test sequences and all their positions. Line: "
        f"median over {result.scale.sources} random sources; band: the middle 80 %. Dash-dotted, in the same "
        "colour: the median certificate, a bound for every sequence of any length (each source is below its "
        "own)."
    )
    blocks: list[PageBlock] = [
        Text(
            "Softmax averages: however many points there are, the output stays an average of them, and errors "
            "of the two pruned products move it by no more than the certificate says. Longer sequences even "
            "out: the average of many points on a circle is near its centre, and the error gets a little "
            "smaller. What remains at large T comes from slow walks, whose points crowd on one arc."
        )
    ]
    for assignment in ASSIGNMENTS:
        alt = f"{NAMES[assignment]}: level lines, one per width, each below its level certificate."
        blocks.append(plot(_lengths(result, assignment), alt, caption, source="spreads.csv"))
    return tuple(blocks)


def _table(result: Figure5) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for assignment in ASSIGNMENTS:
        for n in result.scale.widths:
            largest = result.of(assignment, n)
            mean = result.of(assignment, n, "error_mean")
            (failing,) = select(result.failures(), assignment=assignment, n=n)
            peak = max(largest, key=lambda s: s["median"])
            rows.append(
                (
                    NAMES[assignment],
                    n,
                    f"{failing['share']:.0%}",
                    largest[0]["median"],
                    peak["median"],
                    peak["length"],
                    result.growth(assignment, n),
                    mean[0]["median"],
                    mean[-1]["median"],
                    result.of(assignment, n, "bound")[0]["median"],
                )
            )
    return Table(
        (
            "assignment",
            "n",
            "sources that fail",
            f"error, T = {SHORTEST}",
            "largest of any T",
            "at T",
            "ratio",
            f"mean over inputs, T = {SHORTEST}",
            f"T = {max(result.scale.lengths)}",
            "certificate",
        ),
        tuple(rows),
        f"Medians over {result.scale.sources} sources, {result.scale.sequences:,} test sequences of each length "
        "(the paper has 10,000). A source fails if an entry of its matrices is out of reach (Figure 4). *Error* is "
        "the maximum over test sequences and positions, the theorems' "
        "quantity; *mean over inputs* the average over both.",
    )


def _method() -> Text:
    return Text(
        "Target, data and sources are those of Figure 4; the paper trains on 4 to 256 points, so longer "
        "sequences are longer than any the target has seen. Points on a circle allow a shortcut that is exact "
        "to rounding (`experiments/tasks/circle.py`): T keys are replaced by 49 fixed ones with weights, and "
        "the output at all T positions is read off 49 of them. So every position of every sequence is counted."
    )


def _lengths(result: Figure5, assignment: str) -> Chart:
    curves = []
    widths = result.scale.widths
    for colour, n in enumerate(widths, 1):
        median = spread_curve(f"n = {n}", result.of(assignment, n), colour, x="length", band="quantiles")
        bound = spread_curve(
            "certificate",
            result.of(assignment, n, "bound"),
            colour,
            x="length",
            kind="bound",
            legend=n == widths[-1],
        )
        curves += [median, bound]
    return Chart(
        NAMES[assignment],
        "sequence length T",
        "largest output error ε",
        tuple(curves),
        log_x=True,
        x_ticks=tuple(result.scale.lengths[::2]),
        legend_columns=3,
    )
