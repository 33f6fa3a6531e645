"""strongticket compare: the ticket of a pretrained model against the model."""

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, SeedOption, emit, fail, step, table

EXAMPLE = "strongticket compare stories.ticket --against stories260K --data story.txt"


def compare(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket built from a pretrained model.")],
    against: Annotated[
        str, typer.Option(metavar="TARGET", help="That model: a Hugging Face folder or hub name.")
    ],
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text to compare on. Default: random inputs.")
    ] = None,
    sequences: Annotated[int, typer.Option(help="Sequences to compare on, at most.")] = 64,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write a results folder with a plot of the layers."),
    ] = None,
    faithful: Annotated[
        bool, typer.Option(help="Run the random matrices themselves, not their merged products. Slow.")
    ] = False,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Loss, perplexity, divergence and agreement of both, the error after each layer, a certificate for every
    attention layer.
    """
    from strongticket import pretrained
    from strongticket.data.models import tokenizer_files
    from strongticket.data.tokenizers import FromFiles
    from strongticket.ticket import Ticket

    start = time.monotonic()
    ticket = Ticket.load(file)
    if ticket.kind != "pretrained":
        fail(f"{file} was not built from a pretrained model.", "Use `strongticket verify --against` for it.")
    with step(f"loading {against}"):
        target = pretrained.load_target(against)
    if type(target).__name__ != ticket.settings["class"]:
        fail(
            f"{against} is a {type(target).__name__}, the ticket one of a {ticket.settings['class']}.",
            "Compare it with the model that it was built from.",
        )
    with step("making the ticket's network"):
        base = None if ticket.settings["base"] is None else target
        source = ticket.network(base=base, faithful=faithful)
    with step("certifying the attention layers"):
        certificates = tuple(pretrained.certify_layers(ticket, target))
    with step(f"reading {data}" if data else "making up what to compare on"):
        files = tokenizer_files(against) if data else {}
        tokenizer = FromFiles(files).inner if files else None
        batches = pretrained.batches(target, data, tokenizer, seed=seed, sequences=sequences)
    with step("running both") as advance:
        found = pretrained.compare(target, source, batches, certificates=certificates, progress=advance)
    result = {"file": str(file), "target": against, "data": None if data is None else str(data)} | asdict(
        found
    )
    for which in ("target", "source"):
        loss = result[f"{which}_loss"]
        result[f"{which}_perplexity"] = None if loss is None else math.exp(loss)
    if out is not None:
        from strongticket.cli.compare_page import write_page

        result["page"] = str(
            write_page(
                out,
                result,
                sequences=sequences,
                faithful=faithful,
                seed=seed,
                seconds=time.monotonic() - start,
            )
        )
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _tables(d: dict[str, Any]) -> list[RenderableType]:
    head = table(d["file"], "", d["target"], "ticket", numbers=(1, 2))
    for name in ("loss", "perplexity"):
        if d[f"target_{name}"] is not None:
            head.add_row(name, *(f"{d[f'{which}_{name}']:.4f}" for which in ("target", "source")))
    facts = table("how far apart", "", "")
    if d["divergence"] is not None:
        facts.add_row("KL divergence", f"{d['divergence']:.3g} nats at {d['tokens']:,} positions")
        facts.add_row("same likeliest answer", f"{d['agreement']:.2%}")
    facts.add_row("cosine of mean hidden states", f"{d['cosine_mean']:.6f}, at least {d['cosine_min']:.6f}")
    layers = table(
        "layer by layer", "after layer", "relative error", "", "attention certified to", numbers=(0, 1, 3)
    )
    certified = {each["layer"]: each for each in d["certificates"]}
    most = max(d["layers"])
    for number, error in enumerate(d["layers"]):
        bar = "█" * max(1, round(24 * error / most)) if most else ""
        bound = certified.get(number)
        certificate = "" if bound is None else f"{bound['bound']:.3g} for ‖x‖ ≤ {bound['radius']:.3g}"
        layers.add_row(str(number), f"{error:.2e}", bar, certificate)
    parts: list[RenderableType] = [facts, "", layers]
    if d["target_loss"] is not None:
        parts = [head, "", *parts]
    return [*parts, "", f"open {d['page']}"] if "page" in d else parts
