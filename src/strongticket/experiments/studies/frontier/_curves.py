"""Loss against bytes as curves: the loss at a size, the bytes at a loss. Linear in the logarithm of the size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strongticket.experiments.spread import Row, column

_NEAR = 1.1  # sizes that differ by less are called equal
_BEYOND = 1.5  # how far, as a factor in bytes, the first and the last piece are continued


def loss_at(curve: Sequence[Row], size: float) -> float | None:
    """Return the loss of a method at a size of the file: between its measured sizes, or that of a nearly equal one;
    None elsewhere.
    """
    if not curve or not curve[0]["file_bytes"] / _NEAR <= size <= curve[-1]["file_bytes"] * _NEAR:
        return None
    return float(np.interp(np.log(size), np.log(column(curve, "file_bytes")), column(curve, "mean")))


def at_equal_loss(ticket: Row, curves: dict[str, list[Row]]) -> Row:
    """Return the fewest bytes at which a quantised network reaches the ticket's loss, which method that is, the
    ratio of the ticket's bytes to them, and whether the size is beyond the measured ones; None where it is far beyond.
    If the ticket's loss is below all of theirs, the ratio is to the largest of them: an upper bound.

    ticket: its bytes and mean loss
    curves: by method, each from small to large
    """
    found = {name: size for name, curve in curves.items() if (size := _bytes_at(curve, ticket["mean"]))}
    if not found:
        rows = [row for curve in curves.values() for row in curve]
        unreached = bool(rows) and ticket["mean"] < min(column(rows, "mean"))
        bound = ticket["file_bytes"] / max(column(rows, "file_bytes")) if unreached else None
        return {"best": None, "quantised_bytes": None, "ratio": bound, "beyond": None}
    best = min(found, key=lambda name: found[name])
    sizes = column(curves[best], "file_bytes")
    return {
        "best": best,
        "quantised_bytes": found[best],
        "ratio": ticket["file_bytes"] / found[best],
        "beyond": not sizes[0] <= found[best] <= sizes[-1],
    }


def _bytes_at(curve: Sequence[Row], loss: float) -> float | None:
    if len(curve) < 2:
        return None
    losses, logs = column(curve, "mean"), np.log(column(curve, "file_bytes"))
    last = len(curve) - 2
    pieces = [i for i in range(last + 1) if losses[i] > losses[i + 1] and losses[i] >= loss >= losses[i + 1]]
    piece = pieces[0] if pieces else 0 if loss > losses[0] else last
    fall = losses[piece] - losses[piece + 1]
    if fall <= 0:
        return None
    log = logs[piece] + (losses[piece] - loss) / fall * (logs[piece + 1] - logs[piece])
    if not logs[0] - np.log(_BEYOND) <= log <= logs[-1] + np.log(_BEYOND):
        return None
    return float(np.exp(log))
