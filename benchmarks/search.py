"""Searching against dense training: `python -m benchmarks.search [--json] [--quick]`, three minutes.

Step time and memory of the default method beside dense AdamW training of the same model and beside a full sort of
every layer at every forward pass, as peers do it; and the file of a found network.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from tests.faults.memory import peak_memory
from torch import nn
from torch.nn.utils import parametrize

from benchmarks.harness import Row, fastest, figure, main
from strongticket.searching import SearchConfig, preset, search
from strongticket.searching.config.methods import find_method
from strongticket.searching.evaluate import evaluate
from strongticket.searching.masking.matrices import weight_matrices
from strongticket.searching.models import make_model
from strongticket.searching.tasks import load_task
from strongticket.ticket import Ticket

VOCABULARY = {"laptop": 103, "gpt2-mini": 50257}


class _SortedSubnet(torch.autograd.Function):
    """Ramanujan et al.'s GetSubnet, as hidden-networks and its many copies have it."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, kept: float) -> torch.Tensor:
        out = scores.clone()
        _, order = scores.flatten().sort()
        cut = int((1 - kept) * scores.numel())
        flat = out.flatten()
        flat[order[:cut]] = 0
        flat[order[cut:]] = 1
        return flat.view_as(out)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


class _Sorted(nn.Module):
    def __init__(self, weights: torch.Tensor, kept: float) -> None:
        super().__init__()
        self.weights, self.kept = [weights], kept

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return self.weights[0] * _SortedSubnet.apply(scores.abs(), self.kept)


def full_sort(model: nn.Module, config: SearchConfig) -> None:
    """The same model with a sort of every layer at every forward pass."""
    for matrix in weight_matrices(model):
        masked = _Sorted(matrix.parameter.detach().clone(), config.source.kept)
        for module, attribute in matrix.owners:
            parametrize.register_parametrization(module, attribute, masked, unsafe=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("parametrizations" in name)


def stepper(method: str, config: SearchConfig, vocabulary: int, sequences: int) -> Callable[[], None]:
    """One training step of that method, ready to run."""
    model = make_model(config, vocabulary)
    prepare: Callable[..., object] = full_sort if method == "full sort" else find_method(method)
    before_step = getattr(prepare(model, config), "before_step", None)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.training.lr, fused=True)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(vocabulary, (sequences, config.model.context), generator=generator)

    def step() -> None:
        if before_step:
            before_step(1, 1000)
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def default_method(preset_name: str) -> SearchConfig:
    """A preset's model with the default's source and selection: weights of one size, one top-k over the model."""
    default = SearchConfig().source
    chosen = {name: getattr(default, name) for name in ("kept", "scope", "law", "std", "method")}
    return preset(preset_name, **chosen)


def step_times(name: str, config: SearchConfig, vocabulary: int, sequences: int, repeats: int) -> Row:
    """Milliseconds of processor time a step, methods in turns, the best of `repeats`."""
    methods = ("dense", config.source.method, "full sort")
    jobs = {method: stepper(method, config, vocabulary, sequences) for method in methods}
    for job in jobs.values():
        job()
    best = fastest(jobs, repeats=repeats, clock=time.process_time)  # whatever else the machine is doing
    dense, ours, sort = (1e3 * best[method] for method in methods)
    row = {"model": name, "tokens": sequences * config.model.context}
    row |= {"dense_ms": dense, "search_ms": ours, "full_sort_ms": sort}
    return row | {"search_over_dense": ours / dense, "sort_over_search": sort / ours}


def print_peak(method: str, preset_name: str) -> None:
    """In a process of its own: its highest resident memory after three steps on one short sequence."""
    transformers.logging.set_verbosity_error()
    # A sequence of 8 tokens: weights, gradients and optimiser state are what is left to measure.
    config = default_method(preset_name).changed(context=8)
    step = stepper(method, config, VOCABULARY[preset_name], 1)
    for _ in range(3):
        step()
    print(peak_memory())


def memory(name: str) -> Row:
    def peak(method: str) -> int:
        code = f"from benchmarks.search import print_peak; print_peak({method!r}, {name!r})"
        # glibc gives freed memory back at once, so that what is resident is what is in use.
        direct = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
        command = [sys.executable, "-c", code]
        return int(
            subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | direct).stdout
        )

    weights = sum(p.numel() for p in make_model(preset(name, context=8), VOCABULARY[name]).parameters())
    dense, ours = peak("dense"), peak(SearchConfig().source.method)
    row = {"model": name, "weights": weights, "dense_mb": dense / 1e6, "search_mb": ours / 1e6}
    return row | {"extra_bytes_a_weight": (ours - dense) / weights}


def found_file(config: SearchConfig) -> Row:
    """A search, its file, and the loss of what the file gives back."""
    with TemporaryDirectory() as folder:
        result = search(config, out=f"{folder}/found.ticket")
        again = evaluate(Ticket.load(f"{folder}/found.ticket").network(), load_task(config))["loss"]
    weights, size = sum(mask.size for mask in result.ticket.masks.values()), result.file_bytes
    row = {"weights": weights, "file_bytes": size, "bytes_over_one_bit_a_weight": size - weights / 8}
    return row | {"loss": result.loss, "reloaded_loss": again}


def run(quick: bool = False) -> Row:
    transformers.logging.set_verbosity_error()
    laptop, mini = preset("laptop"), default_method("gpt2-mini")
    if quick:
        times = [step_times("tiny", laptop.changed(dim=32), 100, 4, 3)]
        sizes = []
        file = found_file(laptop.changed(steps=5, dim=32, context=16))
    else:
        times = [
            step_times("laptop", laptop, VOCABULARY["laptop"], laptop.training.batch, 60),
            step_times("gpt2-mini", mini, VOCABULARY["gpt2-mini"], 2, 1),
        ]
        sizes = [memory("gpt2-mini")]
        file = found_file(laptop.changed(steps=30))
    must_show = []
    for row in times:
        must_show.append(figure(f"{row['model']}: step over dense", row["search_over_dense"], "<=", 1.2))
        must_show.append(figure(f"{row['model']}: full sort over ours", row["sort_over_search"], ">=", 1.5))
    for row in sizes:
        name = f"{row['model']}: bytes a weight over dense AdamW"
        must_show.append(figure(name, row["extra_bytes_a_weight"], "<=", 1))
    over, change = file["bytes_over_one_bit_a_weight"], file["reloaded_loss"] - file["loss"]
    must_show.append(figure("file: bytes over one bit a weight", over, "<=", 4096))
    must_show.append(figure("file: reloaded loss minus trained", change, "==", 0))
    return {"step_times": times, "memory": sizes, "file": [file], "must_show": must_show}


if __name__ == "__main__":
    main(__doc__, run)
