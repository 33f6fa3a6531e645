"""Trained Hugging Face models as data: a config and weights in, a model of transformers' own classes out.

The tensors are read from safetensors files of the folder. Missing or surplus tensors are errors, because transformers
would fill the gaps with random numbers.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from strongticket import limits
from strongticket.errors import StrongTicketError, first_line, prefixed
from strongticket.models.configs import make_config, model_class, quiet_transformers, transformers
from strongticket.models.folder import CONFIG, open_folder
from strongticket.models.rebuilding import Architecture
from strongticket.models.tensors import (
    check_trained,
    parameters,
    persistent_buffers,
    tensor_named,
    to_stored,
)


class OpenedModel:
    """A trained model whose config has been read, and whose weights have not.

    Args:
        name: of a folder, or of a repository of the hub.
    """

    def __init__(self, name: str) -> None:
        self.name, self.folder = name, open_folder(name)
        stored = self.folder.json(CONFIG)
        if stored is None:
            raise StrongTicketError(
                f"{name} is not a Hugging Face model: it has no {CONFIG}",
                hint="Give a folder with config.json and weights, or a hub name.",
            )
        with prefixed(f"{self.folder.path / CONFIG}"):
            self.config = make_config(stored)
            named = stored.get("architectures") or [""]
            if not isinstance(named, list) or not isinstance(named[0], str):
                raise StrongTicketError(f"architectures is {named!r}: expected a list of class names")
        self.architecture = Architecture(named[0] or self._bare_class(), stored)

    def _bare_class(self) -> str:
        mapping = transformers().MODEL_MAPPING
        if type(self.config) not in mapping:
            raise StrongTicketError(
                f"{self.name} does not say which class its model has: config.json has no architectures",
                hint='Add "architectures": ["NAME"] to its config.json.',
            )
        found = mapping[type(self.config)]
        return str((found[0] if isinstance(found, tuple) else found).__name__)

    @cached_property
    def tensors(self) -> dict[str, tuple[Path, tuple[int, ...]]]:
        """Tensor name -> its file and shape, from the files' headers alone."""
        found: dict[str, tuple[Path, tuple[int, ...]]] = {}
        for path in self.folder.weight_files():
            try:
                with safe_open(path, framework="pt") as file:
                    for name in file.keys():  # noqa: SIM118 (not a mapping)
                        if name in found:
                            raise StrongTicketError(
                                f"{path} has the tensor {name!r}, as {found[name][0]} does"
                            )
                        found[name] = (path, tuple(file.get_slice(name).get_shape()))
            except (SafetensorError, OSError) as error:
                raise StrongTicketError(
                    f"{path} is not a readable safetensors file: {error}",
                    hint="Get a fresh copy of it.",
                ) from None
        return found

    def load(self) -> nn.Module:
        """The trained model: float32, evaluation mode, every tensor from the files."""
        found, name = self.tensors, self.architecture.name
        with prefixed(str(self.folder.path)):
            self._empty()
            state: dict[str, torch.Tensor] = {}
            for path in sorted({path for path, _ in found.values()}):
                with safe_open(path, framework="pt") as file:
                    state |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            for tensor, values in state.items():
                if not values.is_floating_point() and not tensor.endswith(
                    ("position_ids", ".bias", ".masked_bias", ".num_batches_tracked")
                ):
                    raise StrongTicketError(
                        f"tensor {tensor!r} is {values.dtype}: expected floating point weights"
                    )
            with (
                prefixed("cannot load the weights"),
                quiet_transformers(),
                torch.random.fork_rng(devices=[]),
            ):
                # Tensors of another size are then listed, and refused below by their names.
                how = dict(dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True)
                loader = model_class(name, self.config)
                model, info = loader.from_pretrained(None, config=self.config, state_dict=state, **how)
            missing = {*info["missing_keys"], *_silently_missing(model, state)}
            _check_loaded(info | {"missing_keys": missing}, name)
        loaded: nn.Module = model.requires_grad_(False).eval()
        return loaded

    def stored(self) -> "StoredTensors | None":
        """The tensors of the model in their files, to be read in parts; None if only transformers can load them.

        Every parameter must be in the files exactly once, by its name with or without the prefix of the base model, and
        in its own shape, and nothing else: transformers renames and fuses tensors while it loads, and no such rule is
        repeated here.
        """
        with prefixed(str(self.folder.path)):
            empty = self._empty()
        if persistent_buffers(empty):
            return None
        prefix, places = f"{empty.base_model_prefix}.", {}
        for name, names in parameters(empty).items():
            known = {
                spelling for each in names for spelling in (each, prefix + each, each.removeprefix(prefix))
            }
            found = known & self.tensors.keys()
            place = min(found, default="")
            path, shape = self.tensors.get(place, (Path(), None))
            if len(found) != 1 or shape != tuple(tensor_named(empty, name).shape):
                return None
            places[name] = (place, path)
        if {place for place, _ in places.values()} != self.tensors.keys():
            return None
        return StoredTensors(empty, places)

    def _empty(self) -> Any:
        """The model without numbers. It may be larger than its files by tied tensors, not by much: nothing is made."""
        with limits.at_most(limits.tensors(len(self.tensors))):
            model = self.architecture.empty()
        wanted = sum(tensor.numel() for tensor in model.parameters())
        stored = sum(math.prod(shape) for _, shape in self.tensors.values())
        if wanted > 2 * stored + (1 << 20):
            raise StrongTicketError(
                f"the config describes {wanted:,} weights, the files have {stored:,}",
                hint="Copy config.json and the weights of the same model.",
            )
        return model


@dataclass(frozen=True)
class StoredTensors:
    """A model without numbers, and where in files they are: name -> (name in the file, file)."""

    empty: nn.Module
    places: dict[str, tuple[str, Path]]

    def read(self, name: str, rows: range | None = None) -> np.ndarray:
        """A tensor, or its numbers at these places of its first axis, as a ticket stores them."""
        place, path = self.places[name]
        with safe_open(path, framework="pt") as file:
            tensor = file.get_tensor(place) if rows is None else file.get_slice(place)[rows.start : rows.stop]
        check_trained(name, tensor)
        return to_stored(name, tensor)


def load_model(target: str | Path) -> nn.Module:
    """The trained model of a folder or hub name: float32, evaluation mode, every tensor from the files."""
    return OpenedModel(str(target)).load()


def _silently_missing(model: Any, state: dict[str, torch.Tensor]) -> list[str]:
    """Parameters that the files lack and transformers leaves out of its list, because its class says so.

    They would be random. Non-trainable ones (sinusoidal positions) are computed by the class.
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
