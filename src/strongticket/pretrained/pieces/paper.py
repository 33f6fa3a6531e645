"""The source of the theorems: symmetric uniform laws, and every hidden unit serves one row."""

from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from strongticket.pretrained.pieces.job import Job
from strongticket.seeds import Law, Uniform
from strongticket.subset_sum import MAX_EXACT

GROUP = 16  # rows among which a unit chooses
_one_at_a_time = Lock()  # numba's threads are not made for two callers at once


def laws(job: Job, target: np.ndarray) -> tuple[Law, Law]:
    """Of left and right: a power of two that covers the block is all that its numbers decide besides the masks."""
    largest = float(np.abs(target).max(initial=0.0))
    return Uniform(1.0), Uniform(float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0)


def prune(
    job: Job, target: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mask of left, mask of right, error of every entry)."""
    import numba

    with _one_at_a_time:
        threads = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            built = _build(job, left, right, target)
        finally:
            numba.set_num_threads(threads)
    return built.left_mask, built.right_mask, built.error


def _build(job: Job, left: np.ndarray, right: np.ndarray, target: np.ndarray) -> Any:
    """Units go where they are strong; they are moved, which costs, only if entries that fail are what counts."""
    from strongticket.builders import assign
    from strongticket.builders.product import build_product

    if job.assignment == "paper":
        return build_product(target, left, right, assignment="paper", tolerance=job.tolerance)
    wanted: np.ndarray = (target != 0).any(axis=1)
    strength = (np.abs(left) * np.float32(2**15 - 1)).astype(np.int16)  # numpy sorts short integers fast
    per_row = left.shape[1] // len(left)
    groups = [
        assign.by_strength(strength[rows, units], np.where(wanted[rows], per_row, 0), MAX_EXACT)
        for rows, units in _groups(len(left), per_row)
    ]
    owner = np.concatenate([np.where(rows >= 0, rows + GROUP * g, rows) for g, rows in enumerate(groups)])
    # The mean square error is a third of tolerance² if no entry has failed.
    return build_product(
        target, left, right, assignment=owner, move_above=job.tolerance, tolerance=job.tolerance
    )


def _groups(rows: int, per_row: int) -> list[tuple[slice, slice]]:
    """Rows, some at a time, and their units: a choice among a few rows is nearly as good, and quick."""
    edges = [*range(0, rows, GROUP), rows]
    return [(slice(a, b), slice(a * per_row, b * per_row)) for a, b in pairwise(edges)]
