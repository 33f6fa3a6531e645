"""Hugging Face models as data: a config and weights in, a model of transformers' own classes out.

The config is read as JSON, its class is looked up among those of transformers, and the tensors are read from
safetensors files of the folder. Missing or surplus tensors are errors, because transformers would fill the gaps
with random numbers.
"""

import math
import re
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from strongticket import limits
from strongticket.data.configs import alone, make_config, transformers
from strongticket.data.folder import CONFIG, open_folder, tensors_of
from strongticket.errors import StrongTicketError, first_line, prefixed
from strongticket.files import JsonObject

_BUFFERS = 1 << 26  # numbers in constant buffers, whatever the size of the model


def load_config(target: str) -> tuple[str, Any]:
    """(class name of the model, its config) of a folder or hub name."""
    folder = open_folder(target)
    stored = folder.json(CONFIG)
    if stored is None:
        raise StrongTicketError(
            f"{target} is not a Hugging Face model: it has no {CONFIG}",
            hint="Give a folder with config.json and weights, or a hub name.",
        )
    with prefixed(f"{folder.path / CONFIG}"):
        config = make_config(stored)
        named = stored.get("architectures") or [""]
        if not isinstance(named, list) or not isinstance(named[0], str):
            raise StrongTicketError(f"architectures is {named!r}: expected a list of class names")
    return named[0], config


def model_class(name: Any, config: Any) -> Any:
    """Transformers' model class of that name, if it takes such a config."""
    is_name = isinstance(name, str) and name.isidentifier()
    found: Any = getattr(transformers(), name, None) if is_name else None
    if not isinstance(found, type) or not issubclass(found, transformers().PreTrainedModel):
        raise StrongTicketError(f"{name!r} is not a model class of transformers")
    if found.config_class is not type(config):  # type: ignore[attr-defined]
        raise StrongTicketError(f"a {name} is not described by a {type(config).__name__}")
    return found


def skeleton(name: str, config: Any, tensors: int) -> nn.Module:
    """The model on the meta device: names and shapes without numbers.

    tensors: how many the file has; a model that is far larger is refused before it is made
    """
    made_by = model_class(name, config)
    try:
        with limits.at_most(limits.modules(tensors)), torch.device("meta"), alone(transformers()):
            model: nn.Module = made_by(config)
            return model
    except StrongTicketError:
        raise
    except Exception as error:  # sizes that do not fit each other, of any kind
        raise StrongTicketError(f"the config does not describe a {name}: {first_line(error)}") from error


def load_model(target: str, class_name: str) -> nn.Module:
    """The trained model of a folder or hub name: float32, evaluation mode, every tensor from the files."""
    hf = transformers()
    _, config = load_config(target)
    folder = open_folder(target)
    found = tensors_of(folder.weight_files())
    with prefixed(str(folder.path)):
        empty = skeleton(class_name, config, len(found))
        _check_size(empty, found)
        check_buffers(empty)
        state: dict[str, torch.Tensor] = {}
        for path in sorted({path for path, _ in found.values()}):
            with safe_open(path, framework="pt") as file:
                state |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        for name, tensor in state.items():
            if not tensor.is_floating_point() and not name.endswith(
                ("position_ids", ".bias", ".masked_bias")
            ):
                raise StrongTicketError(f"tensor {name!r} is {tensor.dtype}: expected floating point weights")
        try:
            with alone(hf), torch.random.fork_rng(devices=[]):
                model, info = model_class(class_name, config).from_pretrained(
                    None, config=config, state_dict=state, dtype=torch.float32, output_loading_info=True
                )
        except Exception as error:
            raise StrongTicketError(f"cannot load the weights: {first_line(error)}") from error
        _check_loaded(info | {"missing_keys": {*info["missing_keys"], *_unsaid(model, state)}}, class_name)
    loaded: nn.Module = model.requires_grad_(False).eval()
    return loaded


def tokenizer_files(target: str) -> dict[str, str]:
    """File name -> text of the files that make a model's tokenizer; empty if it has none."""
    return open_folder(target).tokenizer_files()


def _check_size(model: nn.Module, found: JsonObject) -> None:
    """Before transformers allocates what is missing: the model may be larger by tied tensors, not by much."""
    wanted = sum(tensor.numel() for tensor in model.parameters())
    stored = sum(math.prod(shape) for _, shape in found.values())
    if wanted > 2 * stored + (1 << 20):
        raise StrongTicketError(
            f"the config describes {wanted:,} weights, the files have {stored:,}",
            hint="Copy config.json and the weights of the same model.",
        )


def check_buffers(model: nn.Module) -> None:
    """Before it is made on a real device: constant buffers are far smaller than the model, or small.

    model: on the meta device
    """
    size, allowed = (
        sum(tensor.numel() for tensor in of) for of in (list(model.buffers()), list(model.parameters()))
    )
    if size > limits.factor() * max(_BUFFERS, 4 * allowed):
        raise limits.exceeded(f"the network's buffers have {size:,} numbers, its parameters {allowed:,}")


def _unsaid(model: Any, state: dict[str, torch.Tensor]) -> list[str]:
    """Parameters that the files lack and transformers leaves out of its list, because its class says so.

    They would be random. Those that no training changes are sines of the class's own.
    """
    silent = [re.compile(pattern) for pattern in model._keys_to_ignore_on_load_missing or ()]
    prefix = f"{model.base_model_prefix}."
    return [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        and any(pattern.search(name) for pattern in silent)
        and not {name, name.removeprefix(prefix), prefix + name} & state.keys()
    ]


def _check_loaded(info: Any, class_name: str) -> None:
    problems = {
        "lacks": sorted(info["missing_keys"]),
        "has, and the model does not,": sorted(info["unexpected_keys"]),
        "has in another shape": sorted(str(mismatch[0]) for mismatch in info["mismatched_keys"]),
    }
    for what, names in problems.items():
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise StrongTicketError(
                f"for a {class_name} the checkpoint {what} the tensor{'s' * (len(names) > 1)} "
                f"{', '.join(names[:3])}{more}",
                hint="Use a checkpoint that was saved whole, with its own config.json.",
            )
    if info.get("error_msgs"):
        raise StrongTicketError(f"cannot load the weights: {first_line(info['error_msgs'])}")
