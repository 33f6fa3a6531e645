"""Options that build and plan share for models; they become strongticket.pretrained.ModelOptions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from strongticket.cli.frame import fail
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.pretrained import ModelOptions

ToleranceOption = Annotated[
    float | None,
    typer.Option(
        help="For models: root mean square error of a tensor's numbers, relative to their own. Default: 0.01."
    ),
]
BitsOption = Annotated[
    float | None,
    typer.Option(help="For models: give the size of the file instead, in bits per number of the model."),
]
LossOption = Annotated[
    str | None,
    typer.Option(
        metavar="+1%", help="For models: say instead how much the loss on the text of --data may grow."
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TEXT",
        help="With --loss: a text file; half of it finds the tolerance, half checks the result.",
    ),
]
CalibrateOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TEXT",
        help="For models: a text file; errors of linear layers are made to cancel on inputs like this text.",
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="For models: only tensors whose names match, such as 'model.layers.0.*'; repeatable. Default: all.",
    ),
]
AttentionOption = Annotated[
    str | None,
    typer.Option(
        metavar="linear|products",
        help="For models: every tensor on its own (default), or W_QK and W_VO of every head as in Theorem 3, for "
        "the families that have an adapter.",
    ),
]
UnitsOption = Annotated[
    float | None,
    typer.Option(help="For models: hidden units per row of a matrix. Default: chosen by the tolerance."),
]


def model_options(given: JsonObject) -> "ModelOptions":
    """What was given on the command line."""
    from strongticket.pretrained import ModelOptions

    options = {name: value for name, value in given.items() if value is not None}
    if "loss" in options:
        options["loss"] = parse_loss(options["loss"])
    return ModelOptions.of(None, options)


def parse_loss(text: str) -> float:
    """+1% or 1% -> 0.01; 0.01 -> 0.01"""
    number = text.removeprefix("+")
    try:
        return float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        raise StrongTicketError(f"--loss {text}: expected a growth such as +1%") from None


def refuse_options(why: str, **options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            fail(f"--{name.replace('_', '-')} does not apply: {why}.", "Leave it out.")
