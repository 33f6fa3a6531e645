"""Trained models: load one, tell what it is, make one like it without its numbers."""

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from strongticket.data.models import load_config, load_model, transformers
from strongticket.errors import StrongTicketError
from strongticket.pretrained import families
from strongticket.pretrained.attention_map import AttentionMap
from strongticket.pretrained.families.family import PARTS, Family
from strongticket.pretrained.maps import Map

ATTENTION = ("products", "projections")
_NOT_STORED = ("transformers_version", "architectures", "dtype", "torch_dtype", "_name_or_path")


def load_target(target: str) -> nn.Module:
    """The trained model of a folder or hub name, once its family and options are known to be supported."""
    name, _ = check_target(target)
    return load_model(target, name)


def check_target(target: str) -> tuple[str, Any]:
    """(the model's class name, its config); an error unless its family is supported."""
    name, config = load_config(target)
    families.check(name or "a model without architectures in its config", config)
    return name, config


def describe(model: nn.Module) -> dict[str, Any]:
    """class, config and options: what `skeleton` needs."""
    name = type(model).__name__
    config: Any = getattr(model, "config", None)
    family = families.family_of(name, getattr(config, "model_type", None))
    if config is None or isinstance(config, dict):
        return {"class": name, "config": {}, "options": family.options(model)}
    family.check(config)
    stored = {key: value for key, value in config.to_diff_dict().items() if key not in _NOT_STORED}
    return {"class": name, "config": stored, "options": family.options(model)}


def skeleton(described: dict[str, Any]) -> nn.Module:
    """A model of that class on the current device; its weights have no meaning."""
    name, options = described["class"], described["options"]
    family = families.family_of(name)
    if family.name == "torch":
        with torch.random.fork_rng(devices=[]):
            return getattr(nn, name)(**options)
    hf = transformers()
    from transformers.initialization import no_init_weights

    model_class = getattr(hf, name)
    stored = {key: value for key, value in described["config"].items() if key != "model_type"}
    config = model_class.config_class(**stored)
    family.check(config)
    config._attn_implementation = "eager"  # masks come as numbers to add, which every slot understands
    with torch.random.fork_rng(devices=[]), no_init_weights():
        return model_class(config, **options)


def chosen_maps(
    family: Family,
    model: nn.Module,
    parts: Sequence[str] | None,
    layers: Sequence[int] | None,
    attention: str = "products",
) -> tuple[list[Map], bool]:
    """The maps of those parts and layers (None: all), and whether that is the whole model."""
    maps = [part for each in family.maps(model) for part in _attention_as(attention, each)]
    has = [part for part in PARTS if any(each.part == part for each in maps)]
    for part in parts or ():
        if part not in has:
            raise StrongTicketError(
                f"parts has {part!r}: expected some of {', '.join(has)}, which this {family.name} model has"
            )
    count = 1 + max((each.layer for each in maps if each.layer is not None), default=-1)
    for layer in layers or ():
        if type(layer) is not int or not 0 <= layer < count:
            raise StrongTicketError(f"layers has {layer!r}: expected numbers from 0 to {count - 1}")
    chosen = [
        each
        for each in maps
        if (parts is None or each.part in parts)
        and (layers is None or each.layer is None or each.layer in layers)
    ]
    if not chosen:
        raise StrongTicketError("parts and layers choose nothing", hint="Leave one of them out.")
    if len(chosen) == len(maps):
        check_covered(model, maps)
    return chosen, len(chosen) == len(maps)


def _attention_as(attention: str, each: Map) -> Sequence[Map]:
    if attention not in ATTENTION:
        raise StrongTicketError(f"attention={attention!r}: expected one of {', '.join(ATTENTION)}")
    if attention == "products" or not isinstance(each, AttentionMap):
        return (each,)
    if not each.projections:
        raise StrongTicketError(
            "attention='projections' needs a module for each projection, and torch's attention has none",
            hint="Leave it at 'products'.",
        )
    return each.projections


def check_covered(model: nn.Module, maps: list[Map]) -> None:
    """A whole ticket has no trained number: every parameter must belong to a map."""
    paths = {path for each in maps for path in each.covers()}
    for name, _ in model.named_parameters(remove_duplicate=False):
        parents = name.split(".")
        if not any(".".join(parents[:end]) in paths for end in range(len(parents) + 1)):
            raise StrongTicketError(
                f"the parameter {name!r} is trained and has no map, so the ticket would not be whole",
                hint="Choose the parts that you need.",
            )


def checksum(model: nn.Module) -> str:
    """Of a model's numbers as float32, by name: the same whatever type the file has."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


def check_finite(model: nn.Module) -> None:
    for name, tensor in model.state_dict().items():
        bad = (~torch.isfinite(tensor)).nonzero()
        if len(bad):
            raise StrongTicketError(
                f"target's {name}{bad[0].tolist()} is not finite: expected finite numbers",
                hint="Mend the target.",
            )
