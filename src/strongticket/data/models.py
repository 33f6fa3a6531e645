"""Hugging Face models as data: a config and weights in, a model of transformers' own classes out.

No code, class or path is taken from a file: the config is read as JSON, its class is looked up among those of
transformers, and the tensors are read from safetensors files of the folder. Missing or surplus tensors are
errors, because transformers would fill the gaps with random numbers.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from strongticket import limits
from strongticket.data.folder import CONFIG, open_folder, tensors_of
from strongticket.errors import MissingDependency, StrongTicketError
from strongticket.files import JsonObject

# Entries that say how to run a model, where else to look, or that code comes with it: never read from a file.
IGNORED = (
    *("auto_map", "custom_pipelines", "attn_implementation", "_attn_implementation", "dtype", "torch_dtype"),
    *("_attn_implementation_internal", "_attn_implementation_autoset", "experts_implementation"),
    *("_experts_implementation", "_experts_implementation_internal", "fusion_config", "distributed_config"),
    *("transformers_weights", "_name_or_path", "name_or_path", "_commit_hash"),
)
_LISTS = ("layer", "label", "depth", "block", "stage", "expert")  # what configs and models make lists of
_LARGEST = 1 << 40  # no size of a network comes near


def transformers() -> Any:
    """The transformers package, or an error that says how to install it."""
    try:
        import transformers
    except ImportError:
        raise MissingDependency("transformers", "huggingface") from None
    return transformers


def make_config(stored: JsonObject) -> Any:
    """The config of transformers that this JSON describes; model_type says of which class."""
    hf = transformers()
    kind = stored.get("model_type")
    if not isinstance(kind, str) or kind not in hf.CONFIG_MAPPING:
        raise StrongTicketError(
            f"its model_type is {kind!r}, which this version of transformers does not know"
        )
    if stored.get("quantization_config") is not None:
        raise StrongTicketError("its weights are quantised", hint="Save the model in float32 or bfloat16.")
    clean = hf.PreTrainedConfig._decode_special_floats(clean_config(stored))  # JSON has no infinity
    try:
        with _quiet(hf):
            config = hf.CONFIG_MAPPING[kind].from_dict(clean)
    except Exception as error:  # every class checks its own entries, in its own way
        raise StrongTicketError(f"its config does not describe a {kind} model: {_line(error)}") from error
    return config


def load_config(target: str) -> tuple[str, Any]:
    """(class name of the model, its config) of a folder or hub name."""
    folder = open_folder(target)
    stored = folder.json(CONFIG)
    if stored is None:
        raise StrongTicketError(
            f"{target} is not a Hugging Face model: it has no {CONFIG}",
            hint="Give a folder with config.json and weights, or a hub name.",
        )
    with _about(f"{folder.path / CONFIG}"):
        config = make_config(stored)
        named = stored.get("architectures") or [""]
        if not isinstance(named, list) or not isinstance(named[0], str):
            raise StrongTicketError(f"architectures is {named!r}: expected a list of class names")
    return named[0], config


def model_class(name: str, config: Any) -> Any:
    """transformers' model class of that name, if it takes such a config."""
    found: Any = getattr(transformers(), name, None) if name.isidentifier() else None
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
        with limits.at_most(limits.modules(tensors)), torch.device("meta"), _quiet(transformers()):
            model: nn.Module = made_by(config)
            return model
    except StrongTicketError:
        raise
    except Exception as error:  # sizes that do not fit each other, of any kind
        raise StrongTicketError(f"the config does not describe a {name}: {_line(error)}") from error


def load_model(target: str, class_name: str) -> nn.Module:
    """The trained model of a folder or hub name: float32, evaluation mode, every tensor from the files."""
    hf = transformers()
    _, config = load_config(target)
    folder = open_folder(target)
    found = tensors_of(folder.weight_files())
    with _about(str(folder.path)):
        _check_size(skeleton(class_name, config, len(found)), found)
        state: dict[str, torch.Tensor] = {}
        for path in {path for path, _ in found.values()}:
            with safe_open(path, framework="pt") as file:
                state |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        for name, tensor in state.items():
            if not tensor.is_floating_point() and not name.endswith(
                ("position_ids", ".bias", ".masked_bias")
            ):
                raise StrongTicketError(f"tensor {name!r} is {tensor.dtype}: expected floating point weights")
        try:
            with _quiet(hf), torch.random.fork_rng(devices=[]):
                model, info = model_class(class_name, config).from_pretrained(
                    None, config=config, state_dict=state, dtype=torch.float32, output_loading_info=True
                )
        except Exception as error:
            raise StrongTicketError(f"cannot load the weights: {_line(error)}") from error
        _check_loaded(info, class_name)
    loaded: nn.Module = model.requires_grad_(False).eval()
    return loaded


def tokenizer_files(target: str) -> dict[str, str]:
    """File name -> text of the files that make a model's tokenizer; empty if it has none."""
    return open_folder(target).tokenizer_files()


def clean_config(stored: JsonObject) -> JsonObject:
    """The entries that describe a network, their sizes checked; of its parts, too."""
    clean = {}
    for name, value in stored.items():
        if name in IGNORED:
            continue
        if isinstance(value, dict):
            value = clean_config(value)
        if type(value) is int:
            limit = limits.layers() if any(word in name for word in _LISTS) else _LARGEST
            if abs(value) > limit:
                raise limits.exceeded(f"{name} is {value}: the limit is {limit:,}")
        clean[name] = value
    return clean


def _check_size(model: nn.Module, found: JsonObject) -> None:
    """Before transformers allocates what is missing: the model may be larger by tied tensors, not by much."""
    wanted = sum(tensor.numel() for tensor in model.parameters())
    stored = sum(math.prod(shape) for _, shape in found.values())
    if wanted > 2 * stored + (1 << 20):
        raise StrongTicketError(
            f"the config describes {wanted:,} weights, the files have {stored:,}",
            hint="Copy config.json and the weights of the same model.",
        )


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
        raise StrongTicketError(f"cannot load the weights: {_line(info['error_msgs'])}")


def _line(error: object) -> str:
    """The first line of what a library said."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return text if len(text) < 300 else f"{text[:300]}…"


@contextmanager
def _about(what: str) -> Iterator[None]:
    try:
        yield
    except MissingDependency:
        raise
    except StrongTicketError as error:
        raise StrongTicketError(f"{what}: {error.what}", hint=error.hint) from error


@contextmanager
def _quiet(hf: Any) -> Iterator[None]:
    """Without transformers' progress bars and remarks: what matters is raised."""
    logging = hf.utils.logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
