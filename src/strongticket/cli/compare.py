"""strongticket compare: a ticket of any kind against the network that it stands for."""

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.against import compare_nets, is_of_nets, model_pair
from strongticket.cli.against_tables import nets_tables
from strongticket.cli.frame import JsonFlag, SeedOption, emit, fail, folder_option, step, table
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from torch import nn

EXAMPLE = "strongticket compare stories.ticket --against stories260K --data story.txt"


def compare(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    against: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="What it stands for: a Hugging Face folder or hub name, or a file of a network of the theorems.",
        ),
    ],
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text to compare on. Default: random inputs.")
    ] = None,
    sequences: Annotated[int, typer.Option(help="Sequences to compare on, at most.")] = 64,
    prompt: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A prompt that both answer on the page; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        folder_option("Also write a page: answers, error by layer, masks, sizes."),
    ] = None,
    faithful: Annotated[
        bool, typer.Option(help="Run the random matrices themselves, not their merged products. Slow.")
    ] = False,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """For a model: loss, perplexity, divergence and agreement of both, the error after each layer, a certificate for
    every attention layer. For a network of the theorems: the error of every matrix, certified and measured.
    """
    from strongticket import pretrained
    from strongticket.data.models import tokenizer_files
    from strongticket.data.tokenizers import FromFiles
    from strongticket.ticket import Ticket

    start = time.monotonic()
    ticket = Ticket.load(file)
    if is_of_nets(ticket):
        if out is not None or data is not None:
            fail("--out and --data are for tickets of models.", "Leave them out.")
        with step("comparing it with the target"):
            found_nets = compare_nets(ticket, Path(against), inputs=1024, seed=seed)
        emit({"file": str(file)} | found_nets, as_json=as_json, show=lambda: nets_tables(found_nets))
        return
    target, source = model_pair(ticket, against, faithful=faithful)
    with step("certifying the attention layers"):
        certificates = tuple(pretrained.certify_layers(ticket, target)) if ticket.kind == "pretrained" else ()
    with step(f"reading {data}" if data else "making up what to compare on"):
        files = tokenizer_files(against) if data or out else {}
        tokenizer = FromFiles(files) if files else None
        inner = tokenizer.inner if tokenizer and data else None
        batches = pretrained.batches(target, data, inner, seed=seed, sequences=sequences)
    with step("running both") as advance:
        found = pretrained.compare(target, source, batches, certificates=certificates, progress=advance)
    result = {"file": str(file), "target": against, "data": None if data is None else str(data)} | asdict(
        found
    )
    for which in ("target", "source"):
        loss = result[f"{which}_loss"]
        result[f"{which}_perplexity"] = None if loss is None else math.exp(loss)
    if out is not None:
        from strongticket.cli.answers import PROMPTS, answers
        from strongticket.cli.compare_page import write_page

        if tokenizer is not None:
            with step("asking both"):
                result["answers"] = answers(target, source, tokenizer, tuple(prompt or PROMPTS))
        result["sizes"] = _sizes(file, target)
        result["page"] = str(
            write_page(
                out,
                result,
                ticket,
                sequences=sequences,
                faithful=faithful,
                seed=seed,
                seconds=time.monotonic() - start,
            )
        )
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _sizes(file: Path, target: "nn.Module") -> dict[str, int]:
    """Bytes of the file, and of the same numbers in other forms."""
    numbers = sum(parameter.numel() for parameter in target.parameters())
    return {"ticket": file.stat().st_size, "int8": numbers, "float16": 2 * numbers, "float32": 4 * numbers}


def _tables(d: JsonObject) -> list[RenderableType]:
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
    certified = {certificate["layer"]: certificate for certificate in d["certificates"]}
    largest = max(d["layers"])
    for number, error in enumerate(d["layers"]):
        bar = "█" * max(1, round(24 * error / largest)) if largest else ""
        bound = certified.get(number)
        layers.add_row(str(number), f"{error:.2e}", bar, "" if bound is None else _certified(bound))
    parts: list[RenderableType] = [facts, "", layers]
    if d["target_loss"] is not None:
        parts = [head, "", *parts]
    return [*parts, "", f"open {d['page']}"] if "page" in d else parts


def _certified(layer: JsonObject) -> str:
    relative = f", {layer['bound'] / layer['output']:.2g} of its output" if layer["output"] else ""
    return f"{layer['bound']:.3g}{relative}, for ‖x‖ ≤ {layer['radius']:.3g}"
