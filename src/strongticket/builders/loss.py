"""Spend bits where they lower the loss most: steps of tensors so that the loss grows by no more than is asked for.

An error of variance v in tensor t changes what the model predicts by about s_t·v (KL divergence), and costs
n_t·log2(1/v)/2 bits. The fewest bits for the same change have v_t ∝ n_t / s_t.
"""

import copy
import math
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from strongticket.builders.options import ModelOptions
from strongticket.builders.steps import Sample, Steps, is_vector
from strongticket.builders.targets import Targets
from strongticket.errors import StrongTicketError
from strongticket.models.comparing import compare_models
from strongticket.models.inputs import Batch
from strongticket.models.tensors import fill, tensor_named

NOISE = 0.05  # relative error of the tensor that is tried
SPREAD = 16.0  # most that a tensor's step may be above or below the mean
STEPS = 9  # of the search, each halves the range
RANGE = (1e-4, 1.5)  # steps that are tried
_MARGIN = 0.9  # of the growth asked for, on the half of the text that the step is found on

Made = Callable[[Steps], dict[str, np.ndarray]]  # steps -> the tensors that a ticket with them has


def reach_loss(targets: Targets, options: ModelOptions, made: Made) -> tuple[Steps, str]:
    """The largest steps whose ticket keeps to the loss asked for, and what the ticket then says of it."""
    assert options.loss is not None
    assert options.data is not None
    search, check = halves(targets.batches(options.data))
    weights = step_weights(targets, search)
    sample = Sample(targets, options)

    low, high = RANGE
    best: tuple[Steps, float] | None = None
    for _ in range(STEPS):
        step = math.sqrt(low * high)
        steps = sample.steps(step, weights)
        network = fill(copy.deepcopy(targets.model), made(steps).items())
        grown = growth(targets.model, network, search)
        checked = growth(targets.model, network, check) if grown <= _MARGIN * options.loss else math.inf
        if checked <= options.loss:
            low, best = step, (steps, checked)
        else:
            high = step
    if best is None:
        raise StrongTicketError(
            f"loss={options.loss:g} was not reached, even with a step of {low:.1g}",
            hint="Ask for a larger loss, or give a longer text as data.",
        )
    return best[0], f"{100 * best[1]:+.2f} % on held-out text of {options.data.name}"


def halves(found: list[Batch]) -> tuple[list[Batch], list[Batch]]:
    """The text in two parts that have no sequence in common."""
    if len(found) == 1:
        (batch,) = found
        rows = len(next(iter(batch.inputs.values())))
        if rows == 1:
            raise StrongTicketError(
                "the text of data makes one sequence: expected one to choose the steps on and one to check them on",
                hint="Give a longer text.",
            )
        found = [batch.rows(slice(0, rows // 2)), batch.rows(slice(rows // 2, rows))]
    middle = len(found) // 2
    return found[:middle], found[middle:]


def step_weights(targets: Targets, found: list[Batch]) -> dict[str, float]:
    """Matrix -> its step over that of all, by how much noise in it alone changes the predictions."""
    sizes = {name: math.prod(shape) for name, shape in targets.shapes().items() if not is_vector(shape)}
    variances = {}
    for name, size in sizes.items():
        change = compare_models(targets.model, with_noise(targets.model, name), found).divergence
        if change is None:
            raise _without_loss(targets.model)
        variances[name] = size / max(change, 1e-12)
    total = sum(size * math.log(variances[name]) for name, size in sizes.items())
    mean = math.exp(total / max(sum(sizes.values()), 1))
    return {
        name: min(max(math.sqrt(variance / mean), 1 / SPREAD), SPREAD) for name, variance in variances.items()
    }


def with_noise(model: nn.Module, name: str) -> nn.Module:
    """A copy with normal noise on one tensor."""
    noisy = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        tensor = tensor_named(noisy, name)
        size = NOISE * float(tensor.double().square().mean().sqrt())
        tensor.add_(size * torch.randn(tensor.shape, generator=generator).to(tensor))
    return noisy


def growth(target: nn.Module, source: nn.Module, found: list[Batch]) -> float:
    """How much larger the source's loss is, as a fraction of the target's."""
    compared = compare_models(target, source, found)
    if compared.target_loss is None or compared.source_loss is None:
        raise _without_loss(target)
    return compared.source_loss / compared.target_loss - 1


def _without_loss(model: nn.Module) -> StrongTicketError:
    return StrongTicketError(
        f"a {type(model).__name__} predicts no tokens, so it has no loss on a text",
        hint="Give tolerance or bits instead, and look at `strongticket compare`.",
    )
