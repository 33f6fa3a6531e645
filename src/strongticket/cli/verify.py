"""strongticket verify: is the file whole, and is the network as near to its target as it says?"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from strongticket.cli.frame import JsonFlag, SeedOption, emit, fail, step, table
from strongticket.cli.show import certificate_line

EXAMPLE = "strongticket verify demo/demo.ticket --against demo/target.safetensors"
SLACK = 1 + 1e-9  # two computations of one bound may differ in their last digits
ROUNDING = 1e-13  # of running both networks in float64


def verify(
    file: Annotated[Path, typer.Argument(metavar="F.ticket", help="A ticket file.")],
    against: Annotated[
        Path | None, typer.Option(metavar="TARGET", help="The network that the ticket stands for.")
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
    and the error measured on random inputs. Exit code 1 when anything does not hold.
    """
    from strongticket.ticket import Ticket

    if epsilon is not None and against is None:
        fail("--epsilon says how near to the target, but none is given.", "Add --against TARGET.")
    ticket = Ticket.load(file)
    with step("regenerating the weights"):
        checked = ticket.verify()
    result: dict[str, Any] = {
        "file": str(file),
        "tensors": [{"name": t.name, "shape": list(t.shape), "kept": t.kept} for t in checked.tensors],
        "weights": checked.weights,
        "kept": checked.kept,
        "certificate": ticket.certificate,
        "problems": [],
    }
    result |= _checked(ticket.certificate, checked.certificate_bound, against is not None)
    if against is not None:
        if ticket.kind == "pretrained":
            fail(
                "--against is for networks of strongticket.nets.",
                "Use `strongticket compare` for this ticket.",
            )
        with step("comparing it with the target"):
            _compare(result, ticket, against, epsilon, inputs, seed)
    result["ok"] = not result["problems"]
    emit(result, as_json=as_json, show=lambda: _tables(result))
    if result["problems"]:
        fail(
            "; ".join(result["problems"]),
            "Compare it with the target that it was built for, or build one that is nearer.",
        )


def _checked(certificate: dict[str, Any] | None, bound: bool, against: bool) -> dict[str, list[str]]:
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


def _compare(
    result: dict[str, Any], ticket: Any, against: Path, epsilon: float | None, inputs: int, seed: int
) -> None:
    from strongticket import nets

    stored = ticket.certificate or {}
    found = nets.compare(
        nets.load(against),
        ticket.network(),
        radius=stored.get("radius"),
        inputs=inputs,
        seed=seed,
        evaluation=stored.get("arithmetic", "exact"),  # older files say nothing
        floors=stored.get("floors"),
    )
    bound = found.certificate.bound
    result["against"] = {
        "target": str(against),
        "matrices": [asdict(matrix) for matrix in found.matrices],
        "certificate": found.certificate.to_dict(),
        "measured_error": found.measured,
        "mean_error": found.mean,
        "mean_output": found.output,
        "relative": found.relative,
        "inputs": found.inputs,
    }
    if stored.get("bound") is not None and bound > stored["bound"] * SLACK:
        result["problems"].append(
            f"the file certifies an error of {stored['bound']:.3g}, against {against} it is {bound:.3g}"
        )
    if found.measured > bound * SLACK + ROUNDING:
        result["problems"].append(f"measured error {found.measured:.3g} is above the certificate {bound:.3g}")
    if epsilon is not None and not bound <= epsilon:
        result["problems"].append(f"the certified error {bound:.3g} is above the {epsilon:g} asked for")


def _tables(d: dict[str, Any]) -> list[RenderableType]:
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
    head.add_row("certified now", certificate_line(found["certificate"]))
    measured = f"{found['measured_error']:.3g} at most, {found['mean_error']:.3g} on average"
    head.add_row("measured", f"{measured}, on {found['inputs']:,} random inputs")
    relative = found["relative"]
    head.add_row(
        "relative to the output",
        f"certified to {relative['bound']:.3g}, measured {relative['measured']:.3g} (mean output "
        f"{found['mean_output']:.3g})",
    )
    matrices = table(
        "error of every matrix", "matrix", "shape", "largest entry", "largest error", numbers=(2, 3)
    )
    for m in found["matrices"]:
        shape = " × ".join(map(str, m["shape"]))
        matrices.add_row(m["name"], shape, f"{m['largest']:.3g}", f"{m['error']:.3g}")
    return [head, "", matrices]
