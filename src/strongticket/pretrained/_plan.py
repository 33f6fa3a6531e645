"""Before a build: how many problems, how long, how much memory, how large the file."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from strongticket.pretrained import families
from strongticket.pretrained.build import PER_ROW, TOLERANCE, check_tolerance
from strongticket.pretrained.pieces import PROBLEMS, Finished, Job, Layout, cut, solve_piece
from strongticket.pretrained.target import check_target, chosen_maps, describe, skeleton
from strongticket.workers import processes

HEAVIER = 1.3  # trained matrices have longer tails than the normal one that is timed (measured: 1.1 to 1.5)
PROGRAM = 700e6  # bytes of a process that has loaded torch and numba
PER_PROBLEM = 250  # bytes while a piece is being solved (measured at 24 units a row)


@dataclass(frozen=True)
class PartPlan:
    """part: of the model; trained: its parameters; problems: subset sums; weights: of the random source."""

    part: str
    trained: int
    problems: int
    weights: int


@dataclass(frozen=True)
class Plan:
    """seconds: with `workers` on this machine; rate: problems a second and core; whole: nothing trained is left."""

    parts: tuple[PartPlan, ...]
    whole: bool
    pieces: int
    workers: int
    rate: float
    seconds: float
    memory_bytes: int
    file_bytes: int
    model_bytes: int

    @property
    def problems(self) -> int:
        return sum(part.problems for part in self.parts)


def plan(
    target: str | nn.Module,
    *,
    parts: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    attention: str = "products",
    per_row: int = PER_ROW,
    tolerance: float = TOLERANCE,
    piece_problems: int = PROBLEMS,
    workers: int | None = None,
) -> Plan:
    """What `build_file` will take. Of a folder or hub name only the config is read, no weights."""
    check_tolerance(tolerance)
    workers = processes(workers)
    if isinstance(target, nn.Module):
        described = describe(target)
    else:
        name, config = check_target(target)
        described = {"class": name, "config": config.to_diff_dict(), "options": {}}
    with torch.device("meta"):
        model = skeleton(described)
    if hasattr(model, "tie_weights"):
        model.tie_weights()  # type: ignore[operator]  # what is shared is counted once
    family = families.family_of(described["class"])
    maps, whole = chosen_maps(family, model, parts, layers, attention)
    layout = Layout(per_row, piece_problems)
    table, pieces, largest = [], 0, 0
    for part in dict.fromkeys(each.part for each in maps):
        mine = [each for each in maps if each.part == part]
        mine_cut = [piece for each in mine for product in each.products() for piece in product.pieces(layout)]
        problems, weights = sum(p.problems for p in mine_cut), sum(p.weights for p in mine_cut)
        trained = sum(_size(model, path) for path in {path for each in mine for path in each.covers()})
        table.append(PartPlan(part, trained, problems, weights))
        pieces += len(mine_cut)
        largest = max(largest, *(p.problems for p in mine_cut))
    rate, bits = measure(per_row, tolerance)
    problems = sum(part.problems for part in table)
    model_bytes = 4 * sum(parameter.numel() for parameter in model.parameters())
    return Plan(
        parts=tuple(table),
        whole=whole,
        pieces=pieces,
        workers=workers,
        rate=rate,
        seconds=problems / rate / workers,
        memory_bytes=int(PROGRAM * (workers + 1) + model_bytes + workers * PER_PROBLEM * largest),
        file_bytes=int(problems * bits / 8),
        model_bytes=model_bytes,
    )


def measure(per_row: int, tolerance: float) -> tuple[float, float]:
    """(problems a second on one core, bits of file a problem), from a piece of a normal matrix."""
    piece = cut("timing", 64, 384, Layout(per_row))[0]
    target = np.random.default_rng(0).normal(size=(64, 384))
    job = Job(piece, target, tolerance, "balanced", 0, b"{}").to_bytes()
    solve_piece(job)  # compiles, or loads what was compiled
    start = time.process_time()
    finished = Finished.from_bytes(solve_piece(job))
    seconds = time.process_time() - start
    bits = 8 * sum(len(tensor.data) for tensor in finished.tensors) / piece.problems
    return piece.problems / seconds / HEAVIER, bits


def _size(model: nn.Module, path: str) -> int:
    """Parameters at or below a path."""
    inside = f"{path}." if path else ""
    return sum(p.numel() for name, p in model.named_parameters() if name == path or name.startswith(inside))
