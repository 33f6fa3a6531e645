"""Masks for the tests of the file format, one for each codec."""

import numpy as np


def masks_of_all_kinds() -> dict[str, np.ndarray]:
    """Codec -> a mask that it codes best."""
    rng = np.random.default_rng(0)
    one = rng.random((2, 16, 200)).argsort(axis=1) == 0
    free = rng.random((16, 300)) < 0.5
    return {
        "zstd": (np.arange(6400) % 7 < 3).reshape(16, 400),
        "ans": rng.random((3, 701)) < 0.07,
        "ans-columns": free & (rng.random(300) < 0.3),
        "ans-rows": (free & (rng.random(300) < 0.3)).T,
        "owner-columns": one & (rng.random((2, 1, 200)) < 0.9),
        "owner-rows": one.swapaxes(1, 2),
    }
