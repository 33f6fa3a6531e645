"""Two models of one class on the same inputs: a ticket's network beside the model that it stands for."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.models.generation import generate
from strongticket.models.inputs import SEQUENCES, Batch, batches, task
from strongticket.models.loading import OpenedModel
from strongticket.models.tensors import repeated_layers
from strongticket.models.tokenizers import FromFiles
from strongticket.ticket import CompareOptions, TicketComparison

_TOKENS = 40  # of a continuation


@dataclass(frozen=True)
class ModelComparison:
    """What two models made of the same inputs.

    losses: per predicted token, None where nothing is predicted
    divergence: KL of target from source, in nats; agreement: fraction of positions with the same likeliest class
    cosine: of mean-pooled last hidden states, one per sequence
    layers: ‖source − target‖ / ‖target‖ after each layer
    """

    tokens: int
    target_loss: float | None
    source_loss: float | None
    divergence: float | None
    agreement: float | None
    cosine_mean: float
    cosine_min: float
    layers: tuple[float, ...]


def compare_models(
    target: nn.Module,
    source: nn.Module,
    found: list[Batch],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> ModelComparison:
    """Run both on the same inputs.

    Args:
        target: the trained model.
        source: the ticket's network, of the same class.
        found: what to run them on, see `batches`.
        progress: called with the number of finished batches and their total.
    """
    blocks = list(repeated_layers(target))
    sums: dict[str, float] = defaultdict(float)  # a model's outputs are held for one batch at a time
    squares: Any = 0.0
    cosines: list[float] = []
    for number, batch in enumerate(found):
        (wanted, target_layers), (got, source_layers) = (
            _run(model, batch, blocks) for model in (target, source)
        )
        more, cosine = _compare_layers(batch, target_layers, source_layers)
        squares, cosines = squares + more, cosines + cosine
        if hasattr(wanted, "logits"):
            _add_logits(sums, batch, wanted.logits, got.logits)
        if progress is not None:
            progress(number + 1, len(found))
    positions, labels = int(sums["positions"]), sums["labels"]
    return ModelComparison(
        tokens=positions,
        target_loss=sums["target_loss"] / labels if labels else None,
        source_loss=sums["source_loss"] / labels if labels else None,
        divergence=sums["divergence"] / positions if positions else None,
        agreement=sums["agreement"] / positions if positions else None,
        cosine_mean=float(torch.tensor(cosines).mean()),
        cosine_min=float(torch.tensor(cosines).min()),
        layers=tuple((wrong / whole) ** 0.5 if whole else 0.0 for wrong, whole in squares.tolist()),
    )


def _run(model: nn.Module, batch: Batch, blocks: list[str]) -> tuple[Any, list[Tensor]]:
    """The model's output, and the hidden states after each block, or the first output without blocks."""
    left: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Any) -> None:
        left.extend(_tensors(output)[:1])

    hooks = [model.get_submodule(path).register_forward_hook(keep) for path in blocks]
    try:
        with torch.no_grad():
            output = model(**batch.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return output, left or _tensors(output)[:1]


def _tensors(output: Any) -> list[Tensor]:
    """Floating point tensors of what a module returns."""
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, tuple) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _compare_layers(batch: Batch, target: list[Tensor], source: list[Tensor]) -> tuple[Tensor, list[float]]:
    """(squares of the error and of the target after each layer, cosines of the sequences after the last)."""
    squares = []
    for pair in zip(target, source, strict=True):
        a, b = (_without_padding(x, batch) for x in pair)
        squares.append(torch.stack([(b - a).square().sum(), a.square().sum()]))
    # Padding is zero by now, so sums are means up to a factor that a cosine does not see.
    pooled_a, pooled_b = (x.flatten(1, -2).sum(1) if x.ndim > 2 else x for x in (a, b))
    return torch.stack(squares), torch.cosine_similarity(pooled_a, pooled_b).tolist()


def _without_padding(hidden: Tensor, batch: Batch) -> Tensor:
    """The hidden states in float64, with zeros at the tokens that only pad a batch."""
    real = batch.real
    if real is None or hidden.ndim != 3 or hidden.shape[:2] != real.shape:
        return hidden.double()
    return hidden.double() * real[..., None]


def _add_logits(sums: dict[str, float], batch: Batch, target: Tensor, source: Tensor) -> None:
    labels = batch.labels
    if target.ndim == 3 and batch.real is not None:
        target, source = target[batch.real], source[batch.real]
        labels = None if labels is None else labels[batch.real]
    classes = target.shape[-1]
    a, b = (x.reshape(-1, classes).double().log_softmax(-1) for x in (target, source))
    sums["positions"] += len(a)
    sums["divergence"] += float((a.exp() * (a - b)).sum())
    sums["agreement"] += int((a.argmax(-1) == b.argmax(-1)).sum())
    if labels is not None:
        flat = labels.reshape(-1)
        sums["labels"] += int((flat >= 0).sum())
        sums["target_loss"] += float(nn.functional.nll_loss(a, flat, reduction="sum"))
        sums["source_loss"] += float(nn.functional.nll_loss(b, flat, reduction="sum"))


def ticket_comparison(
    opened: OpenedModel,
    target: nn.Module,
    source: nn.Module,
    options: CompareOptions,
    rivals: Mapping[str, tuple[nn.Module, float]] = MappingProxyType({}),
) -> TicketComparison:
    """What `strongticket compare` says of two transformers models, whatever the kind of ticket.

    Args:
        opened: where the target comes from; its tokenizer reads the text.
        target: the trained model.
        source: the ticket's network, of the same class.
        options: what to run them on.
        rivals: other models in the place of the ticket's network by name, and their bits for each number.
    """
    files = opened.folder.tokenizer_files() if options.data or options.prompts else {}
    tokenizer = FromFiles(files) if files else None
    inputs = batches(
        target,
        options.data,
        tokenizer.inner if tokenizer else None,
        seed=options.seed,
        sequences=SEQUENCES if options.sequences is None else options.sequences,
    )
    found = compare_models(target, source, inputs, progress=options.progress)
    facts: JsonObject = {"target": opened.name, "data": None if options.data is None else str(options.data)}
    facts |= asdict(found)
    for name, loss in (("target", found.target_loss), ("source", found.source_loss)):
        # No float can hold the exponential of a larger one.
        facts[f"{name}_perplexity"] = math.exp(loss) if loss is not None and loss < 700 else None
    if options.prompts:
        facts["answers"] = [_continued(target, source, tokenizer, prompt) for prompt in options.prompts]
    facts["rivals"] = {}
    for name, (model, bits) in rivals.items():
        effect = asdict(compare_models(target, model, inputs))
        judged_by = ("source_loss", "divergence", "cosine_mean", "cosine_min")
        facts["rivals"][name] = {"bits": bits} | {key: effect[key] for key in judged_by}
    layers = [(str(number), f"{error:.2e}") for number, error in enumerate(found.layers)]
    return TicketComparison(facts, tuple(_rows(facts)), (("after layer", "relative error"), *layers))


def _continued(target: Any, source: Any, tokenizer: FromFiles | None, prompt: str) -> dict[str, str]:
    """The likeliest continuation of the prompt by both."""
    if tokenizer is None or task(target) != "next-token":
        raise StrongTicketError(
            f"prompts are continued by language models with a tokenizer, and this is a {type(target).__name__}"
            + (" without one" if tokenizer is None else ""),
            hint="Leave them out.",
        )
    target_text, source_text = (
        "".join(generate(network, tokenizer, prompt, tokens=_TOKENS)) for network in (target, source)
    )
    return {"prompt": prompt, "target": target_text, "ticket": source_text}


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("loss", "perplexity"):
        if facts[f"target_{name}"] is not None and facts[f"source_{name}"] is not None:
            ticket, model = facts[f"source_{name}"], facts[f"target_{name}"]
            yield name, f"{ticket:.4f} of the ticket, {model:.4f} of the model"
    if facts["divergence"] is not None:
        yield "KL divergence", f"{facts['divergence']:.3g} nats at {facts['tokens']:,} positions"
        yield "same likeliest answer", f"{facts['agreement']:.2%}"
    cosine = f"{facts['cosine_mean']:.6f}, at least {facts['cosine_min']:.6f}"
    yield "cosine of mean hidden states", cosine
    for name, rival in facts["rivals"].items():
        loss = "" if rival["source_loss"] is None else f"loss {rival['source_loss']:.4f}, "
        yield (
            f"{name}, {rival['bits']:.2f} bits",
            f"{loss}cosine {rival['cosine_mean']:.6f}, at least {rival['cosine_min']:.6f}",
        )
    for answer in facts.get("answers", ()):
        yield "prompt", answer["prompt"]
        yield "the model continues", answer["target"]
        yield "the ticket continues", answer["ticket"]
