"""Exact subset sum for n <= 40 as batched torch operations: sort one half's sums, look the other half up.

Slower than the numba kernel on a CPU, but the same answers on any device torch has.
"""

import numpy as np
import torch

BYTES_AT_ONCE = 256 * 2**20  # memory one batch may take


def solve_rows(values: np.ndarray, targets: np.ndarray, tolerance: float) -> np.ndarray:
    """(P, n) values, (P,) targets -> (P, n) masks. The optimum always meets a tolerance that can be met."""
    problems, n = values.shape
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # A power of two keeps the sums of the very largest numbers finite and costs them no bit.
    largest = np.maximum(np.abs(values).max(axis=1), np.abs(targets))
    exponent = np.maximum(np.frexp(largest)[1] - 1016, 0)
    values = np.ldexp(values, -exponent[:, None])
    targets = np.ldexp(targets, -exponent)
    at_once = max(1, BYTES_AT_ONCE // (64 << ((n + 1) // 2)))
    masks = np.empty((problems, n), np.bool_)
    for start in range(0, problems, at_once):
        part = slice(start, start + at_once)
        chunk = torch.from_numpy(values[part]).to(device)
        masks[part] = _best_subsets(chunk, torch.from_numpy(targets[part]).to(device)).cpu().numpy()
    return masks


def _best_subsets(values: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    n = values.shape[1]
    count_a = (n + 1) // 2
    sums_a = _all_sums(values[:, :count_a])
    sums_b, order_b = _all_sums(values[:, count_a:]).sort(dim=1)
    wanted = targets[:, None] - sums_a
    above = torch.searchsorted(sums_b, wanted).clamp(max=sums_b.shape[1] - 1)
    below = (above - 1).clamp(min=0)
    error_above = (sums_b.gather(1, above) - wanted).abs()
    error_below = (sums_b.gather(1, below) - wanted).abs()
    nearest = torch.where(error_below <= error_above, below, above)
    best_a = torch.minimum(error_above, error_below).argmin(dim=1, keepdim=True)
    best_b = order_b.gather(1, nearest.gather(1, best_a))
    bits = best_a | (best_b << count_a)
    kept = (bits >> torch.arange(n, device=values.device)) & 1 == 1
    return kept & (values != 0)


def _all_sums(values: torch.Tensor) -> torch.Tensor:
    """(P, m) -> (P, 2^m): the sum of every subset, whose bits are its column number."""
    sums = values.new_zeros(values.shape[0], 1)
    for k in range(values.shape[1]):
        sums = torch.cat([sums, sums + values[:, k : k + 1]], dim=1)
    return sums
