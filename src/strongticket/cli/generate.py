"""strongticket generate: text from a ticket."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import JsonFlag, SeedOption, emit

EXAMPLE = 'strongticket generate found.ticket --prompt "The "'


def generate(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket of a language model.")],
    prompt: Annotated[str, typer.Option(help="What the text begins with.")],
    tokens: Annotated[int, typer.Option(help="How many tokens to write.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token each time.")] = 0.8,
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder of the tokenizer, if it is not where it was.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Let the random network go on from a prompt."""
    from strongticket.search import generate as pieces
    from strongticket.ticket import Ticket

    text = ""
    for piece in pieces(
        Ticket.load(file), prompt, tokens=tokens, temperature=temperature, seed=seed, tokenizer=tokenizer
    ):
        text += piece
        if not as_json:
            sys.stdout.write(piece if text != piece else prompt + piece)
            sys.stdout.flush()
    if not as_json:
        sys.stdout.write("\n")
        return
    emit({"prompt": prompt, "text": text, "tokens": tokens, "seed": seed}, as_json=True, show=list)
