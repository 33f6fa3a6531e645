"""What a model's class rebuilds without its numbers: the same modules, ties and constant buffers.

A ticket stores the class by name with its config, if it is one of transformers. Any other module is made by whoever
loads the ticket: `ticket.network(MyModule())`. Whatever the class would rebuild differently is refused by name before
any work, because the network would be silently wrong.
"""

import json
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from strongticket import limits
from strongticket.errors import StrongTicketError, prefixed
from strongticket.files import JsonObject, json_roundtrip
from strongticket.models.configs import (
    IGNORED,
    NOT_STORED,
    make_config,
    model_class,
    quiet_transformers,
    transformers,
    usual_class,
)
from strongticket.models.tensors import parameters, persistent_buffers

# Arguments that some classes take besides their config, in the order in which they are tried.
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {}, {"add_pooling_layer": False}, {"use_mask_token": True}, {"add_pooling_layer": False, "use_mask_token": True},
)  # fmt: skip
_BUFFERS = 1 << 26  # numbers in constant buffers, whatever the size of the model


@dataclass(frozen=True)
class Architecture:
    """A model of transformers without its numbers.

    Args:
        name: of its class.
        config: as JSON.
        options: what the class takes besides its config.
    """

    name: str
    config: JsonObject
    options: JsonObject = field(default_factory=dict)

    def make(self) -> nn.Module:
        """A model on the current device, in evaluation mode; its parameters have no meaning."""
        config = make_config(self.config)
        made_by = model_class(self.name, config)
        from transformers.initialization import no_init_weights

        # Sizes may not fit each other, or the class may not have such arguments.
        with (
            prefixed(f"the config does not describe a {self.name}"),
            torch.random.fork_rng(devices=[]),
            no_init_weights(),
            quiet_transformers(),
        ):
            model: Any = made_by(config, **self.options)
            model.tie_weights()
        made: nn.Module = model.eval()
        return made

    def empty(self) -> nn.Module:
        """The model on the meta device: names and shapes without numbers.

        Of a file's settings, make it inside `limits.at_most`.
        """
        with torch.device("meta"):
            empty = self.make()
        size, allowed = (sum(x.numel() for x in each) for each in (empty.buffers(), empty.parameters()))
        if size > limits.factor() * max(_BUFFERS, 4 * allowed):
            raise limits.exceeded(f"the network's buffers have {size:,} numbers, its parameters {allowed:,}")
        return empty


def new_model(config: JsonObject, *, classifies_text: bool = False) -> nn.Module:
    """An untrained model of the class that a search trains with such a config."""
    name = usual_class(make_config(config), classifies_text)
    model: Any = Architecture(name, config).make()
    with torch.random.fork_rng(devices=[]):
        model.init_weights()
    made: nn.Module = model
    return made


def describe(model: nn.Module) -> Architecture | None:
    """What rebuilds the model; None outside of transformers. What its class would rebuild differently is an error."""
    if not _is_of_transformers(model):
        return None
    name, config = type(model).__name__, model.config
    stored = json_roundtrip("config", config._encode_special_floats(_stored(config.to_diff_dict())))  # type: ignore[operator, union-attr]
    _check_config(config, make_config(stored), name)
    wanted, found = _tensors(model), None
    for options in _ARGUMENTS:
        try:
            architecture = Architecture(name, stored, options)
            fresh = architecture.empty()
        except StrongTicketError:  # this class has no such argument
            if not options:
                raise
            continue
        found = found or (architecture, fresh)
        if _tensors(fresh) == wanted:
            found = architecture, fresh
            break
    assert found is not None
    architecture, fresh = found
    made = _tensors(fresh)
    for parameter in [*wanted, *made]:
        if wanted.get(parameter) != made.get(parameter):
            raise _refused(model, f"the parameter {parameter!r}")
    _check_same_modules(model, fresh)
    return architecture


def trained_buffers(model: nn.Module, architecture: Architecture | None) -> list[str]:
    """Names of the buffers that carry trained numbers: of a module of the user's own, all that are stored."""
    stored = persistent_buffers(model)
    if architecture is None:
        return [name for name, buffer in stored.items() if buffer.is_floating_point()]
    # Its parameters are never written, so they take no memory; its buffers are computed.
    rebuilt, found = dict(architecture.make().named_buffers()), []
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


def _check_same_modules(model: nn.Module, fresh: nn.Module) -> None:
    """The same classes with the same settings, as far as modules show them."""
    ours, theirs = (
        {path: part for path, part in module.named_modules() if "parametrizations" not in path}
        for module in (model, fresh)
    )
    for path in [*ours, *theirs]:
        a, b = ours.get(path), theirs.get(path)
        # torch changes the name of a class while parametrizations such as masks are attached.
        names = {type(module).__qualname__.removeprefix("Parametrized") for module in (a, b)}
        if a is None or b is None or len(names) > 1:
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


def _tensors(model: nn.Module) -> dict[str, tuple[tuple[int, ...], list[str]]]:
    """Of every parameter its shape and all names that are tied to it."""
    ties = parameters(model)
    # A parameter's name in its module, whether masks are attached to it or not.
    own = partial(re.sub, r"parametrizations\.(\w+)\.original$", r"\1")
    return {
        own(name): (tuple(parameter.shape), sorted(map(own, ties[name])))
        for name, parameter in model.named_parameters()
    }


def _stored(config: JsonObject) -> JsonObject:
    """The config without entries that do not change the network; the same for the configs of its parts."""
    return {
        name: _stored(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in NOT_STORED
    }


def _check_config(config: Any, again: Any, name: str) -> None:
    """The stored config is the model's own, entry by entry."""
    ours, theirs = (_stored(found.to_dict()) for found in (config, again))
    as_text = partial(json.dumps, sort_keys=True, default=str)
    free = (*IGNORED, "use_cache")  # Trainer adds use_cache to any config
    for entry in sorted(ours.keys() | theirs.keys()):
        if as_text(ours.get(entry)) != as_text(theirs.get(entry)) and entry not in free:
            raise StrongTicketError(
                f"{name} does not rebuild the entry {entry!r} of its config: {ours.get(entry)!r} becomes "
                f"{theirs.get(entry)!r}",
                hint="Save the model with save_pretrained, and build from that folder.",
            )
