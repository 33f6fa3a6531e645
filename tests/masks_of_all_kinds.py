"""Masks for the tests of the file format, one for each kind of lines."""

import numpy as np


def masks_of_all_kinds() -> dict[str, np.ndarray]:
    """Kind of lines -> a mask that takes the fewest bytes by them."""
    rng = np.random.default_rng(0)
    one = rng.random((2, 16, 200)).argsort(axis=1) == 0
    return {
        "all": rng.random((3, 701)) < 0.07,
        "rows": one.swapaxes(1, 2),
        "columns": one & (rng.random((2, 1, 200)) < 0.9),
    }
