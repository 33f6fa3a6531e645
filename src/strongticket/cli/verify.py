"""strongticket verify: is the file whole, and is the network as near to its target as it says?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from strongticket.cli.against import compare_nets, is_of_nets, model_pair, relative_errors
from strongticket.cli.against_tables import nets_tables
from strongticket.cli.frame import JsonFlag, SeedOption, emit, fail, step, table
from strongticket.cli.show import certificate_line
from strongticket.files import JsonObject

if TYPE_CHECKING:
    from strongticket.ticket import Ticket

EXAMPLE = "strongticket verify demo/attention/attention.ticket --against demo/attention/target.safetensors"
SLACK = 1 + 1e-9  # two computations of one bound may differ in their last digits
ROUNDING = 1e-13  # of running both networks in float64


def verify(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET", help="The network that it stands for: a file, model folder or hub name."
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Fail unless this output error is certified; needs --against.")
    ] = None,
    inputs: Annotated[
        int, typer.Option(help="With --against: random inputs to measure the error on.")
    ] = 1024,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Regenerate every weight and check it; with --against also the error of every matrix, the certificate
    and the error measured on random inputs, or for a model the error of its weights. Exit code 1 when anything
    does not hold.
    """
    from strongticket.ticket import Ticket

    if epsilon is not None and against is None:
        fail("--epsilon needs a target to measure the error against.", "Add --against TARGET.")
    ticket = Ticket.load(file)
    with step("regenerating the weights"):
        checked = ticket.verify()
    result: JsonObject = {
        "file": str(file),
        "tensors": [{"name": t.name, "shape": list(t.shape), "kept": t.kept} for t in checked.tensors],
        "weights": checked.weights,
        "kept": checked.kept,
        "certificate": ticket.certificate,
        "problems": [],
    }
    result |= _checked(ticket.certificate, checked.certificate_bound, against is not None)
    if against is not None:
        if is_of_nets(ticket):
            with step("comparing it with the target"):
                _compare_nets(result, ticket, Path(against), epsilon, inputs, seed)
        else:
            if epsilon is not None:
                fail(
                    "--epsilon is an output error that a certificate of a whole network bounds, and a ticket of a "
                    "model has none.",
                    "Leave it out: the error of the weights is checked.",
                )
            _compare_models(result, ticket, against)
    result["ok"] = not result["problems"]
    emit(result, as_json=as_json, show=lambda: _tables(result))
    if result["problems"]:
        fail(
            "; ".join(result["problems"]),
            "Compare it with the target that it was built for, or build one that is nearer.",
        )


def _checked(certificate: JsonObject | None, bound: bool, against: bool) -> dict[str, list[str]]:
    """What this run checks, and what it does not."""
    did = ["the file's sha256", "every weight, regenerated and compared with its checksum"]
    did_not: list[str] = []
    if certificate:
        whose = "that the certificate was computed for these masks"
        (did if bound else did_not).append(whose if bound else f"{whose}: the file is older and does not say")
        true = "that the certified bound is true"
        (did if against else did_not).append(true if against else f"{true}: add --against TARGET")
    elif not against:
        did_not.append("how near it is to its target: add --against TARGET")
    return {"checked": did, "not_checked": did_not}


def _compare_models(result: JsonObject, ticket: "Ticket", against: str) -> None:
    """The error of the tensors that the ticket makes, each in units of its own, against what the file states."""
    errors = relative_errors(*model_pair(ticket, against))
    of_file = _stated(ticket)
    if names := errors.keys() & of_file.keys():
        errors = {name: errors[name] for name in names}
    numbers = sum(size for size, _ in errors.values()) or 1  # none, where all of it is made of products
    found = (sum(size * error for size, error in errors.values()) / numbers) ** 0.5
    stated = (sum(errors[name][0] * of_file[name] ** 2 for name in names) / numbers) ** 0.5 if names else None
    result["against"] = {"target": against, "relative_error": found, "stated": stated}
    if stated is not None and found > stated * 1.01:
        result["problems"].append(
            f"the file states a relative error of {stated:.3g}, against {against} it is {found:.3g}"
        )


def _stated(ticket: "Ticket") -> dict[str, float]:
    """The relative error of each tensor as a built ticket states it; searched tickets and task masks state none."""
    try:
        return {name: float(relative) for name, (_, relative) in ticket.metadata.get("errors", {}).items()}
    except (AttributeError, OverflowError, TypeError, ValueError):
        fail(f"The metadata states errors that cannot be read: {ticket.metadata['errors']!r:.80}")


def _compare_nets(
    result: JsonObject, ticket: "Ticket", against: Path, epsilon: float | None, inputs: int, seed: int
) -> None:
    stored = ticket.certificate or {}
    found = compare_nets(ticket, against, inputs=inputs, seed=seed)
    result["against"] = found
    bound, measured = found["certificate"]["bound"], found["measured_error"]
    if stored.get("bound") is not None and bound > stored["bound"] * SLACK:
        result["problems"].append(
            f"the file certifies an error of {stored['bound']:.3g}, against {against} it is {bound:.3g}"
        )
    if measured > bound * SLACK + ROUNDING:
        result["problems"].append(f"measured error {measured:.3g} is above the certificate {bound:.3g}")
    if epsilon is not None and not bound <= epsilon:
        result["problems"].append(f"the certified error {bound:.3g} is above the {epsilon:g} asked for")


def _tables(d: JsonObject) -> list[RenderableType]:
    head = table(d["file"], "", "")
    head.add_row("weights", f"{d['weights']:,} regenerated, all as saved; {d['kept']:,} kept")
    for label, key in (("checked", "checked"), ("not checked", "not_checked")):
        for number, line in enumerate(d[key]):
            head.add_row("" if number else label, line)
    if d["certificate"]:
        head.add_row("the file certifies", certificate_line(d["certificate"]))
    if "against" not in d:
        return [head]
    found = d["against"]
    if "relative_error" in found:
        stated = "" if found["stated"] is None else f"; the file states {found['stated']:.3g}"
        head.add_row("relative error of the weights", f"{found['relative_error']:.3g}{stated}")
        return [head]
    return [head, "", *nets_tables(found)]
