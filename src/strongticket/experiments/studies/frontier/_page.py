"""Charts and report page for the frontier."""

from __future__ import annotations

from strongticket.experiments.chart import Chart, Print, plot, spread_curve
from strongticket.experiments.spread import Row, select
from strongticket.experiments.studies.frontier._measure import Frontier
from strongticket.experiments.studies.frontier._scale import METHODS
from strongticket.report import Facts, Page, Plot, Section, Table, Text

LOOKS = dict(zip(METHODS, ((1, "o"), (6, "s"), (2, "^"), (3, "D")), strict=True))  # colour, marker


def prints(result: Frontier) -> tuple[Print, ...]:
    """Return the charts for print."""
    charts = tuple(_chart(result, setting) for setting in result.scale)
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
                _title(setting), (_plot(result, setting), _losses(result, setting), _ratios(result, setting))
            )
            for setting in result.scale
        ),
        Section("Learning rates", (_tuning(result),)),
        Section("What was measured", tuple(_method(result, setting) for setting in result.scale)),
    )
    return Page("The frontier: loss against bytes", lead, sections)


def who_wins(result: Frontier) -> str:
    """Say in a sentence per setting which method has the lowest loss at which size."""
    sentences = []
    for setting in result.scale:
        wins = [f"{method} at {size / 1000:.0f} kB" for size, method in result.winners(setting)]
        sentences.append(f"{_title(setting)}, lowest loss: {', '.join(wins)}.")
    return " ".join(sentences)


def _title(setting: str) -> str:
    return setting[0].upper() + setting[1:]


def _facts(result: Frontier) -> Facts:
    return Facts(
        tuple(
            (
                f"{'' if row['best'] else 'below '}{row['ratio']:.2f}",
                f"bytes of the ticket over the best quantised, {row['file_bytes'] / 1000:.0f} kB, {row['setting']}",
            )
            for row in result.ratios
            if row["ratio"] is not None
        )
    )


def _plot(result: Frontier, setting: str) -> Plot:
    caption = "Validation loss: mean and standard deviation over the seeds, which the table counts."
    alt = f"Falling curves of loss against kilobytes, {setting}, one for each method."
    return plot(_chart(result, setting), alt, caption, source="spreads.csv")


def _losses(result: Frontier, setting: str) -> Table:
    rows = tuple(
        (
            method,
            row["dim"],
            f"{row['file_bytes'] / 1000:.1f}",
            f"{row['mean']:.3f}" + (f" ± {row['std']:.3f}" if row["seeds"] > 1 else ""),
            row["seeds"],
            f"{row['rate']:g}",
            *([] if row["accuracy"] is None else [f"{row['accuracy']:.1%}"]),
        )
        for method in METHODS
        for row in result.of(setting, method)
    )
    heads = ("method", "width", "kB", "loss", "seeds", "learning rate", "accuracy")
    columns = heads[: len(rows[0])] if rows else heads
    return Table(columns, rows, "Every file as it is on disk.")


def _ratios(result: Frontier, setting: str) -> Table:
    rows = tuple(_ratio(row) for row in select(result.ratios, setting=setting))
    caption = (
        "Below 1 the ticket is smaller than every quantised network of its loss; interpolated between sizes in the "
        "logarithm of the bytes. * is beyond the measured sizes, by a factor of at most 1.5."
    )
    return Table(("ticket, kB", "loss", "best quantised of that loss, kB", "ratio"), rows, caption)


def _ratio(row: Row) -> tuple[str, str, str, str]:
    size, loss = f"{row['file_bytes'] / 1000:.1f}", f"{row['loss']:.3f}"
    if row["ratio"] is None:
        return size, loss, "far from the measured sizes", "–"
    if row["best"] is None:
        return size, loss, "none of those measured", f"below {row['ratio']:.2f}"
    star = " *" if row["beyond"] else ""
    return (
        size,
        loss,
        f"{row['quantised_bytes'] / 1000:.1f} ({row['best']}){star}",
        f"{row['ratio']:.2f}{star}",
    )


def _tuning(result: Frontier) -> Table:
    rows = tuple(
        (
            row["setting"],
            row["method"],
            row["dim"],
            f"{row['rate']:g}",
            f"{row['loss']:.3f}",
            f"{row['file_bytes'] / 1000:.1f}",
        )
        for row in result.tuning
    )
    return Table(
        ("setting", "method", "width", "learning rate", "loss", "kB"),
        rows,
        "One seed, one size; the rate of the lowest loss is taken for all sizes.",
    )


def _method(result: Frontier, setting: str) -> Text:
    config, paper = result.scale[setting].config, result.scale[setting].paper
    recipe = (
        f" The paper's recipe keeps {paper.kept:.0%} of {paper.law} weights of a {paper.architecture} model."
        if paper
        else ""
    )
    return Text(
        f"{_title(setting)}: the ticket is the default of `strongticket search`: {config.law} weights, "
        f"{config.kept:.0%} kept, {config.architecture} blocks, {config.layers} of them, {config.steps:,} steps of "
        f"{config.batch} items. Quantised training has the same architecture, data, schedule and optimiser, and one "
        f"step for each tensor; its weights move from plain to rounded as the ticket's gates harden. Neither trains "
        f"norms or biases.{recipe} The task is "
        f"{config.task}, the data `{config.data}`; every search is a line of `losses.csv`."
    )


def _chart(result: Frontier, setting: str) -> Chart:
    curves = [
        spread_curve(method, rows, colour, x="kB", y="mean", band="std", marker=marker)
        for method, (colour, marker) in LOOKS.items()
        if (rows := [row | {"kB": row["file_bytes"] / 1000} for row in result.of(setting, method)])
    ]
    return Chart(_title(setting), "kB of the file", "validation loss", tuple(curves), log_x=True, log_y=False)
