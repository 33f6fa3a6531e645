"""Time and memory of a training step: the default method beside dense training and a full sort of every layer."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import transformers
from tests.faults.memory import peak_memory
from torch import nn
from torch.nn.utils import parametrize

from benchmarks.harness import fastest
from strongticket.experiments.spread import Row
from strongticket.searching import SearchConfig, preset
from strongticket.searching.config.methods import find_method
from strongticket.searching.masking.matrices import weight_matrices
from strongticket.searching.models import make_model


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
        masked = _Sorted(matrix.parameter.detach().clone(), config.kept)
        for module, attribute in matrix.owners:
            parametrize.register_parametrization(module, attribute, masked, unsafe=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("parametrizations" in name)


def stepper(method: str, config: SearchConfig, vocabulary: int, sequences: int) -> Callable[[], None]:
    """One training step of that method, ready to run."""
    model = make_model(config, vocabulary)
    prepare: Callable[[nn.Module, SearchConfig], object] = (
        full_sort if method == "full sort" else find_method(method)
    )
    before_step = getattr(prepare(model, config), "before_step", None)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.lr, fused=True)
    chance = torch.Generator().manual_seed(0)
    tokens = torch.randint(vocabulary, (sequences, config.context), generator=chance)

    def step() -> None:
        if before_step:
            before_step(1, 1000)
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def default_method(preset_name: str) -> SearchConfig:
    """A preset's model with the default's source and selection: weights of one size, one top-k over the model."""
    default = SearchConfig()
    return preset(
        preset_name,
        kept=default.kept,
        scope=default.scope,
        law=default.law,
        std=default.std,
        method=default.method,
    )


def step_times(name: str, config: SearchConfig, vocabulary: int, sequences: int, repeats: int) -> Row:
    """Milliseconds of processor time a step, methods in turns, the best of `repeats`."""
    methods = ("dense", config.method, "full sort")
    jobs = {method: stepper(method, config, vocabulary, sequences) for method in methods}
    for job in jobs.values():
        job()
    best = fastest(jobs, repeats=repeats, clock=time.process_time)  # whatever else the machine is doing
    dense, search, sort = (best[method] for method in methods)
    return {
        "model": name,
        "tokens": sequences * config.context,
        "dense_ms": round(1e3 * dense, 2),
        "search_ms": round(1e3 * search, 2),
        "full_sort_ms": round(1e3 * sort, 2),
        "search_over_dense": search / dense,
        "sort_over_search": sort / search,
    }


def peak_bytes(method: str, preset_name: str, vocabulary: int) -> int:
    """Highest resident memory of a process that makes three steps on one short sequence."""
    code = f"from benchmarks.search_steps import print_peak; print_peak({method!r}, {preset_name!r}, {vocabulary})"
    # glibc gives freed memory back at once, so that what is resident is what is in use.
    direct = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | direct
    )
    return int(done.stdout)


def print_peak(method: str, preset_name: str, vocabulary: int) -> None:
    transformers.logging.set_verbosity_error()
    # A sequence of 8 tokens: weights, gradients and optimiser state are what is left to measure.
    step = stepper(method, replace(default_method(preset_name), context=8), vocabulary, 1)
    for _ in range(3):
        step()
    print(peak_memory())


def memory(preset_name: str, vocabulary: int) -> Row:
    weights = sum(p.numel() for p in make_model(preset(preset_name, context=8), vocabulary).parameters())
    dense, search = (
        peak_bytes(method, preset_name, vocabulary) for method in ("dense", SearchConfig().method)
    )
    return {
        "model": preset_name,
        "weights": weights,
        "dense_mb": round(dense / 1e6, 1),
        "search_mb": round(search / 1e6, 1),
        "extra_bytes_a_weight": (search - dense) / weights,
    }
