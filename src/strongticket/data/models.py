"""Hugging Face models: their config, weights and tokenizer files, from a folder or a hub name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from strongticket.errors import MissingDependency, StrongTicketError

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
)


def transformers() -> Any:
    """The transformers package, or an error that says how to install it."""
    try:
        import transformers
    except ImportError:
        raise MissingDependency("transformers", "huggingface") from None
    return transformers


def load_config(target: str) -> tuple[str, Any]:
    """(class name of the model, its config) of a folder or hub name."""
    hf = transformers()
    try:
        config = hf.AutoConfig.from_pretrained(target)
    except (OSError, ValueError) as error:
        raise StrongTicketError(
            f"{target} is not a Hugging Face model: {str(error).splitlines()[0]}",
            hint="Give a folder with config.json and weights, or a hub name.",
        ) from error
    return (config.architectures or [""])[0], config


def load_model(target: str, class_name: str) -> nn.Module:
    """The trained model of a folder or hub name: float32, evaluation mode."""
    hf = transformers()
    try:
        with _silent(hf.utils.logging):
            model = getattr(hf, class_name).from_pretrained(target, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise StrongTicketError(f"cannot load the weights of {target}: {error}") from error
    return model.requires_grad_(False).eval()


def tokenizer_files(target: str) -> dict[str, str]:
    """File name -> text of the files that make a model's tokenizer; empty if it has none."""
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
