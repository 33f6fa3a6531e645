"""The page of a comparison: how the error grows with depth."""

from pathlib import Path
from typing import Any

from strongticket.report import (
    Chart,
    Curve,
    Facts,
    Page,
    PageBlock,
    Plot,
    RunSummary,
    Section,
    Table,
    Text,
    number,
    write_results,
)


def write_page(
    folder: Path, d: dict[str, Any], *, sequences: int, faithful: bool, seed: int, seconds: float
) -> Path:
    """Write the results folder of a comparison and return the path of its page.

    folder: of the results
    d: what `compare` prints as JSON
    sequences, faithful, seed: the options it was run with
    seconds: how long it took
    """
    rows = [{"layer": layer, "relative_error": error} for layer, error in enumerate(d["layers"])]
    lead = (
        f"`{d['file']}` holds random matrices and masks. Here its network runs beside `{d['target']}`, the "
        "trained model that it was built from, on the same inputs."
    )
    sections = [Section("In short", (Facts(_facts(d)),)), Section("Layer by layer", (_plot(d),))]
    if d["certificates"]:
        sections.append(Section("What is certain", _certificates(d)))
    settings = {name: d[name] for name in ("file", "target", "data")}
    settings |= {"sequences": sequences, "faithful": faithful}
    command = (
        f"strongticket compare {d['file']} --against {d['target']} --sequences {sequences} --seed {seed}"
    )
    command += (f" --data {d['data']}" if d["data"] else "") + (" --faithful" if faithful else "")
    summary = RunSummary(command, seed, settings, d, seconds)
    page = Page("The same model, made of random weights", lead, tuple(sections))
    return write_results(folder, page, summary, {"layers.csv": rows})


def _facts(d: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    items = []
    if d["target_loss"] is not None:
        items.append(
            (f"{d['source_loss']:.4f}", f"loss of the ticket; the trained model has {d['target_loss']:.4f}")
        )
    if d["divergence"] is not None:
        items.append((number(d["divergence"]), "nats of KL divergence"))
        items.append((f"{d['agreement']:.2%}", "of positions with the same likeliest answer"))
    items.append((f"{d['cosine_min']:.6f}", "smallest cosine of two mean hidden states"))
    return tuple(items)


def _plot(d: dict[str, Any]) -> Plot:
    error = "‖ticket − model‖ / ‖model‖"
    curve = Curve("relative error", range(len(d["layers"])), d["layers"], 1, legend=False)
    first, last = d["layers"][0], d["layers"][-1]
    return Plot(
        Chart("", "after layer", error, (curve,)),
        alt=f"Relative error of the hidden states: {first:.2g} after the first layer, {last:.2g} after the last.",
        caption="Each layer adds its own error to that of the layers before it.",
        source="layers.csv",
    )


def _certificates(d: dict[str, Any]) -> tuple[PageBlock, ...]:
    text = Text(
        "Tokens behind a norm have a known length, so each attention layer's error can be bounded from "
        "the weights alone: for every input, every mask and every length of text."
    )
    rows = tuple((c["layer"], c["radius"], c["bound"]) for c in d["certificates"])
    return text, Table(("layer", "tokens up to length", "output error at most"), rows)
