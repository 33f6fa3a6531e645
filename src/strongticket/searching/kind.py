"""Tickets of searched networks: from a searched model to a Ticket, and from a Ticket's settings to the model.

The scale of query and key weights is in the settings and is applied after the draw, so a ticket's checksums are
of the weights before scaling. Models of known families are rebuilt from their config; any other module is made by
its owner and filled: `Ticket.load(file).network(MyModule())`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from strongticket.data._generate import generate
from strongticket.data.tokenizers import from_json
from strongticket.errors import StrongTicketError
from strongticket.searching.masking.codes import code_shapes, decode
from strongticket.searching.masking.matrices import other_parameters, stored_buffers, weight_matrices
from strongticket.searching.masking.parameters import Attachment, attachment_of
from strongticket.searching.masking.source import ScaledSlice, scale_slices
from strongticket.searching.models import build_model, config_json, head_of, is_known
from strongticket.searching.task_kind import task_ticket
from strongticket.ticket import CompareOptions, Description, Summary, Ticket, TicketComparison
from strongticket.ticket.kinds import kind_of

KIND = "search"


def to_ticket(
    model: nn.Module, attachment: Attachment | None = None, *, metadata: dict[str, Any] | None = None
) -> Ticket:
    """The ticket of an attached model (or of a dense one, all floats), with the masks of its scores now.

    model: the searched model, of any class
    attachment: what `attach` or the search method returned; None means that of the last `attach`
    metadata: stored with the ticket
    """
    attachment = attachment or attachment_of(model)
    if attachment.base is not None:
        return task_ticket(model, attachment, metadata=metadata)
    stored = attachment.stored()
    slices = {
        name: [[each.axis, each.start, each.stop, each.factor] for each in tensor.slices]
        for name, tensor in stored.items()
        if any(part.factor != 1 for part in tensor.slices)
    }
    codes = {name: tensor.code() for name, tensor in stored.items() if tensor.code()}
    tensors = {
        name: each for matrix, tensor in stored.items() for name, each in tensor.tensors(matrix).items()
    }
    masks = {name: mask for name, (mask, _) in tensors.items()}
    floats = {
        name: tensor.detach().float().cpu().numpy()
        for name, tensor in (attachment.trained | stored_buffers(model)).items()
    }
    return Ticket(
        seed=attachment.seed,
        kind=KIND,
        settings=_architecture(model, {name: array.shape for name, array in (masks | floats).items()})
        | {
            "parts": slices,
            "trained": sorted(name for name in attachment.trained if name not in attachment.sources),
        }
        | ({"codes": codes} if codes else {}),
        laws={name: law for name, (_, law) in tensors.items()},
        masks=masks,
        floats=floats,
        metadata=metadata or {},
    )


def check_rebuilds(model: nn.Module, attachment: Attachment) -> None:
    """Raise, before any training, if a ticket of this model could not be rebuilt.

    model: with the method attached
    attachment: what the method returned
    """
    ticket = to_ticket(model, attachment)
    expected = kind_of(ticket.kind).shapes(ticket.settings)
    found = {name: tensor.shape for name, tensor in (ticket.masks | ticket.floats).items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise StrongTicketError(
                f"a ticket of this model could not be rebuilt: tensor {name!r} has shape {found.get(name)}, and "
                f"{expected.get(name)} in a model made from its config (None: no such tensor)",
                hint="Change the model through its config, not its modules.",
            )


def _architecture(model: nn.Module, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """The settings that say what the network is: a known model's config, or names and shapes of an own module."""
    if not is_known(model):
        # torch gives a module with masks of its own a class Parametrized...
        own = type(model).__mro__[1 if parametrize.is_parametrized(model) else 0]
        return {
            "module": own.__name__,
            "shapes": {name: list(shape) for name, shape in sorted(shapes.items())},
        }
    head = head_of(model)
    return {"config": config_json(model)} | ({"head": head} if head else {})


class FoundNetwork(nn.Module):
    """A searched network. `model` is the model itself; the state has only what a ticket holds.

    settings: of the ticket
    module: to fill; None makes the model that the settings describe
    """

    def __init__(self, settings: dict[str, Any], module: nn.Module | None = None) -> None:
        super().__init__()
        self.model = (
            module if module is not None else build_model(settings["config"], settings.get("head", ""))
        )
        self._matrices = weight_matrices(self.model)
        names = {matrix.name for matrix in self._matrices}
        self._slices = {
            name: tuple(_slice(each) for each in slices) for name, slices in settings["parts"].items()
        }
        if odd := sorted(self._slices.keys() - names):
            raise StrongTicketError(f"parts names {odd[0]!r}, which is not a weight matrix of the model")
        rest = {
            name: (parameter, value)
            for name, parameter, value in other_parameters(self.model, self._matrices)
        }
        if odd := sorted(set(settings["trained"]) - rest.keys()):
            raise StrongTicketError(f"trained names {odd[0]!r}, which is not a parameter of the model")
        self._trained = {name: rest[name][0] for name in settings["trained"]}
        self._codes = settings.get("codes", {})
        self._code_shapes = code_shapes(self._codes, {matrix.name: matrix.shape for matrix in self._matrices})
        with torch.no_grad():
            for name, (parameter, value) in rest.items():
                if name in self._trained:
                    continue
                if value is None:
                    raise StrongTicketError(f"the ticket has no value for parameter {name!r} of the model")
                parameter.fill_(value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Weight matrices, tied ones once, trained parameters and buffers; fixed biases and norms are left out."""
        matrices = {matrix.name: matrix.parameter.detach() for matrix in self._matrices}
        trained = {name: parameter.detach() for name, parameter in self._trained.items()}
        return matrices | trained | stored_buffers(self.model)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the ticket's tensors: those of the state, and what codes add."""
        return {name: tuple(tensor.shape) for name, tensor in self.state_dict().items()} | self._code_shapes

    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> None:
        """Weights as a ticket draws them: they are decoded, and the query and key slices scaled, here."""
        own = self.state_dict()
        if odd := sorted((own.keys() | self._code_shapes.keys()) ^ state.keys()):
            raise StrongTicketError(f"tensor {odd[0]!r} is in the state or in the model, not in both")
        with torch.no_grad():
            for name, target in own.items():
                matrix, levels = decode(
                    self._codes.get(name, {}), name, lambda each: state[each].detach().numpy()
                )
                matrix = scale_slices(matrix.copy(), self._slices.get(name, ()))
                target.copy_(torch.from_numpy(matrix if levels is None else matrix * levels))


class SearchKind:
    """Tickets of searched models."""

    def shapes(self, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        _check(settings)
        if "shapes" in settings:
            return {name: tuple(int(size) for size in shape) for name, shape in settings["shapes"].items()}
        with torch.device("meta"):
            found = FoundNetwork(settings)
        return found.shapes()

    def network(
        self, ticket: Ticket, *, threads: int | None = None, module: nn.Module | None = None
    ) -> nn.Module:
        """The model itself, of its own class.

        module: filled and returned, in evaluation mode; needed for a class that is not one of transformers'
        """
        settings = ticket.settings
        _check(settings)
        if module is None and "config" not in settings:
            name = settings["module"]
            raise StrongTicketError(
                f"the ticket is of a {name}, and a ticket file never holds code",
                hint=f"Pass a module of that class to be filled: ticket.network({name}()).",
            )
        found = FoundNetwork(settings, module)
        names = ticket.masks.keys() | ticket.floats.keys()
        _check_fits(found.shapes(), {name: (ticket.masks | ticket.floats)[name].shape for name in names})
        found.load_state_dict(
            {name: torch.from_numpy(ticket.weights(name, threads=threads)) for name in names}
        )
        return found.model.requires_grad_(False).eval()

    def describe(self, summary: Summary) -> Description:
        """Describe the ticket; of the model's config only the sizes are listed, not its hundred other options."""
        slices = summary.settings["parts"]
        config = summary.settings.get(
            "config", {"model_type": f"own module {summary.settings.get('module')}"}
        )
        sizes = ", ".join(f"{key}={value}" for key, value in config.items() if type(value) is int)
        factors = {f"{stored[-1]:.3g}" for parts in slices.values() for stored in parts}
        scaled = f"; query and key weights × {', '.join(sorted(factors))}" if factors else ""
        return Description(
            (("network", summary.kind), ("settings", f"{config['model_type']}: {sizes}{scaled}"))
        )

    def generate(
        self,
        ticket: Ticket,
        prompt: str,
        *,
        tokenizer: str | None = None,
        base: str | None = None,
        **options: Any,
    ) -> Iterator[str]:
        """tokenizer: folder of the tokenizer, if the ticket does not contain it."""
        if base is not None:
            raise StrongTicketError(
                "base does not apply: a searched ticket has no trained model", hint="Leave it out."
            )
        if not prompt:
            raise StrongTicketError("prompt is empty", hint="Give at least one character to start from.")
        if "tokenizer" not in ticket.metadata:
            raise StrongTicketError(
                "the ticket does not name a tokenizer, so it cannot read text",
                hint="Use a ticket that was searched on text.",
            )
        found = from_json(ticket.metadata["tokenizer"], name=tokenizer)
        context = int(ticket.metadata["context"])
        return generate(ticket.network(), found, prompt, context=context, slide=True, **options)

    def compare(self, ticket: Ticket, model: str, options: CompareOptions) -> TicketComparison:
        from strongticket.pretrained.comparison import compare_models
        from strongticket.pretrained.target import load_target

        options.refuse("only networks of strongticket.nets are certified as a whole", "epsilon")
        source, target = ticket.network(), load_target(model)
        if type(target) is not type(source):
            raise StrongTicketError(
                f"{model} is a {type(target).__name__}, the ticket belongs to a {type(source).__name__}",
                hint="Compare it with a model of the same class.",
            )
        target_shapes, source_shapes = (
            {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}
            for network in (target, source)
        )
        _check_fits(target_shapes, source_shapes)
        return compare_models(model, target, source, options)


KINDS = {KIND: SearchKind()}


def _check(settings: Any) -> None:
    described = ({"config"}, {"config", "head"}, {"module", "shapes"})
    if not isinstance(settings, dict) or settings.keys() - {"codes"} not in (
        *({"parts", "trained"} | fields for fields in described),
    ):
        raise StrongTicketError(
            "settings must have exactly config, parts and trained, and may have codes and head; of a module of "
            "another class they have module and shapes instead of config"
        )


def _check_fits(module: dict[str, tuple[int, ...]], ticket: dict[str, tuple[int, ...]]) -> None:
    """Names and shapes of the module's tensors against the ticket's."""
    for name in sorted(module.keys() | ticket.keys()):
        if module.get(name) != ticket.get(name):
            raise StrongTicketError(
                f"tensor {name!r}: the module has shape {module.get(name)}, the ticket {ticket.get(name)} "
                "(None: no such tensor)",
                hint="Use one with the sizes that it was searched with.",
            )


def _slice(stored: list[Any]) -> ScaledSlice:
    axis, start, stop, factor = stored
    if axis not in (0, 1) or not 0 <= start < stop or not math.isfinite(factor):
        raise StrongTicketError(f"slice {stored!r} must be axis 0 or 1, start < stop and a finite factor")
    return ScaledSlice(axis, int(start), int(stop), float(factor))
