"""strongticket export: a ticket as an ordinary model."""

from pathlib import Path
from typing import Annotated

import typer

from strongticket.cli.frame import ADVANCED, JsonFlag, emit, fail, folder_option, option, size, step

EXAMPLE = "strongticket export found.ticket --out model --dtype bfloat16"


def export(
    file: Annotated[
        Path, typer.Argument(metavar="F.ticket", help="A ticket of a transformers model, built or searched.")
    ],
    out: Annotated[Path, folder_option("Where to write the model.")],
    dtype: Annotated[
        str, typer.Option(metavar="float32|float16|bfloat16", help="Type of its weights.")
    ] = "float32",
    ticket: Annotated[
        bool, typer.Option("--ticket", help="Keep the weights as a ticket: for `import strongticket.hf`.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="The trained model of a partial ticket or a task mask."),
    ] = None,
    made_from: Annotated[
        str, option(ADVANCED, "For the card: hub name or folder of the original model.", "MODEL")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Write the merged network as a Hugging Face folder that any tool loads: weights, config, tokenizer, card.

    With --ticket the folder holds the ticket itself, as small as the file, and loads with from_pretrained after
    `import strongticket.hf`.
    """
    from strongticket import hf
    from strongticket.ticket import Ticket

    if ticket and base is not None:
        fail("--ticket keeps a ticket as it is; --base is for merging one.", "Leave one of them out.")
    card_info = hf.CardInfo(made_from)
    loaded = Ticket.load(file)
    with step(f"writing {out}"):
        if ticket:
            folder = hf.save_pretrained(loaded, out, card_info=card_info)
        else:
            folder = hf.export(loaded, out, dtype=dtype, base=base, card_info=card_info)
    bytes_of = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    result = {"folder": str(folder), "files": bytes_of, "dtype": None if ticket else dtype}
    lines = [f"wrote {folder}", *(f"{name}  {size(count)}" for name, count in bytes_of.items())]
    emit(result, as_json=as_json, show=lambda: ["\n".join(lines)])
