"""Job -> Finished: draw a piece's random weights, prune them, code the masks."""

from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from strongticket import __version__
from strongticket.errors import StrongTicketError
from strongticket.pretrained.pieces.job import Finished, Job
from strongticket.seeds import Uniform, apply_mask, draw
from strongticket.subset_sum import MAX_EXACT
from strongticket.ticket import checksum, code_mask

GROUP = 16  # rows among which a unit chooses
_one_at_a_time = Lock()  # numba's threads are not made for two callers at once


def solve_piece(data: bytes) -> bytes:
    """Job -> Finished, in one thread."""
    job = Job.from_bytes(data)
    if job.version != __version__:
        raise StrongTicketError(
            f"this worker has strongticket {__version__}, the driver {job.version}: "
            "install the same version on both"
        )
    piece = job.piece
    target = job.target.T if piece.transposed else job.target
    largest = float(np.abs(target).max(initial=0.0))
    # A power of two that covers the block: the one thing besides the masks that its numbers decide.
    laws = {
        piece.left: Uniform(1.0),
        piece.right: Uniform(float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0),
    }
    random = {
        name: draw(job.seed, name, shape, laws[name], threads=1) for name, shape in piece.shapes.items()
    }
    masks, error = prune(job, target, random[piece.left], random[piece.right])
    tensors = []
    for name, mask in zip(piece.shapes, masks, strict=True):
        apply_mask(random[name], mask)
        tensors.append(code_mask(name, mask, laws[name], checksum(job.recipe, name, random[name])))
    errors = {
        "problems": piece.problems,
        "largest": float(np.abs(error).max(initial=0.0)),
        "squared": float(np.square(error).sum()),
        "target_squared": float(np.square(target).sum()),
    }
    return Finished(tuple(tensors), errors).to_bytes()


def prune(
    job: Job, target: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """((mask of left, mask of right), error of every entry)."""
    import numba

    with _one_at_a_time:
        threads = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            built = _build(job, left, right, target)
        finally:
            numba.set_num_threads(threads)
    return (built.left_mask, built.right_mask), built.error


def _build(job: Job, left: np.ndarray, right: np.ndarray, target: np.ndarray) -> Any:
    """Units go where they are strong; they are moved, which costs, only if entries that fail are what counts."""
    from strongticket.build import assign
    from strongticket.build.product import build_product

    if job.assignment == "paper":
        return build_product(target, left, right, assignment="paper", tolerance=job.tolerance)
    wanted: np.ndarray = (target != 0).any(axis=1)
    strength = (np.abs(left) * np.float32(2**15 - 1)).astype(np.int16)  # numpy sorts short integers fast
    per_row = left.shape[1] // len(left)
    groups = [
        assign.by_strength(strength[rows, units], np.where(wanted[rows], per_row, 0), MAX_EXACT)
        for rows, units in _groups(len(left), per_row)
    ]
    owner = np.concatenate([np.where(each >= 0, each + GROUP * g, each) for g, each in enumerate(groups)])
    # The mean square error is a third of tolerance² if no entry has failed.
    return build_product(
        target, left, right, assignment=owner, move_above=job.tolerance, tolerance=job.tolerance
    )


def _groups(rows: int, per_row: int) -> list[tuple[slice, slice]]:
    """Rows, some at a time, and their units: a choice among a few rows is nearly as good, and quick."""
    edges = [*range(0, rows, GROUP), rows]
    return [(slice(a, b), slice(a * per_row, b * per_row)) for a, b in pairwise(edges)]
