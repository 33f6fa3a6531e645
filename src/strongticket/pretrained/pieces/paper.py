"""The source of the theorems: symmetric uniform laws, and every hidden unit serves one row."""

from threading import Lock

import numpy as np

from strongticket.pretrained.pieces.job import Job
from strongticket.seeds import Law, Uniform

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

    from strongticket.builders.product import build_product

    with _one_at_a_time:
        threads = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            built = build_product(target, left, right, assignment="paper", tolerance=job.tolerance)
        finally:
            numba.set_num_threads(threads)
    return built.left_mask, built.right_mask, built.error
