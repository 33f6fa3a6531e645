"""strongticket build: a ticket for a target network."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from strongticket.cli.frame import ADVANCED, SAME_COMMAND, JsonFlag, SeedOption, TicketOut, fail, option, step
from strongticket.cli.show import show
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, exclusive_lock

EXAMPLE = "strongticket build demo/attention/target.safetensors --out my.ticket --epsilon 1e-6"
MODELS = "Hugging Face models"  # a group of options
# What build and plan share.
ToleranceOption = Annotated[
    float | None,
    option(MODELS, "Root mean square error of a tensor's numbers, relative to their own. Default: 0.01."),
]
BitsOption = Annotated[
    float | None,
    option(MODELS, "Instead of --tolerance: size of the file, in bits per number of the model."),
]
OnlyOption = Annotated[
    list[str] | None,
    option(
        MODELS,
        "Only tensors whose names match, such as 'model.layers.0.*'; repeatable. Default: all.",
        "PATTERN",
    ),
]
WorkersOption = Annotated[int | None, option(MODELS, "Number of workers. Default: one per core.")]
StatesOption = Annotated[
    int | None,
    option(ADVANCED, "States of the trellis along which random weights are chosen. Default: 8.", "1|4|8|64"),
]


def build(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A network saved by strongticket.nets.save, or a Hugging Face model: its folder or hub name.",
        ),
    ],
    out: TicketOut,
    epsilon: Annotated[float | None, typer.Option(help="Output error to certify; finds the width.")] = None,
    width: Annotated[
        int | None, typer.Option(help="Instead of --epsilon: hidden units of every product.")
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Certify inputs with ‖x‖ up to this. Default: √d.")
    ] = None,
    tolerance: ToleranceOption = None,
    bits: BitsOption = None,
    loss: Annotated[
        str | None,
        option(MODELS, "Instead of --tolerance: how much the loss on the text of --data may grow.", "+1%"),
    ] = None,
    data: Annotated[
        Path | None,
        option(
            MODELS,
            "For --loss: a text file; the spacing is chosen on one half and checked on the other.",
            "TEXT",
        ),
    ] = None,
    calibrate: Annotated[
        Path | None,
        option(MODELS, "Feed errors of linear layers forward to cancel on this text, as GPTQ does.", "TEXT"),
    ] = None,
    only: OnlyOption = None,
    workers: WorkersOption = None,
    cluster: Annotated[
        str | None, option(MODELS, "Address of a Dask scheduler whose workers compute instead.", "ADDRESS")
    ] = None,
    arithmetic: Annotated[
        Literal["float32", "float64"], option(ADVANCED, "Arithmetic that the certificate covers.")
    ] = "float32",
    assignment: Annotated[
        Literal["balanced", "paper"] | None,
        option(ADVANCED, "For networks: how units are assigned to rows; paper is Lemma 7."),
    ] = None,
    rank: Annotated[
        bool | None,
        typer.Option(
            "--rank",
            rich_help_panel=ADVANCED,
            help="For networks: build narrow heads through their own factors, of rank d_K and d_V: fewer units.",
        ),
    ] = None,
    kept: Annotated[
        float | None,
        option(ADVANCED, "For networks: share of its products that every entry keeps. Default: about half."),
    ] = None,
    states: StatesOption = None,
    by: Annotated[
        Literal["choice", "subset"] | None,
        option(
            ADVANCED,
            "For models: one of many random weights for each number (default), or every matrix a product of two "
            "pruned random ones, by subset sums.",
        ),
    ] = None,
    attention: Annotated[
        Literal["linear", "products"] | None,
        option(
            ADVANCED,
            "For models: W_QK and W_VO of every head as in Theorem 3, by subset sums; GPT-2 and Llama.",
        ),
    ] = None,
    per_row: Annotated[
        int | None, option(ADVANCED, "By subset sums: hidden units of each row. Default: 24.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Find, in a random network, the ticket that computes what TARGET does; certify it and save it.

    Of a Hugging Face model every number becomes one of many random weights. Finished blocks are kept beside the ticket
    until it is written; after an interruption the same command continues from them.
    """
    for_models: JsonObject = dict(
        tolerance=tolerance, bits=bits, loss=loss, data=data, calibrate=calibrate, only=only, states=states, by=by,
        attention=attention, per_row=per_row,
    )  # fmt: skip
    for_networks = dict(
        width=width, epsilon=epsilon, radius=radius, assignment=assignment, rank=rank, kept=kept
    )
    path = Path(target)
    if not path.exists() and path.suffix in (".safetensors", ".net"):
        fail(f"{path}: no such file.", "Give a saved network, or a Hugging Face model's folder or hub name.")
    if path.is_file():
        why = f"{target} is a network of strongticket.nets"
        refuse_options(why, **for_models, workers=workers, cluster=cluster)
        if (width is None) == (epsilon is None):
            fail("give either --epsilon or --width.", f"For example: {EXAMPLE}")
        from strongticket import nets
        from strongticket.builders import build_network

        network, options = nets.load(target), given_options(for_networks)
        with step(f"building {out}") as advance, exclusive_lock(out):
            build_network(network, arithmetic=arithmetic, seed=seed, progress=advance, **options).save(out)
    else:
        refuse_options(f"{target} is not a file, so it names a model", **for_networks)
        from strongticket.builders import build_file

        options = given_options(for_models) | dict(workers=workers, cluster=cluster, seed=seed)
        if loss is not None:
            options["loss"] = _parse_loss(loss)
        with step(f"building {out}", if_interrupted=SAME_COMMAND) as advance:
            build_file(target, out, progress=advance, **options)
    show(out, as_json)


def given_options(options: JsonObject) -> JsonObject:
    """Those that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _parse_loss(text: str) -> float:
    """Parse +1%, 1% or 0.01, which all mean 0.01."""
    number = text.removeprefix("+")
    try:
        growth = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        growth = math.nan
    if not (growth < 1 or number.endswith("%")):  # 5 is more likely 5 % than 500 %
        raise StrongTicketError(f"--loss {text}: expected a growth such as +1%")
    return growth


def refuse_options(why: str, **options: Any) -> None:
    """Fail if one of these options is given, and say why it does not apply."""
    for name, value in options.items():
        if value is not None:
            fail(f"--{name.replace('_', '-')} does not apply: {why}.", "Leave it out.")
