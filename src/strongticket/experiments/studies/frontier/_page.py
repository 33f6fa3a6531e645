"""Charts and report page for the frontier."""

from __future__ import annotations

from strongticket.experiments.chart import Chart, Print, plot, spread_curve
from strongticket.experiments.studies.frontier._measure import METHODS, Frontier
from strongticket.report import Facts, Page, Plot, Section, Table, Text

LOOKS = dict(zip(METHODS, ((1, "o"), (6, "s"), (2, "^"), (3, "D"), (5, "x")), strict=True))  # colour, marker


def prints(result: Frontier) -> tuple[Print, ...]:
    """Return the charts for print."""
    charts = tuple(_chart(result, steps) for steps in result.scale.widths)
    return (Print("frontier", charts, "Loss against the bytes of the file, tickets and quantised training."),)


def page(result: Frontier) -> Page:
    """Return the page."""
    lead = (
        "A ticket stores a seed and a mask; a quantised network stores its levels. Both files are real and "
        f"entropy-coded, and each method has its own learning rate. {who_wins(result)}"
    )
    sections = (
        Section("In short", (_facts(result),)),
        *(
            Section(
                f"{steps:,} steps", (_plot(result, steps), _losses(result, steps), _ratios(result, steps))
            )
            for steps in result.scale.widths
        ),
        Section("Learning rates", (_tuning(result),)),
        Section("What was measured", (_method(result),)),
    )
    return Page("The frontier: loss against bytes", lead, sections)


def who_wins(result: Frontier) -> str:
    """Say in a sentence per number of steps which method has the lowest loss at which size."""
    sentences = []
    for steps in result.scale.widths:
        wins = [f"at {size / 1000:.0f} kB {method}" for size, method in result.winners(steps)]
        sentences.append(f"With {steps:,} steps the lowest loss has {', '.join(wins)}.")
    return " ".join(sentences)


def _facts(result: Frontier) -> Facts:
    return Facts(
        tuple(
            (f"{row['ratio']:.2f}", f"bytes of the ticket over the best quantised, {row['file_bytes'] / 1000:.0f} kB, "
             f"{row['steps']:,} steps")
            for row in result.ratios
            if row["ratio"] is not None
        )
    )  # fmt: skip


def _plot(result: Frontier, steps: int) -> Plot:
    caption = (
        f"Validation loss in nats per character: mean and standard deviation of {result.scale.seeds} seeds."
    )
    alt = f"Falling curves of loss against kilobytes after {steps} steps, one for each method."
    return plot(_chart(result, steps), alt, caption, source="spreads.csv")


def _losses(result: Frontier, steps: int) -> Table:
    rows = tuple(
        (
            method,
            row["dim"],
            f"{row['file_bytes'] / 1000:.1f}",
            f"{row['mean']:.3f} ± {row['std']:.3f}",
            f"{row['rate']:g}",
        )
        for method in METHODS
        for row in result.of(steps, method)
    )
    return Table(("method", "width", "kB", "loss", "learning rate"), rows, "Every file as it is on disk.")


def _ratios(result: Frontier, steps: int) -> Table:
    rows = []
    for row in result.ratios:
        if row["steps"] == steps:
            known = row["ratio"] is not None
            rows.append(
                (
                    f"{row['file_bytes'] / 1000:.1f}",
                    f"{row['loss']:.3f}",
                    f"{row['quantised_bytes'] / 1000:.1f}" if known else "not within the measured sizes",
                    f"{row['ratio']:.2f}" if known else "–",
                )
            )
    caption = (
        "Below 1 the ticket is smaller than every quantised network of its loss; interpolated between sizes."
    )
    return Table(("ticket, kB", "loss", "best quantised of that loss, kB", "ratio"), tuple(rows), caption)


def _tuning(result: Frontier) -> Table:
    rows = tuple(
        (
            row["steps"],
            row["method"],
            f"{row['rate']:g}",
            f"{row['loss']:.3f}",
            f"{row['file_bytes'] / 1000:.1f}",
        )
        for row in result.tuning
    )
    return Table(
        ("steps", "method", "learning rate", "loss", "kB"),
        rows,
        "One seed, one size; the lowest loss is taken.",
    )


def _method(result: Frontier) -> Text:
    ticket, paper = result.scale.ticket, result.scale.paper
    return Text(
        f"The ticket is the default of `strongticket search`: {ticket.law} weights, {ticket.kept:.0%} kept, "
        f"{ticket.architecture} blocks, {ticket.layers} of them. Quantised training has the same architecture, data, "
        f"schedule and optimiser with straight-through rounding and one step for each tensor. Neither trains norms "
        f"or biases. The paper's recipe keeps {paper.kept:.0%} of {paper.law} weights of a "
        f"{paper.architecture} model. The data is `{ticket.data}`; every search is a line of `losses.csv`."
    )


def _chart(result: Frontier, steps: int) -> Chart:
    curves = [
        spread_curve(method, rows, colour, x="kB", y="mean", band="std", marker=marker)
        for method, (colour, marker) in LOOKS.items()
        if (rows := [row | {"kB": row["file_bytes"] / 1000} for row in result.of(steps, method)])
    ]
    return Chart(
        f"{steps:,} steps", "kB of the file", "validation loss", tuple(curves), log_x=True, log_y=False
    )
