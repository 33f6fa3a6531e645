"""strongticket demo: a language ticket that runs in the browser, and an attention layer with its certificate."""

from pathlib import Path
from typing import Annotated

from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, SeedOption, duration, emit, folder_option, size, step, table
from strongticket.files import JsonObject

EXAMPLE = "strongticket demo --out demo"


def demo(
    out: Annotated[Path, folder_option("Where to write the results.")] = Path("demo"),
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Show two tickets on a page that opens offline. Takes less than a minute.

    The first is a language model that was searched before and comes with the package: the page runs it. The second
    is found here and now: train the paper's small attention layer, build its ticket, certify, save, reload, verify,
    measure and attack it.
    """
    from strongticket.reproduce import demo as demonstration

    result = demonstration.demo(out, seed, step)
    emit(result, as_json=as_json, show=lambda: _tables(result))


def _tables(result: JsonObject) -> list[RenderableType]:
    language, attention = result["language"], result["attention"]
    first = table("a language model from a seed and a mask", "", "")
    first.add_row("weights", _weights(language))
    first.add_row("ticket file", f"{size(language['bytes'])} (as float32 {size(language['float32'])})")
    first.add_row("validation loss", f"{language['loss']:.2f} nats per character of {language['data']}")
    errors = attention["largest_test_error"].items()
    second = table("an attention layer, with a proof", "", "")
    second.add_row("certified error, for every input", f"{attention['certified_error']:.2g}")
    second.add_row("attacked by gradient ascent", f"{attention['attacked_error']:.2g}")
    second.add_row("largest on test data", ", ".join(f"{error:.2g} (length {n})" for n, error in errors))
    second.add_row("weights", _weights(attention))
    second.add_row("took", duration(result["seconds"]))
    return [first, second, f"open {result['page']}"]


def _weights(numbers: JsonObject) -> str:
    return f"{numbers['weights']:,} random, {numbers['kept']:,} kept, 0 trained"
