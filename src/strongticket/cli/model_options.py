"""Options that build and plan share for Hugging Face models."""

from typing import Annotated, Any

import typer

from strongticket.cli.frame import fail
from strongticket.errors import StrongTicketError

PartsOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST", help="Of a model: some of attention,feed-forward,embedding,head. Default: all."
    ),
]
LayersOption = Annotated[
    str | None, typer.Option(metavar="LIST", help="Of a model: which layers, such as 0,3-5. Default: all.")
]
AttentionOption = Annotated[
    str | None,
    typer.Option(
        metavar="products|projections",
        help="Of a model: W_QK and W_VO of every head as in Theorem 3 (default), or each projection as a linear map, "
        "far less work for wide models.",
    ),
]
PerRowOption = Annotated[
    int | None, typer.Option(help="Of a model: hidden units per row of each matrix. Default: 24.")
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        help="Of a model: error of an entry that is near enough, relative to its matrix. Default: 2e-4."
    ),
]


def model_options(given: dict[str, Any]) -> dict[str, Any]:
    """What was given, lists parsed: ready for `strongticket.pretrained`."""
    options = {name: value for name, value in given.items() if value is not None}
    if "parts" in options:
        options["parts"] = [part.strip() for part in options["parts"].split(",")]
    if "layers" in options:
        options["layers"] = parse_layers(options["layers"])
    return options


def parse_layers(text: str) -> list[int]:
    """0,3-5 -> [0, 3, 4, 5]"""
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            span = range(int(first), int(last if dash else first) + 1)
            if not span:
                raise ValueError
            found |= set(span)
    except ValueError:
        raise StrongTicketError(f"--layers {text}: expected numbers and ranges, such as 0,3-5") from None
    return sorted(found)


def refuse_options(why: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            fail(f"--{name.replace('_', '-')} does not apply: {why}.", "Leave it out.")
