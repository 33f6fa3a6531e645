"""How `from_pretrained` of transformers loads a ticket: as a quantisation method that fills the whole model.

`model.safetensors` holds one uint8 tensor, the ticket's bytes. Before loading, the model gets a buffer for it;
after loading, the buffer becomes the model's parameters and is removed. What remains is an ordinary model.
"""

from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from strongticket.errors import MissingDependency, TicketError
from strongticket.ticket import Ticket

try:
    from transformers import PreTrainedConfig
    from transformers.quantizers.auto import register_quantization_config, register_quantizer
    from transformers.quantizers.base import HfQuantizer
    from transformers.utils.quantization_config import QuantizationConfigMixin
except ModuleNotFoundError:
    raise MissingDependency("transformers", "huggingface") from None

METHOD = "strongticket"  # `quant_method` in config.json
TENSOR = "ticket"  # the one tensor of model.safetensors
# What all configs have and the network does not depend on: types, labels, what is returned; and our own entry.
_FREE = {*PreTrainedConfig().to_dict(), "quantization_config", "use_cache"}
_OWN_CONFIG = "Load it with the config of its own folder, unchanged."


class TicketConfig(QuantizationConfigMixin):
    """The `quantization_config` of a ticket's folder: its name is all it says."""

    def __init__(self, quant_method: str = METHOD, **_: Any) -> None:
        self.quant_method = quant_method  # type: ignore[assignment] # the enum has only the methods of transformers
        self.modules_to_not_convert = None


class TicketQuantizer(HfQuantizer):
    requires_calibration = False
    is_trainable = True
    is_compileable = True

    def is_serializable(self) -> bool:
        return True

    def update_dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        """Without a dtype of the caller's, transformers would take the tensor's, uint8."""
        return dtype if dtype is not None and dtype.is_floating_point else torch.float32

    def _process_model_before_weight_loading(self, model: Any, **options: Any) -> None:
        with safe_open(options["checkpoint_files"][0], framework="pt") as file:
            if file.keys() != [TENSOR]:
                raise TicketError(
                    f"model.safetensors holds a model, but not a ticket: expected only {TENSOR!r}"
                )
            size = file.get_slice(TENSOR).get_shape()[0]
        model.register_buffer(TENSOR, torch.empty(size, dtype=torch.uint8))
        # Everything else is missing from the file and filled below: no initialisation, no warnings about it.
        model._keys_to_ignore_on_load_missing = [".*"]
        model.tie_weights = lambda **_: type(model).tie_weights(model, recompute_mapping=False)
        for tensor in (*model.parameters(), *model.buffers()):
            tensor._is_hf_initialized = True

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> nn.Module:
        data = getattr(model, TENSOR).cpu().numpy().tobytes()
        delattr(model, TENSOR)
        del model._keys_to_ignore_on_load_missing, model.tie_weights
        fill(model, Ticket.from_bytes(data))
        self.remove_quantization_config(model)  # type: ignore[no-untyped-call]
        ordinary: nn.Module = model
        return ordinary


def fill(model: Any, ticket: Ticket) -> None:
    """Give a model of the ticket's class, or its bare base model, the weights of the ticket's network."""
    network: Any = ticket.network()
    if type(model) is not type(network):
        base = getattr(network, network.base_model_prefix, None)
        if type(model) is not type(base):
            raise TicketError(
                f"the ticket belongs to a {type(network).__name__}, which has no weights for a {type(model).__name__}",
                hint=f"Load it with an Auto class that gives a {type(network).__name__}.",
            )
        network = base
    _check_config(model.config.to_dict(), network.config.to_dict())
    own, given = _tensors(model), _tensors(network)
    if odd := sorted(own.keys() - given.keys()):
        raise TicketError(
            f"the ticket has no weights for {odd[0]!r} of a {type(model).__name__}",
            hint="Pass add_pooling_layer=False." if odd[0].startswith("pooler.") else _OWN_CONFIG,
        )
    if odd := sorted(given.keys() - own.keys()):
        raise TicketError(f"a {type(model).__name__} lacks {odd[0]!r} of the ticket", hint=_OWN_CONFIG)
    for name, tensor in own.items():
        if tensor.shape != given[name].shape:
            shapes = f"{tuple(tensor.shape)} in the model and {tuple(given[name].shape)} in the ticket"
            raise TicketError(f"tensor {name!r} has shape {shapes}")
        tensor.data = given[name].detach().to(tensor.device, tensor.dtype)  # taken over, not copied


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


def _tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, tied ones once, and buffers, those that no file stores included."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def register() -> None:
    """Teach transformers this method; runs once per process, when the room is imported."""
    register_quantization_config(METHOD)(TicketConfig)
    register_quantizer(METHOD)(TicketQuantizer)
