"""strongticket search: find a ticket on data."""

import inspect
import os
import sys
import tomllib
from collections import deque
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from rich.console import RenderableType

from strongticket.cli.frame import SAME_COMMAND, JsonFlag, TicketOut, duration, emit, fail, size, step, table
from strongticket.files import JsonObject
from strongticket.searching.config import PRESETS, SearchConfig, preset
from strongticket.searching.config.settings import GROUPS

EXAMPLE = "strongticket search --preset laptop --steps 20 --out found.ticket"


_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24  # characters of the live loss curve


def search(preset_name: str | None, config: Path | None, out: Path, as_json: bool, **settings: Any) -> None:
    """Freeze a random model, let data choose which of its weights are kept, and save the ticket.

    The task or the preset gives every setting (the defaults shown are those of the preset laptop); --config changes
    some of them, an option changes one. `--method dense` and `--method random` are baselines.
    """
    from strongticket import searching

    given = {name: value for name, value in settings.items() if value is not None}
    changes = (_read(config) if config else {}) | given
    name = preset_name or changes.pop("preset", None) or _preset_of(changes.get("task", "language"))
    changes.pop("preset", None)
    chosen = preset(name, **changes)
    if ":" in chosen.method:
        sys.path.append(os.getcwd())  # where package.module:function may be
    if chosen.resume and not chosen.save_every:
        fail("--resume continues from checkpoints, but this search writes none.", "Add --save-every.")
    losses = deque[float](maxlen=_WIDTH * 8)
    with step(f"searching {out}", if_interrupted=_how_to_resume(chosen)) as advance:

        def on_loss(number: int, loss: float) -> None:
            if number == 1:
                losses.clear()
            losses.append(loss)
            advance(number, chosen.steps, f"{curve(losses)} {loss:.3f}")

        results = []
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            path = out.with_name(f"{out.stem}-seed{seed}{out.suffix}") if chosen.seeds > 1 else out
            found = searching.search(replace(chosen, seed=seed, seeds=1), out=path, on_loss=on_loss)
            results.append(found.to_json())
    emit({"runs": results}, as_json=as_json, show=lambda: _tables(results))


def _how_to_resume(chosen: SearchConfig) -> str:
    if not chosen.save_every:
        return "nothing was kept; with --save-every N --resume a search can be continued"
    return (
        SAME_COMMAND if chosen.resume else "the same command with --resume resumes from the last checkpoint"
    )


def curve(losses: Iterable[float], width: int = _WIDTH) -> str:
    """Losses as a line of bars, the highest in full height.

    >>> curve([3.0, 2.0, 1.0])
    '█▅▁'
    """
    values = list(losses)
    size = -(-len(values) // width) or 1
    means = [sum(part) / len(part) for i in range(0, len(values), size) if (part := values[i : i + size])]
    low, high = min(means), max(means)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((mean - low) * scale)] for mean in means)


def _preset_of(task: str) -> str:
    return task if task in PRESETS else "laptop"


def _read(path: Path) -> JsonObject:
    """The settings in a TOML file, under the names of the options."""
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"{path}: {error.strerror}.", "Check the path.")
    except ValueError as error:  # of TOML or of UTF-8
        fail(f"{path} is not TOML: {error}.", "Write lines such as steps = 600.")
    kinds = get_type_hints(SearchConfig)
    settings = {}
    for key, value in stored.items():
        name = key.replace("-", "_")
        kind = kinds.get(name, str)
        if kind is str and type(value) in (int, float):
            value = str(value)  # qk-scale = 2.4
        if type(value) is int and kind in (float, float | None):
            value = float(value)
        if not isinstance(value, kind) or (type(value) is bool and kind is int):
            fail(f"{path}: {key} = {value!r} is not of type {getattr(kind, '__name__', kind)}.")
        settings[name] = value
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
        shown += [head, "", sizes, ""]
    return shown


def _signature() -> inspect.Signature:
    """The options: --preset, --config, --out, --json and one for each setting, from its own description."""
    hints = get_type_hints(SearchConfig)
    known = Literal[tuple(PRESETS)]
    described: dict[str, tuple[Any, Any]] = {
        "preset_name": (
            Annotated[
                known | None,
                typer.Option(
                    "--preset",
                    metavar="NAME",
                    help=f"Settings to start from; by default those of the task. ({' | '.join(PRESETS)})",
                ),
            ],
            None,
        ),
        "config": (
            Annotated[
                Path | None,
                typer.Option(metavar="F.toml", help="File with settings: lines such as steps = 600."),
            ],
            None,
        ),
        "out": (TicketOut, inspect.Parameter.empty),
    }
    group = ""
    usual = SearchConfig().settings()
    for setting in fields(SearchConfig):
        group = GROUPS.get(setting.name, group)
        option = typer.Option(
            help=_help(setting.metadata, usual.get(setting.name, setting.default)),
            show_default=False,
            rich_help_panel=group,
            metavar=_metavar(setting.metadata["choices"], hints[setting.name]),
        )
        described[setting.name] = (Annotated[hints[setting.name] | None, option], None)
    described["as_json"] = (JsonFlag, False)
    return inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, (kind, default) in described.items()
        ]
    )


def _help(metadata: Any, default: object) -> str:
    choices = " | ".join(choice for choice in metadata["choices"] if choice)
    parts = [metadata["help"], f"({choices})" if choices else "", _shown(default)]
    return " ".join(filter(None, parts))


def _metavar(choices: tuple[str, ...], kind: Any) -> str | None:
    return "NAME" if choices else None if kind in (bool, bool | None) else "N" if kind is int else "X"


def _shown(default: object) -> str:
    """A default as help shows it; nothing for an empty one."""
    if default is None or default == "":
        return ""
    return f"[default: { ({True: 'on', False: 'off'}[default] if isinstance(default, bool) else default) }]"


search.__signature__ = _signature()  # type: ignore[attr-defined]
