"""Ways to round a matrix that tickets are compared with: groups of 32 numbers with a float16 scale, and GPTQ."""

import math
from collections.abc import Callable

import numpy as np

from strongticket.choice.feeding import DAMPING

GROUP = 32
Rounding = Callable[[np.ndarray, int], np.ndarray]  # groups (count, 32) and bits -> the groups rounded


def nearest(groups: np.ndarray, bits: int) -> np.ndarray:
    """Symmetric: the largest number of a group is the largest level."""
    top = 2 ** (bits - 1) - 1
    return _levels(groups, np.abs(groups).max(axis=1, keepdims=True) / top, bits)


def signed_extreme(groups: np.ndarray, bits: int) -> np.ndarray:
    """The number of largest size is the lowest level, -2^(bits - 1), whatever its sign, as in llama.cpp's Q4_0."""
    return _levels(groups, _extreme(groups) / -(2 ** (bits - 1)), bits)


def searched(groups: np.ndarray, bits: int) -> np.ndarray:
    """The best scale of each group by square error, around both of the above."""
    top, extreme = 2 ** (bits - 1), _extreme(groups)
    best = nearest(groups, bits)
    least = np.square(best - groups).sum(axis=1)
    for start in (np.abs(extreme) / (top - 1), extreme / -top):
        for factor in np.linspace(0.6, 1.05, 19):
            made = _levels(groups, factor * start, bits)
            error = np.square(made - groups).sum(axis=1)
            better = error < least
            best[better], least[better] = made[better], error[better]
    return best


def _extreme(groups: np.ndarray) -> np.ndarray:
    return np.take_along_axis(groups, np.abs(groups).argmax(axis=1, keepdims=True), axis=1)


def _levels(groups: np.ndarray, scale: np.ndarray, bits: int) -> np.ndarray:
    scale = scale.astype(np.float16).astype(np.float64)
    scale = np.where(scale == 0, 1.0, scale)
    return np.clip(np.rint(groups / scale), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * scale


ROUNDINGS: dict[str, Rounding] = {
    "nearest": nearest, "signed extreme": signed_extreme, "searched scale": searched,
}  # fmt: skip


def rounded(tensor: np.ndarray, bits: int, rounding: Rounding = nearest) -> tuple[np.ndarray, float]:
    """(the tensor rounded, bits it takes); a vector is float16."""
    if tensor.ndim < 2:
        return tensor.astype(np.float16).astype(np.float64), 16 * tensor.size
    flat = np.pad(tensor.reshape(-1).astype(np.float64), (0, -tensor.size % GROUP)).reshape(-1, GROUP)
    made = rounding(flat, bits).reshape(-1)[: tensor.size].reshape(tensor.shape)
    return made, bits * tensor.size + 16 * math.ceil(tensor.size / GROUP)


def gptq(matrix: np.ndarray, covariance: np.ndarray, bits: int, in_order: bool) -> np.ndarray:
    """GPTQ (Frantar et al. 2023) in groups of 32 inputs: each column is rounded for what earlier ones left over.

    In order, a group's scales are taken when it is reached, after the updates. Otherwise columns with the largest
    inputs come first, and scales are those of the original groups ("act-order" with static groups).
    """
    wanted = matrix.astype(np.float64)
    columns = wanted.shape[1]
    sizes = covariance.diagonal()
    order = np.arange(columns) if in_order else np.argsort(-sizes, kind="stable")
    damped = covariance[np.ix_(order, order)] + DAMPING * sizes.mean() * np.eye(columns)
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T
    work, made = wanted[:, order].copy(), np.empty_like(wanted)
    top = 2 ** (bits - 1) - 1
    groups = [slice(first, min(first + GROUP, columns)) for first in range(0, columns, GROUP)]
    scales = np.stack([np.abs(wanted[:, group]).max(axis=1) for group in groups], axis=1) / top
    for place, column in enumerate(order):
        group = column // GROUP
        if in_order and column % GROUP == 0:
            scales[:, group] = np.abs(work[:, groups[group]]).max(axis=1) / top
        made[:, column] = _levels(work[:, place, None], scales[:, group, None], bits)[:, 0]
        error = (work[:, place] - made[:, column]) / factor[place, place]
        work[:, place + 1 :] -= error[:, None] * factor[place, place + 1 :]
    return made
