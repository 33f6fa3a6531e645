"""How many threads torch and numba use."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Let torch and numba use this many threads inside the block (None: as many as before), then restore them."""
    if threads is None:
        yield
        return
    import torch
    from numba import config, get_num_threads, set_num_threads

    before = torch.get_num_threads(), get_num_threads()
    torch.set_num_threads(threads)
    set_num_threads(min(threads, vars(config)["NUMBA_NUM_THREADS"]))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        set_num_threads(before[1])
