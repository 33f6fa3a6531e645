"""The command that makes a ticket, from what the ticket says about itself."""

import shlex
from typing import Any

from strongticket.searching.config import SearchConfig
from strongticket.ticket import Ticket


def made_by(ticket: Ticket, base_model: str = "") -> str:
    """A command, or for a task mask the Python that searches one."""
    if ticket.kind == "search":
        return _search(ticket.metadata.get("search", {}))
    if ticket.kind == "task":
        return "# attach(model, weights='pretrained'), see docs/hugging-face.md"
    return _build(ticket, base_model or "MODEL")


def _build(ticket: Ticket, model: str) -> str:
    """The bits that were asked for, or the tolerance; a loss has found one."""
    settings, metadata = ticket.settings, ticket.metadata
    units, bits, tolerance = (metadata.get(name) for name in ("units", "bits", "tolerance"))
    if isinstance(units, float):
        return (
            f"# strongticket.build_ticket(model, units={units}, ...), which the command line does not offer"
        )
    command = ["strongticket", "build", model, "--seed", str(ticket.seed)]
    if isinstance(bits, float):
        command += ["--bits", repr(bits)]
    elif isinstance(tolerance, float):
        command += ["--tolerance", repr(tolerance)]
    for name, value, usual in (
        ("assignment", metadata.get("assignment"), "balanced"),
        ("attention", settings["attention"], "linear"),
    ):
        command += [f"--{name}", str(value)] if value != usual else []
    if "calibrated_on" in metadata:
        command += ["--calibrate", str(metadata["calibrated_on"])]
    if settings["base"] is not None:
        command += ["--only", "PATTERN"]  # a ticket knows its tensors, not the patterns that chose them
    return shlex.join([*command, "--out", "F.ticket"])


def _search(settings: Any) -> str:
    """The settings that differ from the default preset's, as options."""
    usual = SearchConfig().settings()
    command = ["strongticket", "search"]
    for name, value in settings.items() if isinstance(settings, dict) else ():
        if name not in usual or value == usual[name]:
            continue
        option = name.replace("_", "-")
        command += (
            [f"--{option}" if value else f"--no-{option}"]
            if isinstance(value, bool)
            else [f"--{option}", str(value)]
        )
    return shlex.join([*command, "--out", "F.ticket"])
