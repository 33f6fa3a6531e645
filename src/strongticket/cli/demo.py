"""strongticket demo: a language ticket that runs in the browser, then the paper's attention with its certificate."""

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
    """Show two tickets on pages that open offline. Takes a minute.

    The first is a language model that was searched before and comes with the package: its page runs it. The second
    is found here and now: train the paper's small attention layer, build its ticket, certify, save, reload, verify,
    measure and attack it.
    """
    from strongticket.experiments import demo as experiment
    from strongticket.experiments.driver import Options, Run, run_experiment

    attention = out / "attention"
    run = Run(Options(attention, seed=seed), attention, step)
    outcome = run_experiment(experiment, run, f"strongticket demo --seed {seed}")
    with step("checking the language ticket and making its page"):
        language = experiment.write_language_page(out, "attention/index.html")
    result = {
        "page": str(language.page),
        "language": language.numbers(),
        "attention_page": str(outcome.page),
        "ticket": str(attention / "attention.ticket"),
        "seconds": round(outcome.seconds, 1),
        **outcome.result.numbers(),
    }
    emit(result, as_json=as_json, show=lambda: _tables(result, outcome.result.headline()))


def _tables(result: JsonObject, headline: list[tuple[str, str]]) -> list[RenderableType]:
    language = result["language"]
    first = table("a language model from a seed and a mask", "", "")
    first.add_row("weights", f"{language['weights']:,} random, {language['kept']:,} kept, 0 trained")
    first.add_row(
        "ticket file", f"{size(language['bytes'])} (random network as float32 {size(language['float32'])})"
    )
    first.add_row("validation loss", f"{language['loss']:.2f} nats per character of {language['data']}")
    second = table("an attention layer, with a proof", "", "")
    for what, value in headline:
        second.add_row(what, value)
    sizes = result["bytes"]
    second.add_row(
        "ticket file", f"{size(sizes['file'])} (random network as float32 {size(sizes['float32'])})"
    )
    second.add_row("took", duration(result["seconds"]))
    return [first, "", second, "", f"open {result['page']}"]
