"""strongticket search: find a ticket on data by edge-popup."""

import inspect
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, duration, emit, fail, size, step, table
from strongticket.search.config import PRESETS, SearchConfig, preset

EXAMPLE = "strongticket search --preset laptop --steps 20 --out found.ticket"


def search(preset_name: str, out: Path, as_json: bool, **settings: Any) -> None:
    """Freeze a random language model, let data choose which of its weights are kept, and save the ticket.

    A preset gives every setting; an option changes one. `--method dense` and `--method random` are baselines.
    """
    from strongticket.search import search_all

    sys.path.append(os.getcwd())  # where --method package.module:function may be
    given = {name: value for name, value in settings.items() if value is not None}
    config = preset(preset_name, **given)
    if config.resume and not config.save_every:
        fail("--resume goes on from checkpoints, but none are written.", "Add --save-every.")
    results = []
    with step(f"searching {out}") as advance:
        for number, result in enumerate(search_all(config, out=out, on_step=advance)):
            results.append(result.to_json())
            advance(number + 1, config.seeds)
    emit({"runs": results}, as_json=as_json, show=lambda: _tables(results))


def _tables(results: list[dict[str, Any]]) -> list[RenderableType]:
    shown: list[RenderableType] = []
    for result in results:
        head = table(result["path"], "", "")
        head.add_row("validation loss", f"{result['loss']:.4f} nats a token")
        head.add_row("bits per byte", f"{result['bits_per_byte']:.4f}")
        head.add_row(
            "query/key scale", f"{result['qk_scale']:.4g} (logits' deviation {result['logit_std']:.2f})"
        )
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
    """The options: --preset, --out, --json and one for each setting of a search, from its own description."""
    hints = get_type_hints(SearchConfig)
    known = Literal[tuple(PRESETS)]  # type: ignore[valid-type]
    described: dict[str, tuple[Any, Any]] = {
        "preset_name": (Annotated[known, typer.Option("--preset", help="Settings to start from.")], "laptop"),
        "out": (
            Annotated[Path, typer.Option(metavar="F.ticket", help="Where to write the ticket.")],
            inspect.Parameter.empty,
        ),
    }
    for each in fields(SearchConfig):
        option = typer.Option(help=each.metadata["help"], show_default="the preset's")
        described[each.name] = (Annotated[hints[each.name] | None, option], None)
    described["as_json"] = (JsonFlag, False)
    return inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, (kind, default) in described.items()
        ]
    )


search.__signature__ = _signature()  # type: ignore[attr-defined]
