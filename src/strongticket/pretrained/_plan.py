"""What a build will need and reach: file size, error, time and memory."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from safetensors import safe_open
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.models.loading import OpenedModel
from strongticket.models.tensors import matrix_shape
from strongticket.pretrained.options import ModelOptions
from strongticket.pretrained.quality import Patch, Sample, middle, spread
from strongticket.pretrained.size import choose, overhead_bits
from strongticket.pretrained.source import Source
from strongticket.pretrained.targets import Targets
from strongticket.work.processes import processes

PROGRAM = 450e6  # bytes of a process that has loaded torch and numba
PER_NUMBER = 250  # bytes while a piece is being solved
START = 3.0  # seconds until processes have started and the solver is loaded


@dataclass(frozen=True)
class ModelPlan:
    """numbers: how many are made; bits: of the file, for each of them; error: relative root mean square;
    seconds: with `workers` on this machine; whole: nothing trained is left.
    """

    tensors: int
    numbers: int
    pieces: int
    whole: bool
    units: float
    bits: float
    error: float
    workers: int
    seconds: float
    memory_bytes: int
    file_bytes: int
    model_bytes: int


def plan(
    target: str | nn.Module,
    options: ModelOptions | None = None,
    *,
    workers: int | None = None,
    **changes: Any,
) -> ModelPlan:
    """What `build_file` will need and reach. Given a folder or hub name, only a few patches of the weights are read.

    target: folder or hub name of a model, or the model itself
    workers: number of processes to plan for; None means one per core
    options, changes: as in `build_file`, but without `loss`, which needs runs of the model itself
    """
    asked = replace(ModelOptions.of(options, changes), calibrate=None)  # which costs next to nothing
    if asked.loss is not None:
        raise StrongTicketError(
            "a plan cannot predict which tolerance a loss needs", hint="Plan with tolerance or bits."
        )
    workers = processes(workers)
    if isinstance(target, nn.Module):
        targets = Targets.of(target, asked)
        sample = Sample(targets.sample)
    else:
        opened = OpenedModel(target)
        targets = Targets.of(opened.architecture.empty(), asked)
        sample = Sample(partial(_patches, opened))
    shapes = targets.shapes()
    quality = choose(shapes, sample, asked)
    sample.measure(quality.units, quality.tolerance)  # the first compiles, or loads what was compiled
    sample.measure.cache_clear()
    measured = sample.measure(quality.units, quality.tolerance)
    source = Source(targets.settings(quality))
    other, matrices = overhead_bits(shapes, asked.piece_problems)
    numbers = sum(tensor.size for tensor in source.tensors.values())
    file_bits = other + measured.bits * matrices
    model_bytes = 4 * sum(parameter.numel() for parameter in targets.model.parameters())
    largest = max(piece.problems for piece in source.pieces)
    return ModelPlan(
        tensors=len(shapes),
        numbers=numbers,
        pieces=len(source.pieces),
        whole=targets.base is None,
        units=quality.units,
        bits=file_bits / numbers,
        error=measured.error,
        workers=workers,
        seconds=START + numbers * measured.seconds / workers,
        memory_bytes=int(
            PROGRAM * (1 + workers * (workers > 1)) + model_bytes + workers * PER_NUMBER * largest
        ),
        file_bytes=int(file_bits / 8),
        model_bytes=model_bytes,
    )


def _patches(opened: OpenedModel) -> list[Patch]:
    """Patches from the weight files of a folder; none if it has no weights."""
    try:
        found = opened.tensors
    except StrongTicketError:
        return []
    patches = []
    for name, numbers in spread({name: shape for name, (_, shape) in found.items()}).items():
        path, shape = found[name]
        with safe_open(path, framework="pt") as file:
            if len(shape) == 2:
                tensor = file.get_slice(name)[middle((shape[0], shape[1]))]
            else:
                matrix = file.get_tensor(name).reshape(matrix_shape(shape))
                tensor = matrix[middle((matrix.shape[0], matrix.shape[1]))]
        patches.append(Patch(tensor.double().numpy(), max(matrix_shape(shape)), numbers))
    return patches
