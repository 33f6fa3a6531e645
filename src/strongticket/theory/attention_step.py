"""Attention inside a block: where its output's error may lie, for inputs that differ between source and target.

Write x, y for query and tokens, all in a region with ellipsoid P, and e for the source's error in a region
with ellipsoid S. docs/theory.md ("Blocks") has the proof of every term.
"""

import numpy as np

from strongticket.theory.region import Region, ball, point
from strongticket.theory.rounding import INFLATE, AttentionRounding, gamma, spectral_norm, sum_rows
from strongticket.theory.weights import BlockWeights


def attention_output(block: BlockWeights, inputs: Region) -> Region:
    """Where Attn(x) lies: each head averages tokens, and averages stay in the region."""
    keys = block.query_key.shape[2] - block.constant
    total = Region(block.value_output.shape[2])
    for value_output in block.value_output:
        total += inputs.through(value_output[:keys])
    return total + _constant_rows(block.value_output, block.constant)


def attention_step(
    target: BlockWeights,
    source: BlockWeights,
    together: Region,
    error: Region,
    rounding: AttentionRounding | None,
) -> Region:
    """Where Attn_S(X′) − Attn_T(X) may lie, X′ − X in `error` and both in the convex region `together`."""
    constant = target.constant
    keys, dim = target.query_key.shape[2] - constant, target.value_output.shape[2]
    inputs, moved = together.ellipsoid(), error.ellipsoid()
    if not (np.isfinite(inputs).all() and np.isfinite(moved).all()):
        return ball(dim, np.inf)
    total = Region(dim)
    for head in range(len(target.query_key)):
        query_key, value_output = target.query_key[head], target.value_output[head]
        heads = _head_error(
            inputs,
            moved,
            query_key[:, :keys],
            value_output[:keys],
            source.query_key[head][:, :keys] - query_key[:, :keys],
            constant,
        )
        value_error = source.value_output[head][:keys] - value_output[:keys]
        total += heads + Region(keys, (inputs,)).through(value_error)
    total += _constant_rows(source.value_output - target.value_output, constant)
    total = _smaller(total, attention_output(target, together) + attention_output(source, together))
    if rounding is not None:
        both = target.value_output[:, :keys], source.value_output[:, :keys]
        total += ball(dim, sum(rounding.head_errors(*both, spectral_norm(inputs))) * INFLATE)
    return total


def _head_error(
    inputs: np.ndarray,
    moved: np.ndarray,
    query_key: np.ndarray,
    value_output: np.ndarray,
    query_key_error: np.ndarray,
    constant: bool,
) -> Region:
    """Where the change of one head's average, times W_VO, may lie; D of the values is counted elsewhere."""
    seen = inputs @ value_output
    keys, dim = value_output.shape
    own = _Logits(inputs, inputs, query_key_error, constant)
    share, size = gamma(2 * keys + 8), float(np.linalg.norm(value_output))
    slack = share * float(np.linalg.norm(inputs)) * size
    region = _smaller(own.by_covariance(seen), own.by_variation(seen))
    if moved.any():
        query, key = _Logits(moved, inputs, query_key, False), _Logits(inputs, moved, query_key, constant)
        carried = moved @ value_output
        # Keys and values move together: their parts are uncorrelated, so squares add up.
        steadily = query.by_covariance(seen) + Region(dim, (np.vstack([carried, key.largest * seen]),))
        spread = 2 * float(np.tanh((query.largest + key.largest) / 2)) * INFLATE
        suddenly = Region(dim, (spread * seen, carried))
        region += _smaller(steadily, suddenly)
        slack += (1 + key.largest + query.largest) * share * (float(np.linalg.norm(moved)) * size)
        slack += (key.largest + query.largest) * share * (float(np.linalg.norm(inputs)) * size)
    return region + ball(dim, slack * (1 + own.largest) * INFLATE)


class _Logits:
    """Logits xᵀAy with x, y from the ellipsoids `left` and `right`; the last row of A is the constant's."""

    def __init__(self, left: np.ndarray, right: np.ndarray, matrix: np.ndarray, constant: bool):
        matrix, last = matrix[: len(left)], matrix[len(left) :]
        if not constant:
            last = last[:0]  # a difference of two inputs has no constant
        self.pull = left @ matrix @ right.T
        self.shift = last @ right.T
        reach = float(np.linalg.norm(left)) * float(np.linalg.norm(matrix)) + float(np.linalg.norm(last))
        slack = gamma(2 * len(right) + 8) * (float(np.linalg.norm(right)) * reach)
        # The largest logit: over x and y.
        self.largest = (spectral_norm(self.pull) + spectral_norm(self.shift) + slack) * INFLATE

    def by_covariance(self, seen: np.ndarray) -> Region:
        """sup_x (‖a‖‖b‖ + a·b)/2 with a = Aᵀx and b = W_VO u: sharp for small changes."""
        shapes = [self.largest / 2 * seen, self.pull @ seen / 2]
        if len(self.shift):
            shapes.append(self.shift @ seen / 2)
        return Region(seen.shape[1], tuple(shapes))

    def by_variation(self, seen: np.ndarray) -> Region:
        """2·tanh(δ/2)·‖b‖: never above twice the ball."""
        return Region(seen.shape[1], (2 * float(np.tanh(self.largest / 2)) * INFLATE * seen,))


def _smaller(first: Region, second: Region) -> Region:
    """Both hold: keep the one whose shapes are smaller."""
    return first if first.extent <= second.extent else second


def _constant_rows(value_outputs: np.ndarray, constant: bool) -> Region:
    """Softmax rows sum to one, so the constant's rows of all heads (heads, columns, dim) add up."""
    dim = value_outputs.shape[2]
    if not constant:
        return Region(dim)
    row, hidden = sum_rows(value_outputs[:, -1])
    return point(row) + ball(dim, hidden)
