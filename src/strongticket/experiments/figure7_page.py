"""Figure 7 drawn and told."""

from __future__ import annotations

from pathlib import Path

from strongticket.experiments.chart import Chart, Curve, plot, save
from strongticket.experiments.figure7 import METHODS, Result
from strongticket.report import Facts, Image, Images, Page, Plot, Section, Table, Text

WITHOUT, WITH, DENSE = METHODS
LOOKS = {WITHOUT: (2, "s"), WITH: (1, "o"), DENSE: (6, "^")}


def charts(result: Result, folder: Path) -> None:
    save([_chart(result)], folder, "figure7")


def draw_page(result: Result) -> Page:
    worse = [each["size"] for each in result.gains if each["gain"] <= 0]
    told = f"at every size but {', '.join(worse)}" if worse else "at every size"
    lead = (
        "A random network whose query and key weights are scaled by n_K^¼ holds better tickets than one "
        "as it is "
        f"drawn: the loss is lower {told}. No weight was trained in either, only which to keep."
    )
    sections = (
        Section("In short", (_facts(result),)),
        Section("The loss against the non-zero parameters", (_plot(result), _table(result))),
        Section("For print", (_images(),)),
        Section("What was measured", (_method(result),)),
    )
    return Page("Figure 7: scaled queries and keys give better tickets", lead, sections)


def _facts(result: Result) -> Facts:
    share = [each["of_the_way_to_dense"] for each in result.gains]
    return Facts(
        (
            *((f"{each['gain']:.3f}", f"nats lower with scaling, {each['size']}") for each in result.gains),
            (f"{min(share):.0%} to {max(share):.0%}", "of the way to dense training, by scaling alone"),
        )
    )


def _plot(result: Result) -> Plot:
    caption = f"Validation loss in nats a token: mean and standard deviation of {result.scale.seeds} seeds."
    alt = (
        "Three falling curves: dense training lowest, tickets with scaling between, without scaling highest."
    )
    return plot(_chart(result), alt, caption, source="spreads.csv")


def _table(result: Result) -> Table:
    rows = []
    for spreads, gain in zip(zip(*(result.of(m) for m in METHODS), strict=True), result.gains, strict=True):
        without, _, dense = spreads
        cells = (f"{each['mean']:.3f} ± {each['std']:.3f}" for each in spreads)
        rows.append(
            (gain["size"], without["nonzero"], dense["nonzero"], *cells, f"{gain['of_the_way_to_dense']:.0%}")
        )
    columns = ("network", "kept", "parameters", *METHODS, "scaling, of the way to dense")
    return Table(columns, tuple(rows), "Mean ± standard deviation over seeds.")


def _images() -> Images:
    alt = "Loss against non-zero parameters for tickets without and with scaling and for dense training."
    return Images((Image("figure7.png", alt, "`figure7.png`; the same as vectors in `figure7.pdf`."),))


def _method(result: Result) -> Text:
    one = next(iter(result.scale.sizes.values()))
    return Text(
        f"GPT-2's architecture with ReLU, n_K = 64 in all sizes of laptop and paper scale; {one.steps:,} "
        "steps of "
        f"{one.batch} sequences of {one.context} tokens, AdamW from {one.lr:g} to {one.lr_end:g}. Tickets keep "
        f"{one.kept:.0%} of every tensor by edge-popup, embeddings included; biases are 0 and norms 1. "
        "Dense training "
        "starts from the same draw, without the scale, and trains everything, biases and norms too. The "
        "data is "
        f"`{one.data}`. Every run is a line of `losses.csv`."
    )


def _chart(result: Result) -> Chart:
    curves = []
    for method, (colour, marker) in LOOKS.items():
        spreads = result.of(method)
        mean = [each["mean"] for each in spreads]
        low = [each["mean"] - each["std"] for each in spreads]
        high = [each["mean"] + each["std"] for each in spreads]
        x = [each["nonzero"] for each in spreads]
        curves.append(Curve(method, x, mean, colour, band=(low, high), marker=marker))
    title = f"tickets of {', '.join(result.scale.sizes)}, and training"
    return Chart(title, "non-zero parameters", "validation loss", tuple(curves), log_x=True, log_y=False)
