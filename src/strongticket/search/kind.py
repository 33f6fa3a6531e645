"""Tickets of found networks: from a searched model to a Ticket, and from a Ticket's settings to the model.

Only the architectures listed in FAMILIES are rebuilt, by transformers' own classes; no code and no class name
is read from the file. The scale of query and key weights stands in the settings and is applied after the
draw, so a ticket's checksums are of the weights before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from strongticket.data._generate import generate
from strongticket.data.models import transformers
from strongticket.data.tokenizers import from_json
from strongticket.errors import StrongTicketError
from strongticket.search.layout import others, slots
from strongticket.search.plan import Plan
from strongticket.search.scores import masked_tensors
from strongticket.search.source import Part, scale_parts
from strongticket.ticket import Description, Summary, Ticket

KIND = "search"
# model_type -> transformers' config and model class
FAMILIES = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "mistral": ("MistralConfig", "MistralForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "bert": ("BertConfig", "BertForMaskedLM"),
}
_NOT_STORED = ("transformers_version", "architectures", "dtype", "id2label", "label2id")


def build_model(config: dict[str, Any]) -> nn.Module:
    """A transformers model of a known family from its config's JSON. Its weights have no meaning yet."""
    hf = transformers()
    family = config.get("model_type")
    if family not in FAMILIES:
        raise StrongTicketError(f"model_type must be one of {', '.join(FAMILIES)}, got {family!r}")
    config_class, model_class = (getattr(hf, name) for name in FAMILIES[family])
    known = config_class().to_dict().keys()
    if odd := sorted(config.keys() - known):
        raise StrongTicketError(f"config has an entry {odd[0]!r} that a {family} model does not know")
    settings = config_class(**{name: value for name, value in config.items() if name != "model_type"})
    with torch.random.fork_rng(devices=[]):  # transformers draws weights; nobody will see them
        model = model_class(settings)
    return model


def config_json(model: nn.Module) -> dict[str, Any]:
    """What build_model needs to make the same architecture."""
    config = getattr(model, "config", None)
    if config is None or getattr(config, "model_type", None) not in FAMILIES:
        raise StrongTicketError(
            f"a {type(model).__name__} cannot be rebuilt from a ticket file, only models of transformers' "
            f"families {', '.join(FAMILIES)}",
            hint="Use masks(model) for its masks.",
        )
    stored = config.to_diff_dict()
    return {name: value for name, value in stored.items() if name not in _NOT_STORED}


def to_ticket(model: nn.Module, plan: Plan, *, metadata: dict[str, Any] | None = None) -> Ticket:
    """The ticket of an attached model (or of a dense one, all floats), with the masks of its scores now."""
    masked = masked_tensors(model) if plan.masked else {}
    parts = {
        name: [[part.axis, part.start, part.stop, part.factor] for part in each.source.parts]
        for name, each in masked.items()
        if any(part.factor != 1 for part in each.source.parts)
    }
    matrices = plan.sources.keys()
    return Ticket(
        seed=next(iter(plan.sources.values())).seed,
        kind=KIND,
        settings={
            "config": config_json(model),
            "parts": parts,
            "trained": sorted(name for name in plan.trained if name not in matrices),
        },
        laws={name: each.source.law for name, each in masked.items()},
        masks={name: each.mask.cpu().numpy() for name, each in masked.items()},
        floats={name: parameter.detach().float().cpu().numpy() for name, parameter in plan.trained.items()},
        metadata=metadata or {},
    )


class Found(nn.Module):
    """A found network. `model` is the transformers model; the state has only what a ticket holds."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.model = build_model(settings["config"])
        self._slots = slots(self.model)
        names = {slot.name for slot in self._slots}
        self._parts = {
            name: tuple(_part(part) for part in parts) for name, parts in settings["parts"].items()
        }
        if odd := sorted(self._parts.keys() - names):
            raise StrongTicketError(f"parts names {odd[0]!r}, which is no weight matrix of the model")
        rest = {name: (parameter, value) for name, parameter, value in others(self.model, self._slots)}
        if odd := sorted(set(settings["trained"]) - rest.keys()):
            raise StrongTicketError(f"trained names {odd[0]!r}, which is no parameter of the model")
        self._trained = {name: rest[name][0] for name in settings["trained"]}
        with torch.no_grad():
            for name, (parameter, value) in rest.items():
                if name not in self._trained:
                    parameter.fill_(math.nan if value is None else value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Weight matrices, tied ones once, and trained parameters; fixed biases and norms are no state."""
        matrices = {slot.name: slot.parameter.detach() for slot in self._slots}
        return matrices | {name: parameter.detach() for name, parameter in self._trained.items()}

    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> None:  # type: ignore[override]
        """Weights as a ticket draws them: the query and key parts are scaled here."""
        own = self.state_dict()
        if odd := sorted(own.keys() ^ state.keys()):
            raise StrongTicketError(f"tensor {odd[0]!r} is in the state or in the model, not in both")
        with torch.no_grad():
            for name, target in own.items():
                tensor = state[name].detach().clone()
                target.copy_(torch.from_numpy(scale_parts(tensor.numpy(), self._parts.get(name, ()))))


class SearchKind:
    """Tickets of searched transformers models."""

    def shapes(self, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        with torch.device("meta"):
            module = _found(settings)
        return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}

    def network(self, ticket: Ticket, *, threads: int | None = None) -> nn.Module:
        module = _found(ticket.settings)
        names = ticket.masks.keys() | ticket.floats.keys()
        module.load_state_dict(
            {name: torch.from_numpy(ticket.weights(name, threads=threads)) for name in names}
        )
        return module.requires_grad_(False).eval()

    def describe(self, summary: Summary) -> Description:
        """Of the model its sizes, not the hundred other options of its config."""
        config, parts = summary.settings["config"], summary.settings["parts"]
        sizes = ", ".join(f"{key}={value}" for key, value in config.items() if type(value) is int)
        factors = {f"{part[-1]:.3g}" for each in parts.values() for part in each}
        scaled = f"; query and key weights × {', '.join(sorted(factors))}" if factors else ""
        return Description(
            (("network", summary.kind), ("settings", f"{config['model_type']}: {sizes}{scaled}"))
        )

    def generate(
        self, ticket: Ticket, prompt: str, *, tokenizer: str | None = None, **options: Any
    ) -> Iterator[str]:
        """tokenizer: folder or name of a named tokenizer, if it is no longer where it was."""
        if not prompt:
            raise StrongTicketError("prompt is empty", hint="Give at least one character to start from.")
        if "tokenizer" not in ticket.metadata:
            raise StrongTicketError(
                "the ticket names no tokenizer, so it reads no text",
                hint="Use a ticket made by `strongticket search`.",
            )
        found = from_json(ticket.metadata["tokenizer"], name=tokenizer)
        context = int(ticket.metadata["context"])
        return generate(rebuild(ticket), found, prompt, context=context, slide=True, **options)


KINDS = {KIND: SearchKind()}


def _found(settings: Any) -> Found:
    if not isinstance(settings, dict) or settings.keys() != {"config", "parts", "trained"}:
        raise StrongTicketError("settings must have exactly config, parts and trained")
    return Found(settings)


def rebuild(ticket: Ticket) -> nn.Module:
    """The transformers model of a searched ticket, ready to run."""
    if ticket.kind != KIND:
        raise StrongTicketError(f"a ticket of kind {ticket.kind!r} was not made by a search")
    return ticket.network().model  # type: ignore[return-value]


def _part(stored: list[Any]) -> Part:
    axis, start, stop, factor = stored
    if axis not in (0, 1) or not 0 <= start < stop or not math.isfinite(factor):
        raise StrongTicketError(f"part {stored!r} must be axis 0 or 1, start < stop and a finite factor")
    return Part(axis, int(start), int(stop), float(factor))
