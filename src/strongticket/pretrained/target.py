"""Trained models from a folder or the hub."""

from typing import Any

from torch import nn

from strongticket.data.configs import transformers
from strongticket.data.models import load_config, load_model
from strongticket.errors import StrongTicketError


def load_target(target: str) -> nn.Module:
    """The trained model that `target` names, a folder or a model of the hub: float32, evaluation mode."""
    name, _ = target_class(target)
    return load_model(target, name)


def target_class(target: str) -> tuple[str, Any]:
    """(the model's class name, its config); the bare model's class if the config names none."""
    name, config = load_config(target)
    if not name:
        mapping = transformers().MODEL_MAPPING
        if type(config) not in mapping:
            raise StrongTicketError(
                f"{target} does not say which class its model has: config.json has no architectures",
                hint='Add "architectures": ["NAME"] to its config.json.',
            )
        found = mapping[type(config)]
        name = (found[0] if isinstance(found, tuple) else found).__name__
    return name, config
