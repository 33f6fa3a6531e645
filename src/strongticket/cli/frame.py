"""What all commands share: the answer on stdout, progress and messages on stderr, no tracebacks."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from typer.core import TyperGroup

from strongticket.errors import StrongTicketError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of tables.")]


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < 1 << 64:
        fail("--seed must be an integer from 0 to 2**64 - 1.")
    return seed


SeedOption = Annotated[
    int,
    typer.Option(
        callback=_checked_seed, help="Seed of everything random: the same seed gives the same bytes."
    ),
]

Advance = Callable[[int, int | None], None]  # (done, total if known)


class Group(TyperGroup):
    """A command group that prints errors the user can fix as a line and a hint on stderr, and exits with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except StrongTicketError as error:
            fail(error.what, error.hint)
        except OSError as error:
            if error.errno == errno.EPIPE:  # `| head`: the reader has enough
                raise
            fail(
                f"{error.filename or 'a file'}: {error.strerror or error}.",
                "Check the path, the permissions and the space.",
            )
        except KeyboardInterrupt:
            _console(stderr=True).print("interrupted")
            raise typer.Exit(130) from None


def fail(what: str, hint: str = "") -> None:
    """Print what is wrong and what to do; leave with exit code 1."""
    console = _console(stderr=True)
    console.print(f"[bold red]error:[/] {escape(what)}", highlight=False, soft_wrap=True)
    if hint:
        console.print(f"[bold] hint:[/] {escape(hint)}", highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def emit(result: dict[str, Any], *, as_json: bool, show: Callable[[], list[RenderableType]]) -> None:
    """The answer of a command: `result` as one JSON object, or what `show` draws."""
    if as_json:
        typer.echo(json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False))
        return
    console = _console(stderr=False)
    for part in show():
        console.print(part)


@contextmanager
def step(what: str) -> Iterator[Advance]:
    """Show a bar on a terminal while the body runs, then one line with the seconds it took."""
    console = _console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    start = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
    console.print(f"[green]✓[/] {escape(what)} [dim]{time.monotonic() - start:.1f} s[/]", highlight=False)


def table(title: str, *columns: str, numbers: tuple[int, ...] = ()) -> Table:
    """An empty table in the house style; `numbers` are the columns set flush right."""
    result = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        show_header=any(columns),
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for i, column in enumerate(columns):
        result.add_column(
            column, justify="right" if i in numbers else "left", header_style="dim", overflow="fold"
        )
    return result


def size(count: float) -> str:
    """Bytes for people: 812 B, 12.4 kB, 3.1 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """Seconds for people: 0.2 s, 45 s, 12 min, 3.4 h, 72 days."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"


def _console(*, stderr: bool) -> Console:
    """Made at every use, so that it writes to the stream of the moment."""
    console = Console(stderr=stderr)
    # A file or a pipe has no edge: do not fold tables that go there.
    return console if console.is_terminal else Console(stderr=stderr, width=200)
