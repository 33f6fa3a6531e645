"""The random network that choices prune: all random weights of every connection, and a mask that keeps one of them.

Nothing needs it but the proof that reading choices is pruning: `decode` makes only the weights that are kept.
"""

import math

import numpy as np

from strongticket import seeds
from strongticket.choice import Choices, reading
from strongticket.errors import StrongTicketError


def many_weights(
    choices: Choices, seed: int, name: str, *, limit: int = 1 << 28
) -> tuple[np.ndarray, np.ndarray]:
    """(random weights, float32, and the mask, bool): both (values, *shape), so that their product's sum is `decode`.

    Weight number n of a connection is D·(v + u) with v = n + the least v that is kept; D is 0 in a row of zeros. The
    mask keeps one weight of a connection, and none for an exact zero.

    Args:
        choices: of a tensor.
        seed: of the random weights.
        name: of the tensor.
        limit: how many random weights there may be; above, StrongTicketError.

    >>> from strongticket.choice import decode, encode
    >>> coded = encode(np.float32([[0.3, -0.2], [0.1, 0.7]]), seed=0, name="w", step=0.5)
    >>> weights, mask = many_weights(coded, seed=0, name="w")
    >>> bool(((weights * mask).sum(axis=0) == decode(coded, seed=0, name="w")).all())
    True
    """
    rows, columns = choices.matrix
    numbers, kept = np.empty((rows, columns), np.float32), np.zeros((rows, columns), np.int32)
    offsets = seeds.offsets(seed, name, 0, rows * columns).reshape(rows, columns)
    spacings = np.zeros((rows, 1), np.float32)
    for part, data in zip(choices.rows(), choices.blocks, strict=True):
        some = slice(part.start, part.stop)
        reading.decode(data, offsets[some], numbers[some], kept[some])
        if data:
            spacings[some, 0] = reading.streams(data, numbers[some].shape).spacings
    is_kept = numbers != 0
    # 1 is among the values: its weight is positive, so that sums of nothing are +0.0.
    values = np.arange(kept[is_kept].min(initial=1), kept[is_kept].max(initial=1) + 1, dtype=np.int32)
    count = len(values) * math.prod(choices.shape)
    if count > limit:
        raise StrongTicketError(
            f"{name!r} has {count:,} random weights: expected at most {limit:,}",
            hint="Ask for fewer bits or for a smaller tensor, or pass a larger limit.",
        )
    weights = np.empty((len(values), *choices.shape), np.float32)
    mask = np.empty(weights.shape, np.bool_)
    u = (2 * offsets.astype(np.int32) - 65535).astype(np.float32) / np.float32(131072)
    for n, value in enumerate(values):
        weights[n] = choices.tensor((np.float32(value) + u) * spacings)
        mask[n] = choices.tensor((kept == value) & is_kept)
    return weights, mask
