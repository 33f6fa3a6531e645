"""A ticket's network against the model it was built from, on the same inputs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from strongticket.pretrained._certify import LayerCertificate
from strongticket.pretrained.inputs import Batch
from strongticket.pretrained.tensors import repeated_layers


@dataclass(frozen=True)
class Comparison:
    """loss: per predicted token, None where nothing is predicted; divergence: KL of target from source, in nats;
    agreement: share of positions with the same likeliest class; cosine: of mean-pooled last hidden states, one
    per sequence; layers: ‖source − target‖ / ‖target‖ after each layer; certificates: of attention layers.
    """

    tokens: int
    target_loss: float | None
    source_loss: float | None
    divergence: float | None
    agreement: float | None
    cosine_mean: float
    cosine_min: float
    layers: tuple[float, ...]
    certificates: tuple[LayerCertificate, ...] = ()


@dataclass
class _Sums:
    """Running totals; a model's outputs are held for one batch at a time."""

    positions: int = 0
    labels: int = 0
    target_loss: float = 0.0
    source_loss: float = 0.0
    divergence: float = 0.0
    agreement: int = 0
    cosines: list[float] = field(default_factory=list)
    errors: dict[int, list[float]] = field(default_factory=dict)
    attention: dict[str, list[float]] = field(default_factory=dict)  # the outputs' norms added up, and tokens


def compare(
    target: nn.Module,
    source: nn.Module,
    batches: list[Batch],
    *,
    certificates: tuple[LayerCertificate, ...] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run both on the same inputs.

    target: the trained model; source: the ticket's network, of the same class
    batches: what to run them on, see `pretrained.batches`
    certificates: of attention layers, to be reported with the result
    progress: called with the number of finished batches and their total
    """
    blocks = list(repeated_layers(target))
    certified = [certificate.module for certificate in certificates]
    sums = _Sums()
    for number, batch in enumerate(batches):
        wanted, outputs = _run(target, batch, blocks + certified)
        target_layers = [hidden for path, hidden in outputs if path in blocks]
        _add_attention(sums, batch, [(path, hidden) for path, hidden in outputs if path in certified])
        found, outputs = _run(source, batch, blocks)
        source_layers = [hidden for _, hidden in outputs]
        if not target_layers:
            target_layers, source_layers = (
                [x] if (x := _first_tensor(y)) is not None else [] for y in (wanted, found)
            )
        _add_layers(sums, batch, target_layers, source_layers)
        if hasattr(wanted, "logits"):
            _add_logits(sums, batch, wanted.logits, found.logits)
        if progress is not None:
            progress(number + 1, len(batches))
    has_logits = sums.positions > 0
    cosines = torch.tensor(sums.cosines)
    return Comparison(
        tokens=sums.positions,
        target_loss=sums.target_loss / sums.labels if sums.labels else None,
        source_loss=sums.source_loss / sums.labels if sums.labels else None,
        divergence=sums.divergence / sums.positions if has_logits else None,
        agreement=sums.agreement / sums.positions if has_logits else None,
        cosine_mean=float(cosines.mean()),
        cosine_min=float(cosines.min()),
        layers=tuple((wrong / whole) ** 0.5 if whole else 0.0 for wrong, whole in sums.errors.values()),
        certificates=tuple(
            replace(each, output=total / tokens if tokens else None)
            for each in certificates
            for total, tokens in [sums.attention.get(each.module, (0.0, 0.0))]
        ),
    )


def _run(model: nn.Module, batch: Batch, paths: list[str]) -> tuple[Any, list[tuple[str, Tensor]]]:
    """The model's output, and what the modules at these paths left, in the order in which they ran."""
    left: list[tuple[str, Tensor]] = []

    def keep(path: str, module: nn.Module, inputs: Any, output: Any) -> None:
        if (hidden := _first_tensor(output)) is not None:
            left.append((path, hidden))

    hooks = [model.get_submodule(path).register_forward_hook(partial(keep, path)) for path in paths]
    try:
        with torch.no_grad():
            return model(**batch.inputs), left
    finally:
        for hook in hooks:
            hook.remove()


def _first_tensor(output: Any) -> Tensor | None:
    """Hidden states of a block, or the first output of a model without blocks."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() else None
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, tuple) else ()
    return next((found for part in parts if (found := _first_tensor(part)) is not None), None)


def _add_layers(sums: _Sums, batch: Batch, target: list[Tensor], source: list[Tensor]) -> None:
    for layer, pair in enumerate(zip(target, source, strict=True)):
        a, b = (_without_padding(x, batch) for x in pair)
        wrong, whole = sums.errors.setdefault(layer, [0.0, 0.0])
        sums.errors[layer] = [wrong + float((b - a).square().sum()), whole + float(a.square().sum())]
    # Padding is zero by now, so sums are means up to a factor that a cosine does not see.
    pooled_a, pooled_b = (x.flatten(1, -2).sum(1) if x.ndim > 2 else x for x in (a, b))
    sums.cosines += torch.cosine_similarity(pooled_a, pooled_b).tolist()


def _add_attention(sums: _Sums, batch: Batch, outputs: list[tuple[str, Tensor]]) -> None:
    for path, output in outputs:
        norms = _without_padding(output, batch).norm(dim=-1)
        total, tokens = sums.attention.get(path, (0.0, 0.0))
        sums.attention[path] = [total + float(norms.sum()), tokens + int(norms.count_nonzero())]


def _without_padding(hidden: Tensor, batch: Batch) -> Tensor:
    """The hidden states in float64, with zeros at the tokens that only pad a batch."""
    real = batch.real
    if real is None or hidden.ndim != 3 or hidden.shape[:2] != real.shape:
        return hidden.double()
    return hidden.double() * real[..., None]


def _add_logits(sums: _Sums, batch: Batch, target: Tensor, source: Tensor) -> None:
    labels = batch.labels
    if target.ndim == 3 and batch.real is not None:
        target, source = target[batch.real], source[batch.real]
        labels = None if labels is None else labels[batch.real]
    classes = target.shape[-1]
    a, b = (x.reshape(-1, classes).double().log_softmax(-1) for x in (target, source))
    sums.positions += len(a)
    sums.divergence += float((a.exp() * (a - b)).sum())
    sums.agreement += int((a.argmax(-1) == b.argmax(-1)).sum())
    if labels is not None:
        flat = labels.reshape(-1)
        sums.labels += int((flat >= 0).sum())
        sums.target_loss += float(nn.functional.nll_loss(a, flat, reduction="sum"))
        sums.source_loss += float(nn.functional.nll_loss(b, flat, reduction="sum"))
