"""The page of a comparison: answers side by side, the error by layer, masks to look at, sizes."""

import shlex
from pathlib import Path

from strongticket.files import JsonObject
from strongticket.report import (
    Chart,
    Curve,
    Facts,
    Mask,
    Masks,
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
from strongticket.ticket import Ticket

_CORNER = 256  # rows and columns of a mask that are shown
# kind of ticket -> first lines and title of its page
_LEADS = {
    "pretrained": (
        "`{file}` holds random matrices and masks. Here its network runs beside `{target}`, the trained model "
        "that it was built from, on the same inputs.",
        "The same model, made of random weights",
    ),
    "search": (
        "`{file}` holds a seed and the mask that a search found. Here its network runs beside `{target}` on the "
        "same inputs.",
        "A pruned random network beside a model",
    ),
    "task": (
        "`{file}` holds a mask over the weights of `{target}`, and the numbers that a task trained. Here both run "
        "with the same head on the same inputs: the base as it is, and with the mask.",
        "A trained model with and without its mask",
    ),
}


def write_page(
    folder: Path,
    d: JsonObject,
    ticket: Ticket,
    *,
    sequences: int,
    faithful: bool,
    seed: int,
    seconds: float,
) -> Path:
    """Write the results folder of a comparison and return the path of its page.

    folder: of the results
    d: what `compare` prints as JSON
    ticket: whose masks are shown
    sequences, faithful, seed: the options it was run with
    seconds: how long it took
    """
    rows = [{"layer": layer, "relative_error": error} for layer, error in enumerate(d["layers"])]
    lead, title = _LEADS.get(ticket.kind, _LEADS["pretrained"])
    sections = [Section("In short", (Facts(_facts(d)),))]
    if d.get("answers"):
        sections.append(Section("Side by side", (_answers(d),)))
    sections.append(Section("Layer by layer", (_plot(d),)))
    sections.append(Section("Masks of a layer", _masks(ticket)))
    sections.append(Section("Bytes", (_size_table(d, ticket),)))
    if d["certificates"]:
        sections.append(Section("What is certain", _certificates(d)))
    settings = {name: d[name] for name in ("file", "target", "data")}
    settings |= {"sequences": sequences, "faithful": faithful}
    command = ["strongticket", "compare", d["file"], "--against", d["target"], "--sequences", sequences]
    command += ["--seed", seed, *(("--data", d["data"]) if d["data"] else ()), *["--faithful"] * faithful]
    command += [part for row in d.get("answers", ()) for part in ("--prompt", row["prompt"])]
    command += ["--out", folder]
    summary = RunSummary(shlex.join(map(str, command)), seed, settings, d, seconds)
    page = Page(title, lead.format(**d), tuple(sections))
    return write_results(folder, page, summary, {"layers.csv": rows})


def _facts(d: JsonObject) -> tuple[tuple[str, str], ...]:
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


def _answers(d: JsonObject) -> Table:
    rows = tuple((row["prompt"], row["target"], row["ticket"]) for row in d["answers"])
    caption = "What the likeliest answer is, token by token, of the trained model and of the ticket."
    return Table(("prompt", "trained model", "ticket"), rows, caption)  # a path as heading would not wrap


def _masks(ticket: Ticket) -> tuple[PageBlock, ...]:
    """The masks whose names come from the middle of the network, cut to what a screen shows."""
    names = [name for name, mask in ticket.masks.items() if mask.ndim > 1 and min(mask.shape) > 1]
    factors = [name.removesuffix(".left") for name in names if name.endswith(".left")]
    if factors:  # of the matrix in the middle; vectors have a left factor of one row
        names = [f"{factors[len(factors) // 2]}.{side}" for side in ("left", "right")]
    masks = []
    for name in names[len(names) // 2 - 1 :][:2]:
        mask = ticket.masks[name].reshape(len(ticket.masks[name]), -1)
        corner = mask[:_CORNER, :_CORNER]
        of = "" if corner.size == mask.size else f", of {mask.shape[0]} × {mask.shape[1]}"
        masks.append(Mask(f"`{name}`{of}", corner))
    if not masks:
        return (Text("The ticket has only vectors."),)
    return (
        Masks(tuple(masks), f"The first {_CORNER} rows and columns. Each point is a weight; blue is kept."),
    )


def _size_table(d: JsonObject, ticket: Ticket) -> Table:
    numbers = d["sizes"]["int8"]
    rows = tuple((name, size, 8 * size / numbers) for name, size in d["sizes"].items())
    note = "The ticket's file has its tokenizer in it." if "tokenizer" in ticket.metadata else ""
    if ticket.settings.get("base") is not None:
        note = "The ticket needs the trained model besides."
    return Table(("form", "bytes", "bits per weight"), rows, note)


def _plot(d: JsonObject) -> Plot:
    error = "‖ticket − model‖ / ‖model‖"
    curve = Curve("relative error", range(len(d["layers"])), d["layers"], 1, legend=False)
    first, last = d["layers"][0], d["layers"][-1]
    return Plot(
        Chart("", "after layer", error, (curve,)),
        alt=f"Relative error of the hidden states: {first:.2g} after the first layer, {last:.2g} after the last.",
        caption="Each layer adds its own error to that of the layers before it.",
        source="layers.csv",
    )


def _certificates(d: JsonObject) -> tuple[PageBlock, ...]:
    text = Text(
        "Tokens behind a norm have a known length, so each attention layer's error can be bounded from "
        "the weights alone: for every input, every mask and every length of text."
    )
    rows = tuple(
        (c["layer"], c["radius"], c["bound"], c["output"], c["bound"] / c["output"] if c["output"] else None)
        for c in d["certificates"]
    )
    columns = ("layer", "tokens up to length", "output error at most", "mean output", "error / output")
    return text, Table(columns, rows, "The mean output is the trained model's, on what was compared.")
