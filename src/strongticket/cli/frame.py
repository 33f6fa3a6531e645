"""What all commands share: the answer on stdout, progress and messages on stderr, no tracebacks.

Text from files reaches the terminal here, so all of it is printed as text: no markup, no control characters.
"""

from __future__ import annotations

import errno
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, check_output

ADVANCED = "Advanced"  # a group of options
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


def _checked_ticket(path: Path) -> Path:
    if path.suffix != ".ticket" and not path.is_dir():
        fail(f"--out {path}: the name of a ticket must end in .ticket.", f"Write --out {path}.ticket.")
    check_output(path)
    return path


def _checked_folder(path: Path | None) -> Path | None:
    if path is not None and path.exists() and not path.is_dir():
        fail(f"--out {path}: this is a file.", "Name a folder.")
    return path


TicketOut = Annotated[
    Path,
    typer.Option("--out", metavar="F.ticket", callback=_checked_ticket, help="Where to write the ticket."),
]


def folder_option(help: str) -> Any:
    """The option --out of a command that writes a folder."""
    return typer.Option("--out", metavar="DIR", callback=_checked_folder, help=help)


def option(group: str, help: str, metavar: str | None = None) -> Any:
    """An option that the help lists under the name of a group."""
    return typer.Option(rich_help_panel=group, help=help, metavar=metavar)


Advance = Callable[..., None]  # (done, total if known, note="")
SAME_COMMAND = "the same command resumes from here"
LOG_EVERY = 10.0  # seconds between two progress lines in a log file
# Controls that a terminal obeys, marks that reverse text, unpaired surrogates; not tab and line end.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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
                "Check the path, the permissions and the free space.",
            )
        except MemoryError:
            fail("not enough memory for this.", "Close other programs, or use a smaller network or batch.")
        except KeyboardInterrupt as interrupt:
            text = ": ".join(["interrupted", *filter(None, interrupt.args)])
            _console(stderr=True).print(text)
            raise typer.Exit(130) from None


class Command(TyperCommand):
    """A command whose plain help has a heading for each group of options (`rich_help_panel`)."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, with required arguments as they are: braces look like a choice."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
                title = getattr(parameter, "rich_help_panel", None) or plain
                groups.setdefault(title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def fail(what: str, hint: str = "") -> NoReturn:
    """Print what is wrong and what to do; leave with exit code 1."""
    console = _console(stderr=True)
    console.print(Text("error:", "bold red"), printable(what), soft_wrap=True)
    if hint:
        console.print(Text(" hint:", "bold"), printable(hint), soft_wrap=True)
    raise typer.Exit(1)


def printable(text: str) -> str:
    r"""The text with every control character as its escape, such as \x1b."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def emit(result: JsonObject, *, as_json: bool, show: Callable[[], list[RenderableType]]) -> None:
    """The answer of a command: `result` as one JSON object, or what `show` draws, with blank lines between."""
    if as_json:
        text = json.dumps(_finite(result), indent=2, allow_nan=False, ensure_ascii=False)
        # JSON's own escapes, so that the text stays the same JSON.
        typer.echo(_UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
        return
    console = _console(stderr=False)
    for number, part in enumerate(show()):
        if number:
            console.print()
        console.print(printable(part) if isinstance(part, str) else part)


def _finite(value: Any) -> Any:
    """The same with null for infinities and NaN, which JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def step(what: str, *, if_interrupted: str = "") -> Iterator[Advance]:
    """Show a bar on a terminal, or a line now and then in a log, while the body runs; then the seconds it took.

    Args:
        what: the work, in a few words.
        if_interrupted: what Ctrl-C prints besides "interrupted".
    """
    console = _console(stderr=True)
    what = printable(what)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    start = said = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None, note="")

        def advance(done: int, total: int | None, note: str = "") -> None:
            nonlocal said
            bar.update(task, completed=done, total=total, note=note)
            if not console.is_terminal and time.monotonic() - said > LOG_EVERY:
                said = time.monotonic()
                share = f"{done:,} of {total:,} ({done / total:.0%})" if total else f"{done:,}"
                line = ", ".join(part for part in (f"{what}: {share}", duration(said - start), note) if part)
                console.print(line)

        try:
            yield advance
        except KeyboardInterrupt:
            raise KeyboardInterrupt(if_interrupted) from None
    console.print(Text("✓", "green"), what, Text(f"{time.monotonic() - start:.1f} s", "dim"))


class PlainTable(Table):
    """A table of text without control characters."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*map(printable, cells), **options)


def table(
    title: str, *columns: str, rows: Iterable[Sequence[str]] = (), numbers: Iterable[int] = ()
) -> Table:
    """A table in the house style, to which rows may be added; `numbers` are the columns set flush right."""
    result = PlainTable(
        title=printable(title),
        title_justify="left",
        title_style="bold",
        show_header=any(columns),
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for i, column in enumerate(columns):
        result.add_column(
            printable(column),
            justify="right" if i in numbers else "left",
            header_style="dim",
            overflow="fold",
        )
    for row in rows:
        result.add_row(*row)
    return result


def size(count: float) -> str:
    """Bytes for people: 812 B, 12.4 kB, 3.1 MB."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


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
    """A console that prints text as it is, created at each use, so that it writes to the current stream."""
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:  # a file or a pipe has no edge: do not fold tables that go there
        console.width = 200
    return console
