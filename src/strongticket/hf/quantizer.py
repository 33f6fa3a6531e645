"""How `from_pretrained` of transformers loads a ticket: as a quantisation method that fills the whole model.

`model.safetensors` holds one uint8 tensor, the ticket's bytes. It is read before transformers looks for weights, which
finds none; then the model's parameters are filled. What remains is an ordinary model.
"""

import os
from typing import Any

import torch
from safetensors import safe_open
from transformers import PreTrainedConfig
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from strongticket.errors import TicketError, prefixed
from strongticket.models.configs import make_config
from strongticket.models.rebuilding import Architecture
from strongticket.models.tensors import persistent_buffers
from strongticket.ticket import Ticket
from strongticket.ticket.kinds import kind_of

METHOD = "strongticket"  # `quant_method` in config.json
TENSOR = "ticket"  # the one tensor of model.safetensors
# What all configs have and the network does not depend on: types, labels, what is returned; and our own entry.
_FREE = {*PreTrainedConfig().to_dict(), "quantization_config", "use_cache"}


@register_quantization_config(METHOD)
class TicketConfig(QuantizationConfigMixin):
    """The `quantization_config` of a ticket's folder: its name is all it says."""

    def __init__(self, quant_method: str = METHOD, **_: Any) -> None:
        self.quant_method = quant_method  # type: ignore[assignment] # the enum has only the methods of transformers


@register_quantizer(METHOD)
class TicketQuantizer(HfQuantizer):
    """Fills transformers' own model with the weights of a ticket."""

    is_trainable = True

    def is_serializable(self) -> bool:
        return True

    def update_dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        """Without a dtype of the caller's, transformers would take the tensor's, uint8."""
        return dtype if dtype is not None and dtype.is_floating_point else torch.float32

    def _process_model_before_weight_loading(self, model: Any, **options: Any) -> None:
        self._ticket = read_ticket(options["checkpoint_files"][0])
        # Every tensor is missing from the file and filled below: no initialisation, no warnings about it.
        model._keys_to_ignore_on_load_missing = {".*"}
        model._keys_to_ignore_on_load_unexpected = {f"{TENSOR}$"}
        model.tie_weights = lambda **_: type(model).tie_weights(model, recompute_mapping=False)
        # Buffers that no file stores are computed as for any model.
        for tensor in (*model.parameters(), *persistent_buffers(model).values()):
            tensor._is_hf_initialized = True

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        del model._keys_to_ignore_on_load_missing, model._keys_to_ignore_on_load_unexpected, model.tie_weights
        _fill(model, self._ticket)
        self.remove_quantization_config(model)  # type: ignore[no-untyped-call]
        return model


def read_ticket(path: str | os.PathLike[str]) -> Ticket:
    """The ticket in a model.safetensors."""
    with prefixed(f"cannot read {path}", TicketError), safe_open(path, framework="np") as file:
        if file.keys() != [TENSOR] or file.get_slice(TENSOR).get_dtype() != "U8":
            raise TicketError(f"{path} holds a model, but not a ticket")
        data = file.get_tensor(TENSOR).tobytes()
    return Ticket.from_bytes(data)


def _fill(model: Any, ticket: Ticket) -> None:
    """Give a model of the ticket's class, or its bare base model, the weights of the ticket's network."""
    kind: Any = kind_of(ticket.kind)
    architecture: Architecture = kind.architecture(ticket.settings)
    _check_config(model.config.to_dict(), make_config(architecture.config).to_dict())
    network: Any = model
    if type(model).__name__ != architecture.name:
        network = architecture.empty()  # its head stays empty
        prefix = network.base_model_prefix
        if type(model) is not type(getattr(network, prefix, None)):
            raise TicketError(
                f"the ticket belongs to a {architecture.name}, which has no weights for a {type(model).__name__}",
                hint=f"Load it with an Auto class that gives a {architecture.name}.",
            )
        setattr(network, prefix, model)
        network.tie_weights()
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    ticket.network(network)
    for parameter in trainable:  # as of any model that transformers loads
        parameter.requires_grad_(True)


def _check_config(folder: dict[str, Any], ticket: dict[str, Any]) -> None:
    """Refuse a config.json that would run the weights as another network; what a caller may choose is not compared."""
    for name in sorted((folder.keys() | ticket.keys()) - _FREE):
        ours, theirs = folder.get(name), ticket.get(name)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            _check_config(ours, theirs)
        elif ours != theirs and "drop" not in name and not name.endswith("_token_id"):
            raise TicketError(
                f"config.json says {name} = {ours!r:.80}, the ticket's network has {theirs!r:.80}",
                hint="Get a fresh copy of the folder.",
            )
