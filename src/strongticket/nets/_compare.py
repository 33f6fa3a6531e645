"""A source against its target: the error of every matrix, what is certified, and what is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.nets.certifying import certify_weights, read_both
from strongticket.nets.merging import Merged, answer_type
from strongticket.theory import Certificate
from strongticket.theory.rounding import Arithmetic
from strongticket.theory.weights import (
    AttentionWeights,
    BlockWeights,
    Layer,
    ReluWeights,
    TransformerWeights,
    Weights,
    merge_pair,
    mixing_units,
)

_LOGITS = 1 << 20  # attention weights held at once while measuring


@dataclass(frozen=True)
class MatrixError:
    """One matrix of the theorems (queries with keys, values with outputs, a linear map)."""

    name: str
    shape: tuple[int, ...]
    largest: float  # entry of the target
    error: float  # largest of any entry


@dataclass(frozen=True)
class Comparison:
    """A source beside its target, in absolute numbers and relative to the target's output.

    matrices: the error of each
    certificate: holds for all inputs
    measured, mean: largest and mean output error on the inputs tried
    output: mean norm of the target's output there
    inputs: how many were tried
    """

    matrices: tuple[MatrixError, ...]
    certificate: Certificate
    measured: float
    mean: float
    output: float
    inputs: int

    @property
    def relative(self) -> dict[str, float]:
        """bound, measured and mean as fractions of the target's mean output."""
        scale = self.output or 1.0
        numbers = {"bound": self.certificate.bound, "measured": self.measured, "mean": self.mean}
        return {name: value / scale for name, value in numbers.items()}


def compare(
    target: nn.Module,
    source: nn.Module,
    *,
    radius: float | None = None,
    inputs: int = 1024,
    tokens: int = 8,
    seed: int = 0,
    arithmetic: Arithmetic | None = None,
    floors: Sequence[float] | None = None,
) -> Comparison:
    """Compare two of our networks of the same kind and size.

    Args:
        target: runs in float64.
        source: of the same kind, runs as it is.
        radius: of the ball that inputs come from; by default √d.
        inputs: how many random sequences, every token within the radius.
        tokens: in each.
        seed: of the inputs.
        arithmetic: of the certificate, as in certify.
        floors: of the certificate, as in certify.
    """
    checks.whole(inputs=inputs, tokens=tokens)
    wanted, built, arithmetic = read_both(target, source, arithmetic)
    certificate = certify_weights(wanted, built, radius, arithmetic=arithmetic, floors=floors)
    matrices = tuple(_matrix_errors("", wanted, built))
    probes = probe_inputs(target, certificate.radius, inputs, tokens, seed)
    distance, output = _run_both(target, source, probes)
    measured, mean, norm = float(distance.max()), float(distance.mean()), float(output.mean())
    return Comparison(matrices, certificate, measured, mean, norm, inputs)


def output_error(target: nn.Module, source: nn.Module, x: Tensor) -> Tensor:
    """‖source(x) − target(x)‖ at every position: the theorems' quantity.

    Args:
        target: runs in float64.
        source: runs as it is, on x in the source's own type.
        x: (batch, dim) or (batch, tokens, dim).
    """
    return _run_both(target, source, x)[0]


def _run_both(target: nn.Module, source: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Error and norm of the target's output at every position."""
    wanted_network = deepcopy(target).double()
    # Inputs that the source's type can hold: their own rounding is not the source's error.
    x = x.to(answer_type(source))
    tokens = x.shape[1] if x.ndim == 3 else 1
    distances, outputs = [], []
    with torch.no_grad():
        for part in x.split(max(1, _LOGITS // tokens**2)):
            wanted = wanted_network(part.double())
            distances.append((source(part).double() - wanted).norm(dim=-1))
            outputs.append(wanted.norm(dim=-1))
    return torch.cat(distances), torch.cat(outputs)


def probe_inputs(network: Any, radius: float, inputs: int, tokens: int, seed: int) -> Tensor:
    """Random directions; half of the vectors on the edge of the ball, half inside.

    (inputs, dim) for a ReLU network, else (inputs, tokens, dim); dim is the network's.
    """
    network = network.factors if isinstance(network, Merged) else network
    if getattr(network, "context_dim", network.width) != network.width:
        raise StrongTicketError("cross-attention has two inputs: compare its outputs on pairs of your own")
    generator = torch.Generator().manual_seed(seed)
    shape = (inputs, network.width) if network.kind == "relu" else (inputs, tokens, network.width)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    length = torch.rand((*shape[:-1], 1), generator=generator, dtype=torch.float64)
    length = torch.where(length < 0.5, 2 * length, torch.ones(()).double())
    # A little inside, so that rounding to float32 does not lead out of it.
    scaled: Tensor = x / x.norm(dim=-1, keepdim=True) * length * radius * (1 - 1e-7)
    return scaled


def _matrix_errors(prefix: str, target: Weights, source: Any) -> Iterator[MatrixError]:
    """Compare the matrices of the theorems; two layers of the source stand for one of the target."""
    if isinstance(target, TransformerWeights):
        for i, pair in enumerate(zip(target.blocks, source.blocks, strict=True)):
            yield from _matrix_errors(f"{prefix}blocks.{i}.", *pair)
        return
    block = isinstance(target, BlockWeights)
    if isinstance(target, AttentionWeights):
        where = f"{prefix}attention." if block else prefix
        yield _matrix_error(f"{where}query_key", target.query_key, source.query_key)
        yield _matrix_error(f"{where}value_output", target.value_output, source.value_output)
    if isinstance(target, ReluWeights | BlockWeights):
        yield from _layer_errors(f"{prefix}feed_forward." if block else prefix, target.layers, source.layers)


def _layer_errors(prefix: str, target: Sequence[Layer], source: Sequence[Layer]) -> Iterator[MatrixError]:
    """Compare W x + b with the pair that stands for it: up·relu(x) + down·relu(−x) + constant."""
    for i, (weight, bias) in enumerate(target):
        first, second = source[2 * i : 2 * i + 2]
        if mixing_units(first).any():
            raise StrongTicketError(
                f"source's {prefix}layers do not merge into the target's: some hidden unit reads several inputs",
                hint="Compare with output_error and certify, or build the source.",
            )
        pair, name = merge_pair(first, second), f"{prefix}layers.{i}"
        yield _matrix_error(f"{name}.weight", weight, pair.up)
        if i == 0:  # later layers read what a ReLU gave: never negative
            yield _matrix_error(f"{name}.weight, negative side", -weight, pair.down)
        if bias is not None:
            yield _matrix_error(f"{name}.bias", bias, pair.constant)


def _matrix_error(name: str, target: np.ndarray, source: np.ndarray) -> MatrixError:
    largest, error = (float(np.abs(matrix).max()) for matrix in (target, source - target))
    return MatrixError(name, target.shape, largest, error)
