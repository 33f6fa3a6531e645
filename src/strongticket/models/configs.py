"""Configs of transformers as data: which entries of a config.json are taken, and how large they may be.

No code, class or path is taken from a file, and a config that would have something downloaded is refused.
"""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from strongticket import limits
from strongticket.errors import StrongTicketError, prefixed, require
from strongticket.files import JsonObject

# Entries that no ticket stores: they do not change the network.
NOT_STORED = ("transformers_version", "architectures", "dtype", "torch_dtype", "_name_or_path")
# Entries that say how to run a model, where else to look, or that code comes with it: never read from a file.
IGNORED = (
    *("auto_map", "custom_pipelines", "attn_implementation", "_attn_implementation", "dtype", "torch_dtype"),
    *("_attn_implementation_internal", "_attn_implementation_autoset", "experts_implementation"),
    *("_experts_implementation", "_experts_implementation_internal", "fusion_config", "distributed_config"),
    *("transformers_weights", "_name_or_path", "name_or_path", "_commit_hash"),
)
_LISTS = ("layer", "label", "depth", "block", "stage", "expert")  # configs turn these into lists
_LARGEST = 1 << 40  # far above any size in a real network
_TIMM_NAME = re.compile(r"[\w.-]+")  # with a colon or slash, timm looks on the hub or in a folder


def transformers() -> Any:
    """The transformers package, or an error that says how to install it."""
    return require("transformers", "huggingface")


def make_config(stored: Any) -> Any:
    """The config of transformers that this JSON describes; model_type says of which class."""
    hf = transformers()
    if not isinstance(stored, dict):
        raise StrongTicketError(f"its config is not a JSON object but a {type(stored).__name__}")
    kind = stored.get("model_type")
    if not isinstance(kind, str) or kind not in hf.CONFIG_MAPPING:
        raise StrongTicketError(
            f"its model_type is {kind!r}, which this version of transformers does not know"
        )
    if stored.get("quantization_config") is not None:
        raise StrongTicketError("its weights are quantised", hint="Save the model in float32 or bfloat16.")
    clean = hf.PreTrainedConfig._decode_special_floats(_clean_config(stored))  # JSON has no infinity
    # Every class checks its own entries, in its own way.
    with prefixed(f"its config does not describe a {kind} model"), quiet_transformers():
        return hf.CONFIG_MAPPING[kind].from_dict(clean)


def model_class(name: Any, config: Any) -> Any:
    """Model class of transformers of that name, if it takes such a config."""
    is_name = isinstance(name, str) and name.isidentifier()
    found: Any = getattr(transformers(), name, None) if is_name else None
    if not isinstance(found, type) or not issubclass(found, transformers().PreTrainedModel):
        raise StrongTicketError(f"{name!r} is not a model class of transformers")
    if found.config_class is not type(config):  # type: ignore[attr-defined]
        raise StrongTicketError(f"a {name} is not described by a {type(config).__name__}")
    return found


def usual_class(config: Any, classifies_text: bool = False) -> str:
    """Name of the class that a search trains with such a config."""
    ends = ("ForCausalLM", "ForMaskedLM", "ForImageClassification", "LMHeadModel")
    for end in ("ForSequenceClassification",) if classifies_text else ends:
        name = type(config).__name__.removesuffix("Config") + end
        if hasattr(transformers(), name):
            return name
    raise StrongTicketError(f"transformers has no {config.model_type} model for this task")


def _clean_config(stored: JsonObject) -> JsonObject:
    """The entries that describe a network and its parts, with their sizes checked."""
    _check_downloads(stored)
    return {
        name: _checked(name, value)
        for name, value in stored.items()
        if name not in IGNORED and not _changes_the_class(name)
    }


def _checked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _clean_config(value)
    if isinstance(value, list):
        value = [_checked(name, each) for each in value]
        _check_size(name, sum(each for each in value if type(each) is int))  # depths = [2, 2, 6]
    elif type(value) is int:
        _check_size(name, value)
    return value


def _check_size(name: str, value: int) -> None:
    limit = limits.factor() * limits.LAYERS if any(word in name for word in _LISTS) else _LARGEST
    if abs(value) > limit:
        raise limits.exceeded(f"{name} is {value}: the limit is {limit:,.0f}")


def _changes_the_class(name: str) -> bool:
    """Whether the name belongs to the config class itself, such as a method, and is not an entry.

    attribute_map is such a name: it would give the entries of IGNORED other names.
    """
    base = transformers().PreTrainedConfig
    found = inspect.getattr_static(base, name, None)
    entries = {field.name for field in fields(base)} if is_dataclass(base) else set()
    return found is not None and not isinstance(found, property) and name not in entries | {"model_type"}


def _check_downloads(stored: JsonObject) -> None:
    """Refuse a part that is only named: transformers would look it up on the hub, and timm would do so as well."""
    kind, named = stored.get("model_type"), stored.get("backbone")
    if kind in ("timm_backbone", "timm_wrapper"):
        name, more = named or stored.get("architecture", ""), stored.get("model_args") or {}
        if not _TIMM_NAME.fullmatch(str(name)) or any(
            "checkpoint" in key or "pretrained" in key for key in more
        ):
            raise StrongTicketError(f"its timm model {name!r:.80} does not come with it")
    elif stored.get("backbone_config") is None and (named is not None or stored.get("backbone_kwargs")):
        raise StrongTicketError(
            f"its backbone {named!r:.80} is only named, and would be looked up on the hub",
            hint="Load the model with transformers and save it again: save_pretrained writes backbone_config.",
        )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' progress bars and messages inside: what matters is raised."""
    logging = transformers().utils.logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
