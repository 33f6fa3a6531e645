"""Configs of transformers as data: which entries of a config.json are taken, and how large they may be.

No code, class or path is taken from a file, and no entry can have something downloaded.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

from strongticket import limits
from strongticket.errors import StrongTicketError, first_line, require
from strongticket.files import JsonObject

# Entries that say how to run a model, where else to look, or that code comes with it: never read from a file.
IGNORED = (
    *("auto_map", "custom_pipelines", "attn_implementation", "_attn_implementation", "dtype", "torch_dtype"),
    *("_attn_implementation_internal", "_attn_implementation_autoset", "experts_implementation"),
    *("_experts_implementation", "_experts_implementation_internal", "fusion_config", "distributed_config"),
    *("transformers_weights", "_name_or_path", "name_or_path", "_commit_hash"),
)
_LISTS = ("layer", "label", "depth", "block", "stage", "expert")  # configs turn these into lists
_LARGEST = 1 << 40  # far above any size in a real network


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
    clean = hf.PreTrainedConfig._decode_special_floats(clean_config(stored))  # JSON has no infinity
    try:
        with alone(hf):
            config = hf.CONFIG_MAPPING[kind].from_dict(clean)
    except Exception as error:  # every class checks its own entries, in its own way
        raise StrongTicketError(
            f"its config does not describe a {kind} model: {first_line(error)}"
        ) from error
    return config


def clean_config(stored: JsonObject) -> JsonObject:
    """The entries that describe a network and its parts, with their sizes checked."""
    return {
        name: _checked(name, value)
        for name, value in stored.items()
        if name not in IGNORED and not _changes_the_class(name)
    }


def _checked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return clean_config(value)
    if isinstance(value, list):
        value = [_checked(name, each) for each in value]
        _check_size(name, sum(each for each in value if type(each) is int))  # depths = [2, 2, 6]
    elif type(value) is int:
        _check_size(name, value)
    return value


def _check_size(name: str, value: int) -> None:
    limit = limits.layers() if any(word in name for word in _LISTS) else _LARGEST
    if abs(value) > limit:
        raise limits.exceeded(f"{name} is {value}: the limit is {limit:,}")


def _changes_the_class(name: str) -> bool:
    """Whether the name belongs to the config class itself, such as a method, and is not an entry.

    attribute_map is such a name: it would give the entries of IGNORED other names.
    """
    base = transformers().PreTrainedConfig
    found = inspect.getattr_static(base, name, None)
    entries = {field.name for field in fields(base)} if is_dataclass(base) else set()
    return found is not None and not isinstance(found, property) and name not in entries | {"model_type"}


@contextmanager
def alone(hf: Any) -> Iterator[None]:
    """Silence transformers' progress bars and messages (what matters is raised), and keep it off the hub.

    hf: the transformers package
    """
    from huggingface_hub import constants

    logging = hf.utils.logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    offline = constants.HF_HUB_OFFLINE
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    constants.HF_HUB_OFFLINE = True  # a config may name a backbone of the hub
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
