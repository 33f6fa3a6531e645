"""A ticket's methods for Hugging Face folders and the hub; the package `hf` does the work."""

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strongticket.ticket._ticket import Ticket


class HubMethods:
    """Mixed into Ticket."""

    def save_pretrained(self, folder: str | os.PathLike[str], **options: Any) -> Path:
        """Write a `folder` that transformers loads after `import strongticket.hf`; see strongticket.hf.

        options: about, what its model card says besides what the ticket knows
        """
        written: Path = _hugging_face().save_pretrained(self, folder, **options)
        return written

    def push_to_hub(self, name: str, *, private: bool = False, **options: Any) -> str:
        """Upload what save_pretrained writes to the hub repository `name`; returns its address.

        private: whether a repository that is created is private
        options: about, as in save_pretrained
        """
        address: str = _hugging_face().push_to_hub(self, name, private=private, **options)
        return address

    @classmethod
    def from_pretrained(cls, name: str | os.PathLike[str]) -> "Ticket":
        """The ticket in a folder that save_pretrained wrote, or in the hub's repository `name`."""
        ticket: Ticket = _hugging_face().from_pretrained(name)
        return ticket


def _hugging_face() -> Any:
    """The package `hf`, imported by name: it builds on this one and needs transformers."""
    return importlib.import_module("strongticket.hf")
