"""strongticket search: find a ticket on data."""

import inspect
import os
import sys
import tomllib
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from rich.console import RenderableType

from strongticket.cli.frame import SAME_COMMAND, JsonFlag, TicketOut, duration, emit, fail, size, step, table
from strongticket.files import JsonObject
from strongticket.searching.config import PART_OF, PARTS, PRESETS, SearchConfig, preset
from strongticket.settings import Count, check, fits

EXAMPLE = "strongticket search --preset laptop --steps 20 --out found.ticket"

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24  # characters of the live loss curve
_PRESET = f"Settings to start from; by default those of the task. ({' | '.join(PRESETS)})"
_FILE = "File with settings: lines such as steps = 600."
_TITLES = {
    "task": "Task and data",
    "model": "Model",
    "source": "Random weights and masks",
    "training": "Training",
    "run": "Progress and checkpoints",
}


def search(
    *,
    preset_name: Annotated[str | None, typer.Option("--preset", metavar="NAME", help=_PRESET)] = None,
    config: Annotated[Path | None, typer.Option(metavar="F.toml", help=_FILE)] = None,
    out: TicketOut,
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of runs: seeds SEED, SEED + 1, ...")] = 1,
    as_json: JsonFlag = False,
    **options: Any,
) -> None:
    """Freeze a random model, let data choose which of its weights are kept, and save the ticket.

    The task or the preset gives every setting (the defaults shown are those of the preset laptop); --config changes
    some of them, an option changes one. `--method dense` and `--method random` are baselines.
    """
    from strongticket import searching

    changes = _read(config) if config else {}
    preset_in_file = changes.pop("preset", None)
    changes |= {name: _parsed(name, value) for name, value in options.items() if value is not None}
    task = str(changes.get("task"))
    chosen = preset(str(preset_name or preset_in_file or (task if task in PRESETS else "laptop")), **changes)
    if ":" in chosen.source.method:
        sys.path.append(os.getcwd())  # where package.module:function may be
    if chosen.run.resume and not chosen.run.save_every:
        fail("--resume continues from checkpoints, but this search writes none.", "Add --save-every.")
    check(Count, seeds=seeds)
    runs = [chosen.changed(seed=chosen.seed + number) for number in range(seeds)]
    losses = deque[float](maxlen=_WIDTH * 8)
    with step(f"searching {out}", if_interrupted=_how_to_resume(chosen)) as advance:

        def on_step(number: int, loss: float) -> None:
            if number == 1:
                losses.clear()
            losses.append(loss)
            advance(number, chosen.training.steps, f"{curve(losses)} {loss:.3f}")

        results = []
        for run in runs:
            path = out.with_name(f"{out.stem}-seed{run.seed}{out.suffix}") if seeds > 1 else out
            results.append(searching.search(run, out=path, on_step=on_step).to_json())
    emit({"runs": results}, as_json=as_json, show=lambda: _tables(results))


def _how_to_resume(chosen: SearchConfig) -> str:
    if not chosen.run.save_every:
        return "nothing was kept; with --save-every N --resume a search can be continued"
    return SAME_COMMAND if chosen.run.resume else f"with --resume, {SAME_COMMAND}"


def curve(losses: Iterable[float]) -> str:
    """Losses as a line of bars, the highest in full height.

    >>> curve([3.0, 2.0, 1.0])
    '█▅▁'
    """
    values = list(losses)
    size = -(-len(values) // _WIDTH) or 1
    means = [sum(part) / len(part) for i in range(0, len(values), size) if (part := values[i : i + size])]
    low, high = min(means), max(means)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((mean - low) * scale)] for mean in means)


def _read(path: Path) -> JsonObject:
    """The settings in a TOML file, by name: lines such as steps = 600, as they are or in the table of their part."""
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of TOML or of UTF-8
        fail(f"{path} is not TOML: {error}.", "Write lines such as steps = 600.")
    settings: JsonObject = {}
    for key, value in stored.items():
        lines = value if isinstance(value, dict) else {key: value}
        for name, each in lines.items():
            settings[name.replace("-", "_")] = each
            if lines is value and PART_OF.get(name.replace("-", "_")) != key:
                fail(f"{path}: {name} is not a setting of [{key}].", f"The tables are {', '.join(PARTS)}.")
    if ":" in str(settings.get("method", "")):
        fail(
            f"{path}: method = {settings['method']!r} names code, which a settings file must not.",
            "Leave it out, and pass --method yourself.",
        )
    return settings


def _tables(results: list[JsonObject]) -> list[RenderableType]:
    shown: list[RenderableType] = []
    for result in results:
        head = table(result["path"], "", "")
        unit = " nats per token" if result["bits_per_byte"] is not None else ""
        head.add_row("validation loss", f"{result['loss']:.4f}{unit}")
        for name, value in result["measures"].items():
            head.add_row(name, f"{value:.2%}" if name == "accuracy" else f"{value:.4g}")
        if result["bits_per_byte"] is not None:
            head.add_row("bits per byte", f"{result['bits_per_byte']:.4f}")
        if result["curve"]:
            losses = [loss for _, loss in result["curve"]]
            head.add_row("training loss", f"{curve(losses)}  {losses[0]:.3f} to {losses[-1]:.3f}")
        if result["logit_std"] is not None:
            scale = f"{result['qk_scale']:.4g} (logits' deviation {result['logit_std']:.2f})"
            head.add_row("query/key scale", scale)
        head.add_row("parameters", f"{result['parameters']:,}, {result['kept']:,} kept or trained")
        head.add_row("data", result["data"])
        head.add_row("took", duration(result["seconds"]))
        sizes = table("size", "form", "bytes", numbers=(1,))
        sizes.add_row("this file", size(result["file_bytes"]))
        for form, count in result["dense_bytes"].items():
            sizes.add_row(f"dense {form}", size(count))
        shown += [head, sizes]
    return shown


# setting -> its annotation
_KINDS = {
    name: kind
    for part in (SearchConfig, *PARTS.values())
    for name, kind in get_type_hints(part, include_extras=True).items()
}


def _parsed(name: str, value: str | bool) -> Any:
    """The value of an option as its setting has it; text that cannot be one is left for the setting to refuse."""
    if isinstance(value, str):
        for read in (float, int, str, _words):
            with suppress(ValueError):
                if fits(found := read(value), _KINDS[name]):
                    return found
    return value


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _option(setting: Field[Any], title: str | None) -> inspect.Parameter:
    """The option of a setting, from its own description."""
    kind, default = _KINDS[setting.name], setting.default
    choices = [name for name in get_args(kind) if name] if get_origin(kind) is Literal else []
    help = f"{setting.metadata['help']} ({' | '.join(choices)})" if choices else setting.metadata["help"]
    if default not in (None, "", ()):
        help += f" [default: {'on' if default is True else 'off' if default is False else default}]"
    metavar = "NAME" if choices else "N" if get_args(kind)[:1] == (int,) else "X"
    option = typer.Option(
        help=help, show_default=False, rich_help_panel=title, metavar=None if kind is bool else metavar
    )
    annotation = Annotated[(bool if kind is bool else str) | None, option]
    return inspect.Parameter(
        setting.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None
    )


_first, _config, _out, *_last, _ = inspect.signature(search).parameters.values()
_options = [_option(SearchConfig.__dataclass_fields__["seed"], None)]
_options += [_option(setting, _TITLES[part]) for part, kind in PARTS.items() for setting in fields(kind)]
search.__signature__ = inspect.Signature([_first, _config, _out, *_options, *_last])  # type: ignore[attr-defined]
