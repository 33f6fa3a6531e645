"""The command line: parses, calls, prints. One file per command; heavy imports happen inside the commands."""

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
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: boxes leave too few of 80 columns for text
    context_settings={"help_option_names": ["-h", "--help"]},
)
# What `strongticket --help` says of each, in its order: short enough for 80 columns.
_SUMMARIES = {
    demo: "See two tickets in your browser. Start here.",
    plan: "Estimate width, accuracy, time and memory before a build.",
    build: "Find the ticket of a network or a trained model.",
    search: "Find a ticket from data.",
    show: "Describe a ticket file.",
    verify: "Regenerate every weight and check the file.",
    compare: "Measure a ticket beside its model; check what it states.",
    generate: "Let a language ticket continue a prompt.",
    export: "Write an ordinary model that any tool loads.",
    reproduce: "Reproduce a figure of the paper, or run a study.",
    report: "Make a page that runs a ticket.",
}
for _module, _summary in _SUMMARIES.items():
    _name = _module.__name__.rpartition(".")[2]
    _command = app.command(
        _name,
        cls=getattr(_module, "Help", frame.Command),
        epilog=f"Example: {_module.EXAMPLE}",
        short_help=_summary,
    )
    _command(getattr(_module, _name))


def _version(wanted: bool) -> None:
    if wanted:
        from strongticket import __version__

        typer.echo(f"strongticket {__version__}")
        raise typer.Exit


@app.callback()
def strongticket(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Strong lottery tickets in transformers: a random network and a mask instead of training."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main() -> None:
    """Entry point of the `strongticket` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows ? for ‖ instead of failing
    app()
