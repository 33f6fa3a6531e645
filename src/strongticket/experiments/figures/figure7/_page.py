"""Charts and report page for Figure 7."""

from __future__ import annotations

from strongticket.experiments.chart import Chart, Print, plot, spread_curve
from strongticket.experiments.figures.figure7._measure import METHODS, Figure7
from strongticket.report import Facts, Page, Plot, Section, Table, Text

WITHOUT, WITH, DENSE = METHODS
LOOKS = {WITHOUT: (2, "s"), WITH: (1, "o"), DENSE: (6, "^")}  # colour and marker


def prints(result: Figure7) -> tuple[Print, ...]:
    """Return the charts for print."""
    alt = "Loss against non-zero parameters for tickets without and with scaling and for dense training."
    return (Print("figure7", (_chart(result),), alt),)


def page(result: Figure7) -> Page:
    """Return the page."""
    worse = [gain["size"] for gain in result.gains if gain["gain"] <= 0]
    where = f"at every size but {', '.join(worse)}" if worse else "at every size"
    lead = (
        "A random network whose query and key weights are scaled by n_K^¼ holds better tickets than one as it "
        f"is drawn: the loss is lower {where}. No weight was trained in either, only which to keep."
    )
    sections = (
        Section("In short", (_facts(result),)),
        Section("The loss against the non-zero parameters", (_plot(result), _table(result))),
        Section("What was measured", (_method(result),)),
    )
    return Page("Figure 7: scaled queries and keys give better tickets", lead, sections)


def _facts(result: Figure7) -> Facts:
    share = [gain["of_the_way_to_dense"] for gain in result.gains]
    return Facts(
        (
            *((f"{gain['gain']:.3f}", f"nats lower with scaling, {gain['size']}") for gain in result.gains),
            (f"{min(share):.0%} to {max(share):.0%}", "of the way to dense training, by scaling alone"),
        )
    )


def _plot(result: Figure7) -> Plot:
    caption = f"Validation loss in nats per token: mean and standard deviation of {result.scale.seeds} seeds."
    alt = (
        "Three falling curves: dense training lowest, tickets with scaling between, without scaling highest."
    )
    return plot(_chart(result), alt, caption, source="spreads.csv")


def _table(result: Figure7) -> Table:
    rows = []
    by_size = zip(*(result.of(method) for method in METHODS), strict=True)
    for spreads, gain in zip(by_size, result.gains, strict=True):
        without, _, dense = spreads
        losses = (f"{spread['mean']:.3f} ± {spread['std']:.3f}" for spread in spreads)
        share = f"{gain['of_the_way_to_dense']:.0%}"
        rows.append((gain["size"], without["nonzero"], dense["nonzero"], *losses, share))
    columns = ("network", "kept", "parameters", *METHODS, "scaling, of the way to dense")
    return Table(columns, tuple(rows), "Mean ± standard deviation over seeds.")


def _method(result: Figure7) -> Text:
    config = next(iter(result.scale.sizes.values()))
    return Text(
        f"GPT-2's architecture with ReLU, n_K = 64 in all sizes of laptop and paper scale; {config.steps:,} "
        f"steps of {config.batch} sequences of {config.context} tokens, AdamW from {config.lr:g} to "
        f"{config.lr_end:g}. Tickets keep {config.kept:.0%} of every tensor by edge-popup, embeddings included; "
        "biases are 0 and norms 1. Dense training starts from the same draw, without the scale, and trains "
        f"everything, biases and norms too. The data is `{config.data}`. Every search is a line of `losses.csv`."
    )


def _chart(result: Figure7) -> Chart:
    curves = [
        spread_curve(method, result.of(method), colour, x="nonzero", y="mean", band="std", marker=marker)
        for method, (colour, marker) in LOOKS.items()
    ]
    title = f"tickets of {', '.join(result.scale.sizes)}, and training"
    return Chart(title, "non-zero parameters", "validation loss", tuple(curves), log_x=True, log_y=False)
