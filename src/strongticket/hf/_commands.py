"""The command that makes a ticket, from what the ticket says about itself."""

import shlex
from typing import Any

from strongticket.search.config import SearchConfig
from strongticket.ticket import Ticket


def made_by(ticket: Ticket, base_model: str = "") -> str:
    """A command, or for a task mask the Python that searches one."""
    if ticket.kind == "search":
        return _search(ticket.metadata.get("search", {}))
    if ticket.kind == "task":
        return "# attach(model, weights='pretrained'), see docs/hugging-face.md"
    command = ["strongticket", "build", base_model or "MODEL", "--seed", str(ticket.seed)]
    if isinstance(tolerance := ticket.metadata.get("tolerance"), float):
        command += ["--tolerance", f"{tolerance:g}"]
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
