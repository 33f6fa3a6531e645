"""Trained models: load one, tell what it is, make one like it without its numbers."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.pretrained import families
from strongticket.pretrained.attention_map import AttentionMap
from strongticket.pretrained.families.family import PARTS, Family
from strongticket.pretrained.maps import Map

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
)
ATTENTION = ("products", "projections")
_NOT_STORED = ("transformers_version", "architectures", "dtype", "torch_dtype", "_name_or_path")


def transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise MissingDependency("transformers is not installed; install strongticket[huggingface]") from None
    return transformers


def load_config(target: str) -> tuple[str, Any]:
    """(class name, config) of a folder or hub name, once the family and its options are seen to be supported."""
    hf = transformers()
    try:
        config = hf.AutoConfig.from_pretrained(target)
    except (OSError, ValueError) as error:
        raise StrongTicketError(
            f"{target} is no Hugging Face model: {str(error).splitlines()[0]}; "
            "expected a folder with config.json and weights, or a hub name"
        ) from error
    name = (config.architectures or [""])[0]
    families.check(name or "a model without architectures in its config", config)
    return name, config


def load_target(target: str) -> nn.Module:
    """The trained model of a folder or hub name: float32, evaluation mode."""
    hf = transformers()
    name, _ = load_config(target)
    try:
        with _silent(hf.utils.logging):
            model = getattr(hf, name).from_pretrained(target, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise StrongTicketError(f"cannot load the weights of {target}: {error}") from error
    return model.requires_grad_(False).eval()


@contextmanager
def _silent(logging: Any) -> Iterator[None]:
    """Without transformers' progress bars."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def tokenizer_files(target: str) -> dict[str, str]:
    """The texts that make its tokenizer, so that a ticket can be talked to; empty if it has none."""
    folder = Path(target)
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache

        cached = {name: try_to_load_from_cache(target, name) for name in TOKENIZER_FILES}
        paths = {name: Path(path) for name, path in cached.items() if isinstance(path, str)}
    else:
        paths = {name: folder / name for name in TOKENIZER_FILES if (folder / name).is_file()}
    if "tokenizer.json" not in paths:
        return {}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items()}


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
        raise StrongTicketError("parts and layers choose nothing; leave one of them out")
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
            "attention='projections' needs a module for each projection, and torch's attention has none; "
            "leave it at 'products'"
        )
    return each.projections


def check_covered(model: nn.Module, maps: list[Map]) -> None:
    """A whole ticket has no trained number: every parameter must belong to a map."""
    paths = {path for each in maps for path in each.covers()}
    for name, _ in model.named_parameters(remove_duplicate=False):
        parents = name.split(".")
        if not any(".".join(parents[:end]) in paths for end in range(len(parents) + 1)):
            raise StrongTicketError(
                f"the parameter {name!r} is trained and has no map, so the ticket would not be whole; "
                "choose the parts that you need"
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
                f"target's {name}{bad[0].tolist()} is not finite: expected finite numbers; mend the target"
            )
