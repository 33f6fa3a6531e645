"""What a model's ticket will take and reach, from some rows of its tensors: nothing is built."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from strongticket.builders.options import ModelOptions
from strongticket.builders.steps import choose_steps
from strongticket.builders.targets import Targets
from strongticket.errors import StrongTicketError


@dataclass(frozen=True)
class ModelPlan:
    """A ticket before it is built.

    Attributes:
        tensors: that are made.
        numbers: of them together.
        whole: whether nothing trained is left.
        step: distance of a matrix's random weights, in root mean squares of its rows.
        states: of the trellis.
        bits: of the file for each number, tokenizer aside.
        error: relative root mean square error of the numbers.
        tokenizer_bytes: of the file.
        file_bytes: in all.
    """

    tensors: int
    numbers: int
    whole: bool
    step: float
    states: int
    bits: float
    error: float
    tokenizer_bytes: int
    file_bytes: int


def plan_model(target: nn.Module | str | Path, **options: Any) -> ModelPlan:
    """Plan what `build` makes with the same options, but for `loss`, which needs runs of the model itself.

    >>> plan_model(nn.Linear(256, 256), bits=4).numbers
    65792
    """
    asked = ModelOptions(**options)
    if asked.loss is not None or asked.by == "subset":
        raise StrongTicketError(
            "plan covers tickets by choice, with bits or a tolerance: it cannot predict what a loss takes",
            hint="Plan with tolerance or bits.",
        )
    targets = Targets.open(target, asked)
    steps = choose_steps(targets, asked)
    return ModelPlan(
        tensors=len(targets.shapes()),
        numbers=targets.numbers,
        whole=targets.base is None,
        step=max(steps.of.values()),
        states=asked.states,
        bits=steps.file_bits / targets.numbers,
        error=steps.error,
        tokenizer_bytes=targets.tokenizer_bytes,
        file_bytes=round(steps.file_bits / 8) + targets.tokenizer_bytes,
    )
