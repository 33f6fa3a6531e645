"""How long an exact solution takes on this machine, estimated without starting the solver.

Importing numba and reading its cache takes longer than everything else a plan does. The solver merges two lists of
half the values' sums, a sum at a time, and that takes about as long as an addition that waits for the one before:
measured for 16 to 36 values, 0.8 to 1.1 times as long.
"""

import time

import numpy as np

ADDITIONS_PER_SUM = 0.9
SECONDS_PER_PROBLEM = 1e-7  # besides the sums


def seconds_per_problem(values: int, addition: float) -> float:
    """Processor time of one exact solution.

    values: of the problem, at most MAX_EXACT
    addition: what `seconds_per_addition` measured
    """
    sums = (1 << values // 2) + (1 << (values + 1) // 2)
    return SECONDS_PER_PROBLEM + ADDITIONS_PER_SUM * sums * addition


def seconds_per_addition() -> float:
    """Time of a float64 addition that waits for the one before; measured in about a millisecond."""
    numbers = np.linspace(-1.0, 1.0, 2**14)
    sums = np.empty_like(numbers)
    taken = []
    for _ in range(16):
        start = time.perf_counter()
        np.add.accumulate(numbers, out=sums)
        taken.append(time.perf_counter() - start)
    return min(taken) / numbers.size
