"""The scale of query and key weights, measured: attention logits with a standard deviation of about 0.7."""

from __future__ import annotations

import math
from typing import Any

import torch

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.parameters import Attachment, attachment_of
from strongticket.searching.masking.weights import Masked

TARGET_LOGIT_STD = 0.7


def logit_std(model: Any, inputs: torch.Tensor | dict[str, torch.Tensor]) -> float:
    """Standard deviation of the attention logits of a transformers model.

    Within each query's row, because softmax sees no constant; over the keys the query may attend to, then the
    root mean square over rows, heads and layers. Read from the attention probabilities: log p differs from
    the logits by one constant per row. One item at a time, so that the attention maps of a single sequence are the
    most that is in memory.

    Args:
        model: a transformers model, attached or not
        inputs: tokens (batch, length), or any keyword arguments that the model takes
    """
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "set_attn_implementation"):
        raise StrongTicketError(
            "the attention logits are measured on transformers models", hint="Pass qk_scale as a number."
        )
    before, was_training = config._attn_implementation, model.training
    model.set_attn_implementation("eager")  # the one that returns its probabilities
    named = inputs if isinstance(inputs, dict) else {"input_ids": inputs}
    total = rows = 0.0
    try:
        with torch.no_grad():  # and without dropout, which would draw from the caller's generator
            model.eval()
            for item in range(len(next(iter(named.values())))):
                one = {name: tensor[item : item + 1] for name, tensor in named.items()}
                for probabilities in model(**one, output_attentions=True).attentions:
                    variances = _row_variances(probabilities)
                    total += float(variances.sum())
                    rows += variances.numel()
    finally:
        model.set_attn_implementation(before)
        model.train(was_training)
    if not rows:
        raise StrongTicketError(
            "no query sees two keys, so its logits have no spread",
            hint="Give sequences of at least 2 tokens.",
        )
    return math.sqrt(max(total, 0.0) / rows)


def _row_variances(probabilities: torch.Tensor) -> torch.Tensor:
    """Variance of the logits of each query that sees several keys, from (1, heads, length, length) probabilities."""
    found = []
    for head in probabilities[0]:  # float64 of one head at a time
        seen = head > 0
        logits = torch.where(seen, head, 1).double().log()
        count = seen.sum(-1).clamp(min=1)
        variance = (logits**2).sum(-1) / count - (logits.sum(-1) / count) ** 2
        found.append(variance[count > 1])
    return torch.cat(found)


def calibrated_scale(model: Any, inputs: torch.Tensor | dict[str, torch.Tensor]) -> float:
    """Set the scale of query and key weights so that the attention logits deviate by TARGET_LOGIT_STD.

    Args:
        model: a transformers model, attached with qk_scale=1
        inputs: tokens (batch, length) or keyword arguments of the model, a sample of the data

    Returns:
        The scale.
    """
    scaled = scaled_weights(attachment_of(model))
    if any(part.factor != 1 for weights in scaled for part in weights.source.slices):
        raise StrongTicketError("the model has a query and key scale", hint="Attach it with qk_scale=1.")
    unscaled = [weights.frozen.cpu().numpy().copy() for weights in scaled]
    scale = 1.0
    for _ in range(4):  # logits grow with scale^2; a few rounds, because deeper layers see other inputs
        scale *= math.sqrt(TARGET_LOGIT_STD / logit_std(model, inputs))
        for weights, plain in zip(scaled, unscaled, strict=True):
            weights.rescale(scale, plain)
    return scale


def scaled_weights(attachment: Attachment) -> list[Masked]:
    """The masked weights with query and key slices; none if weights are trained, as they find their own scale."""
    masked = [matrix.weights for matrix in attachment.masked]
    return [weights for weights in masked if isinstance(weights, Masked) and weights.source.slices]
