"""Tickets in the Hugging Face world. Importing this package teaches transformers to load them.

    import strongticket.hf
    model = AutoModelForCausalLM.from_pretrained("folder-or-hub-name")

The model is an ordinary one of its own class; nothing in the folder is code.
"""

from strongticket.errors import as_missing_dependency as _as_missing_dependency

try:
    from strongticket.hf.card import CardInfo as CardInfo
    from strongticket.hf.folder import export as export
    from strongticket.hf.folder import from_pretrained as from_pretrained
    from strongticket.hf.folder import push_to_hub as push_to_hub
    from strongticket.hf.folder import save_pretrained as save_pretrained
except ModuleNotFoundError as error:
    raise _as_missing_dependency(error) from None
