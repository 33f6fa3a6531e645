"""Tickets in the Hugging Face world. Importing this room teaches transformers to load them:

    import strongticket.hf
    model = AutoModelForCausalLM.from_pretrained("folder-or-hub-name")

The model is an ordinary one of its own class; nothing in the folder is code.
"""

from strongticket.hf._card import About as About
from strongticket.hf._folder import export as export
from strongticket.hf._folder import from_pretrained as from_pretrained
from strongticket.hf._folder import push_to_hub as push_to_hub
from strongticket.hf._folder import save_pretrained as save_pretrained
from strongticket.hf._quantizer import register as _register

_register()
