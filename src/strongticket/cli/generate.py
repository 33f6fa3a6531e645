"""strongticket generate: text from a ticket."""

import itertools
import sys
from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import ADVANCED, JsonFlag, SeedOption, emit, option, printable, step

EXAMPLE = 'strongticket generate found.ticket --prompt "The "'


def generate(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket of a language model.")],
    prompt: Annotated[str, typer.Option(help="The beginning of the text.")],
    tokens: Annotated[int, typer.Option(help="How many tokens to generate.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token each time.")] = 0.8,
    tokenizer: Annotated[
        str | None, option(ADVANCED, "Folder of the tokenizer, if the ticket does not contain it.")
    ] = None,
    base: Annotated[str | None, option(ADVANCED, "The trained model of a partial ticket.", "MODEL")] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Continue a prompt with the random network."""
    from strongticket.ticket import Ticket

    ticket = Ticket.load(file)
    with step(f"making the network of {file}"):
        pieces = ticket.generate(
            prompt, tokens=tokens, temperature=temperature, seed=seed, tokenizer=tokenizer, base=base
        )
        first = next(pieces, "")
    if as_json:
        text = first + "".join(pieces)
        emit({"prompt": prompt, "text": text, "tokens": tokens, "seed": seed}, as_json=True, show=list)
        return
    for piece in itertools.chain([prompt + first], pieces, ["\n"]):
        sys.stdout.write(printable(piece))
        sys.stdout.flush()
