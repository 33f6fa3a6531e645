"""Attention over long sequences of points on the unit circle, at a cost that grows with T only where it must.

exp(q·x) is an entire function of x's angle: 2K + 1 numbers describe it on the whole circle to rounding. So T
keys on the circle act as 2K + 1 fixed ones with weights (Σ_t of a function is linear in its coefficients),
and the output, a smooth function of the query's angle, is known at all T positions from 2K + 1 of them.
Direct attention at T = 4096 would take 16.8 million exponentials per sequence and source; this takes 2,500 per source.
"""

import math

import torch
from torch import Tensor

from strongticket.errors import StrongTicketError
from strongticket.nets import MergedAttention

HARMONICS = (24, 48, 96)  # K, tried in turn: 24 are enough for logits of size 3
_TOLERANCE = 1e-8  # of the difference's own size that may lie in its highest harmonics
_BASIS_NUMBERS = 1 << 22  # of (sequence, position, harmonic) held at once


def circle_errors(
    target: MergedAttention, query_key: Tensor, value_output: Tensor, token: Tensor, angles: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the largest and the mean ‖source − target‖ of single-head sources, each (sources,), exact to rounding.

    They are over all positions of the sequences (token, points at angles), in float64.

    Args:
        target: a single head, merged to float64.
        query_key: (sources, 2, 2).
        value_output: (sources, 2, dim_out).
        token: (2,), before the points.
        angles: of the points, (sequences, T).
    """
    for harmonics in HARMONICS:
        if found := _errors(target, query_key, value_output, token, angles, harmonics):
            return found
    raise StrongTicketError(
        f"{HARMONICS[-1]} harmonics do not describe this attention: its logits are too large"
    )


def _errors(
    target: MergedAttention,
    query_key: Tensor,
    value_output: Tensor,
    token: Tensor,
    angles: Tensor,
    harmonics: int,
) -> tuple[Tensor, Tensor] | None:
    """Return the errors, or None if so many harmonics do not describe them."""
    count = 2 * harmonics + 1
    nodes = 2 * math.pi * torch.arange(count, dtype=torch.float64) / count
    to_harmonics = _basis(nodes, harmonics) * 2 / count  # values at the nodes -> coefficients
    to_harmonics[0] /= 2
    tokens = torch.cat([token.double()[None], torch.stack([nodes.cos(), nodes.sin()], -1)])  # (1 + nodes, 2)
    exact = _numerators(target.query_key, target.value_output, tokens)
    pruned = _numerators(query_key, value_output, tokens)
    sequences, length = angles.shape
    largest = query_key.new_zeros(len(query_key))
    total = query_key.new_zeros(len(query_key))
    for part in angles.split(max(1, _BASIS_NUMBERS // (length * count))):
        basis = _basis(part, harmonics)  # (sequences, harmonics, T)
        weights = torch.cat([torch.ones(len(part), 1).double(), basis.sum(-1) @ to_harmonics], 1)
        # (sequences, 1 + nodes, sources, dim_out)
        difference = _attend(pruned, weights) - _attend(exact, weights)
        series = torch.einsum("hn,bnso->bsoh", to_harmonics, difference[:, 1:])
        if not _is_resolved(series):
            return None
        at_points = (series.flatten(1, 2) @ basis).unflatten(1, series.shape[1:3])
        for error in (_length(at_points, 2), _length(difference[:, 0], 2)[..., None]):
            largest = torch.maximum(largest, error.amax((0, 2)))  # error: (sequences, sources, positions)
            total += error.sum((0, 2))
    return largest, total / (sequences * (length + 1))


def _numerators(query_key: Tensor, value_output: Tensor, tokens: Tensor) -> Tensor:
    """(keys, queries, sources, dim_out + 1): what each key adds to the output's numerator, and its denominator."""
    logits = tokens @ query_key @ tokens.T  # (sources, queries, keys)
    powers = (logits - logits.amax(-1, keepdim=True)).exp()[..., None]
    values = (tokens @ value_output)[:, None]  # (sources, 1, keys, dim_out)
    return torch.cat([powers * values, powers], -1).permute(2, 1, 0, 3).contiguous()


def _attend(numerators: Tensor, weights: Tensor) -> Tensor:
    """(sequences, queries, sources, dim_out): key k counts weights[sequence, k] times."""
    sums = torch.tensordot(weights, numerators, 1)
    return sums[..., :-1] / sums[..., -1:]


def _basis(angles: Tensor, harmonics: int) -> Tensor:
    """(…, T) -> (…, 2K + 1, T): 1, cos a, cos 2a …, sin a, sin 2a …, by turning on from multiple to multiple."""
    basis = angles.new_ones(*angles.shape[:-1], 2 * harmonics + 1, angles.shape[-1])
    one_cos, one_sin = angles.cos(), angles.sin()
    cos, sin = one_cos, one_sin
    for k in range(1, harmonics + 1):
        basis[..., k, :], basis[..., harmonics + k, :] = cos, sin
        cos, sin = cos * one_cos - sin * one_sin, cos * one_sin + sin * one_cos
    return basis


def _length(vectors: Tensor, dim: int) -> Tensor:
    """The norm along `dim`; of single numbers it is much faster than torch's."""
    return vectors.select(dim, 0).abs() if vectors.shape[dim] == 1 else vectors.norm(dim=dim)


def _is_resolved(series: Tensor) -> bool:
    """Whether the highest harmonics are negligible: else 2K + 1 numbers do not describe the function."""
    last = series.shape[-1] // 2
    size = series.abs().amax((0, 2, 3))  # (sources,)
    highest = series[..., [last - 1, last, -2, -1]].abs().amax((0, 2, 3))
    return bool((highest <= _TOLERANCE * size + 1e-15).all())
