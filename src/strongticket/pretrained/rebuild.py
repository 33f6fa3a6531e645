"""What a model's class rebuilds without its numbers: the same modules, ties and constant buffers.

A ticket stores the class by name with its config (transformers) or its arguments (some modules of torch). Any
other module is rebuilt by whoever loads the ticket: `ticket.network(MyModule())`. Whatever the class would
rebuild differently is refused by name before any work, because the network would be silently wrong.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from strongticket import limits
from strongticket.data.configs import IGNORED, make_config, transformers
from strongticket.data.models import model_class
from strongticket.errors import StrongTicketError
from strongticket.files import json_roundtrip
from strongticket.pretrained.tensors import parameters, persistent_buffers

_NOT_STORED = ("transformers_version", "architectures", "dtype", "torch_dtype", "_name_or_path")
# Arguments that some classes take besides their config, in the order in which they are tried.
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {}, {"add_pooling_layer": False}, {"use_mask_token": True}, {"add_pooling_layer": False, "use_mask_token": True},
)  # fmt: skip


def describe(model: nn.Module) -> dict[str, Any]:
    """library, class, config and options: what `skeleton` needs; library is None outside of transformers."""
    name = type(model).__name__
    if _is_of_transformers(model):
        config: Any = model.config
        stored = json_roundtrip("config", config._encode_special_floats(_stored(config.to_diff_dict())))
        _check_config(config, make_config(stored), name)
        described = {"library": "transformers", "class": name, "config": stored, "options": {}}
        return described | {"options": _arguments(model, described)}
    return {"library": None, "class": name, "config": {}, "options": {}}


def skeleton(described: dict[str, Any], tensors: int | None = None) -> nn.Module:
    """A model of that class on the current device, in evaluation mode; its parameters have no meaning.

    tensors: how many a file has; a model that is far larger is refused while it is made
    """
    name, options = described["class"], described["options"]
    with limits.at_most(limits.modules(tensors)) if tensors is not None else _nothing():
        transformers()
        from transformers.initialization import no_init_weights

        config = make_config(described["config"])
        made_by = model_class(name, config)
        try:
            with torch.random.fork_rng(devices=[]), no_init_weights():
                model: Any = made_by(config, **options)
            model.tie_weights()
        except StrongTicketError:
            raise
        except Exception as error:  # sizes that do not fit each other, arguments that the class does not have
            raise StrongTicketError(f"the config does not describe a {name}: {error}") from error
        rebuilt: nn.Module = model.eval()
        return rebuilt


def statistics(model: nn.Module, fresh: nn.Module | None) -> list[str]:
    """Names of the buffers that carry trained numbers, once all else is known to be rebuilt by the class.

    fresh: what `skeleton` gives; None for a module of the user's own, whose stored buffers are all made
    """
    if fresh is None:
        return [name for name, buffer in persistent_buffers(model).items() if buffer.is_floating_point()]
    check_same_tensors(model, fresh)
    _check_same_modules(model, fresh)
    stored, found = persistent_buffers(model), []
    rebuilt = dict(fresh.named_buffers())
    for name, buffer in model.named_buffers():
        if name.endswith("num_batches_tracked"):
            continue
        if name not in rebuilt or rebuilt[name].shape != buffer.shape:
            raise _refused(model, f"the buffer {name!r}")
        if torch.equal(rebuilt[name].to(buffer), buffer):
            continue
        if not buffer.is_floating_point() or name not in stored:
            raise _refused(model, f"the numbers of the buffer {name!r}")
        found.append(name)
    return found


def check_same_tensors(model: nn.Module, fresh: nn.Module) -> None:
    """The same parameters, shapes and ties."""
    ours, theirs = parameters(model), parameters(fresh)
    shapes = [{name: tuple(p.shape) for name, p in module.named_parameters()} for module in (model, fresh)]
    for name in [*ours, *theirs]:
        if ours.get(name) != theirs.get(name) or shapes[0].get(name) != shapes[1].get(name):
            raise _refused(model, f"the parameter {name!r}")


def _check_same_modules(model: nn.Module, fresh: nn.Module) -> None:
    """The same classes with the same settings, as far as modules show them."""
    ours, theirs = (dict(module.named_modules()) for module in (model, fresh))
    for path in [*ours, *theirs]:
        a, b = ours.get(path), theirs.get(path)
        if a is None or b is None or type(a).__qualname__ != type(b).__qualname__:
            raise _refused(model, f"the module {path!r}")
        if a.extra_repr() != b.extra_repr() and "Drop" not in type(a).__name__:
            raise _refused(model, f"the module {path!r} ({a.extra_repr()})")


def _refused(model: nn.Module, what: str) -> StrongTicketError:
    return StrongTicketError(
        f"{type(model).__name__} does not rebuild {what} of this model from its config",
        hint="Give a model as its class makes it, or wrap it in a module of your own and load its ticket with "
        "ticket.network(module).",
    )


def _is_of_transformers(model: nn.Module) -> bool:
    config = getattr(model, "config", None)
    if config is None or not type(model).__module__.startswith("transformers."):
        return False
    hf = transformers()
    return getattr(hf, type(model).__name__, None) is type(model) and isinstance(config, hf.PreTrainedConfig)


def _stored(config: dict[str, Any]) -> dict[str, Any]:
    """The config without entries that do not change the network; the same for the configs of its parts."""
    return {
        name: _stored(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in _NOT_STORED
    }


def _check_config(config: Any, again: Any, name: str) -> None:
    """The stored config is the model's own, entry by entry."""
    ours, theirs = (_stored(found.to_dict()) for found in (config, again))
    as_text = partial(json.dumps, sort_keys=True, default=str)
    for entry in sorted(ours.keys() | theirs.keys()):
        if as_text(ours.get(entry)) != as_text(theirs.get(entry)) and entry not in IGNORED:
            raise StrongTicketError(
                f"{name} does not rebuild the entry {entry!r} of its config: {ours.get(entry)!r} becomes "
                f"{theirs.get(entry)!r}",
                hint="Save the model with save_pretrained, and build from that folder.",
            )


def _arguments(model: nn.Module, described: dict[str, Any]) -> dict[str, Any]:
    """What the constructor was given besides the config, judging by the parameters."""
    wanted = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    for options in _ARGUMENTS:
        try:
            with torch.device("meta"):
                found = skeleton(described | {"options": options})
        except StrongTicketError:  # this class has no such argument
            continue
        if {name: tuple(parameter.shape) for name, parameter in found.named_parameters()} == wanted:
            return options
    return {}


@contextmanager
def _nothing() -> Iterator[None]:
    yield
