"""The command line: parses, calls, prints. One file a command; heavy imports happen inside the commands."""

import io
import sys
from typing import Annotated

import typer

from strongticket.cli import (
    build,
    compare,
    demo,
    export,
    frame,
    generate,
    plan,
    report,
    reproduce,
    search,
    show,
    verify,
)

app = typer.Typer(
    cls=frame.Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _module in (plan, build, search, show, verify, compare, generate, export, reproduce, report, demo):
    _name = _module.__name__.rpartition(".")[2]
    app.command(_name, epilog=f"Example: {_module.EXAMPLE}")(getattr(_module, _name))


def _version(wanted: bool) -> None:
    if wanted:
        from strongticket import __version__

        typer.echo(f"strongticket {__version__}")
        raise typer.Exit


@app.callback()
def strongticket(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Strong lottery tickets in transformers: a random network and a mask instead of training."""


def main() -> None:
    """Entry point of the `strongticket` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows ? for ‖ and goes on
    app()
