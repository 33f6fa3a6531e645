"""A ticket's methods for Hugging Face folders and the hub; the room `hf` does the work."""

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strongticket.errors import MissingDependency, StrongTicketError

if TYPE_CHECKING:
    from strongticket.ticket._ticket import Ticket


class HubMethods:
    """Mixed into Ticket."""

    def save_pretrained(self: "Ticket", folder: str | os.PathLike[str], **options: Any) -> Path:
        """Write a folder that transformers loads after `import strongticket.hf`; see strongticket.hf.

        options: about, what its model card says besides what the ticket knows
        """
        return _hugging_face().save_pretrained(self, folder, **options)

    def push_to_hub(self: "Ticket", name: str, *, private: bool = False, **options: Any) -> str:
        """Upload what save_pretrained writes to the hub repository `name`; returns its address."""
        return _hugging_face().push_to_hub(self, name, private=private, **options)

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Ticket":
        """The ticket in a folder that save_pretrained wrote, or in the hub repository of that name."""
        return _hugging_face().from_pretrained(name)


def _hugging_face() -> Any:
    """By name: that room is above this one, and needs transformers."""
    try:
        return importlib.import_module("strongticket.hf")
    except ImportError as error:
        if isinstance(error, StrongTicketError) or (error.name or "").startswith("strongticket"):
            raise
        raise MissingDependency(error.name or "transformers", "huggingface") from None
