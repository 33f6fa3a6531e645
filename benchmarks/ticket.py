"""Size and speed of ticket files: `python -m benchmarks.ticket [--json]`, about a minute."""

import io
import time
from itertools import product

import numpy as np
import torch

from benchmarks.harness import Row, figure, main
from strongticket.seeds import Law, Normal, Uniform
from strongticket.ticket import Ticket, mask_codec

UNIFORM = Uniform(1.0)


def one_tensor(mask: np.ndarray, law: Law = UNIFORM) -> Ticket:
    settings = {"dims": [mask.shape[1], mask.shape[0]], "bias": False}
    return Ticket(0, "relu", settings, {"layers.0.weight": law}, {"layers.0.weight": mask})


def random_mask(size: int, kept: float) -> np.ndarray:
    """Row by row: noise for all rows at once would need four times the memory."""
    rng = np.random.default_rng(0)
    return np.stack([rng.random(size, np.float32) < kept for _ in range(size)])


def size_row(name: str, mask: np.ndarray) -> Row:
    file, kept = len(one_tensor(mask).to_bytes()), int(np.count_nonzero(mask))
    entropy = mask_codec.entropy(mask.size, kept) / 8
    return {
        "masks": name, "weights": mask.size, "file_bytes": file, "entropy_bytes": entropy,
        "bits_per_weight": 8 * file / mask.size, "bits_per_kept": 8 * file / kept,
        "beyond_limit": file - 1.02 * entropy,
    }  # fmt: skip


def structured_rows() -> list[Row]:
    """The masks that builds make: 64 inputs, 4096 hidden units, in groups or given to any input."""
    rng = np.random.default_rng(1)
    dim, width = 64, 4096
    group = np.arange(width) * dim // width
    free = rng.random((dim, width)) < 0.5
    masks = {
        "one kept a unit, groups in order": group == np.arange(dim)[:, None],
        "one kept a unit, any input": rng.permutation(group) == np.arange(dim)[:, None],
        "free half": free,
        "free half, 70 % of units dropped": free & (rng.random(width) < 0.3),
        "free half, the last 70 % of units dropped": free & (np.arange(width) < 0.3 * width),
        "each unit its own kept fraction": rng.random((dim, width)) < rng.random(width),
    }
    return [size_row(name, mask) for name, mask in masks.items()]


def large_row(kept: float, law: Law) -> Row:
    """10^8 weights: save, load and regenerate, beside the size of a pickle of the same masked weights."""
    ticket = one_tensor(random_mask(10_000, kept), law)
    data = ticket.to_bytes()
    loaded = Ticket.from_bytes(data)
    start = time.perf_counter()
    tensor = loaded.weights("layers.0.weight")
    seconds = time.perf_counter() - start
    buffer = io.BytesIO()
    torch.save({"weight": torch.from_numpy(tensor)}, buffer)
    return {
        "kept": kept, "law": str(law), "regenerate_mask_and_check_seconds": seconds,
        "times_smaller": buffer.getbuffer().nbytes / len(data),
        "same_masks": np.array_equal(*(each.masks["layers.0.weight"] for each in (loaded, ticket))),
    }  # fmt: skip


def run() -> Row:
    cases = product((100, 2000), (0.02, 0.05, 0.1, 0.3, 0.5))
    rows = [size_row(f"random, kept {kept}", random_mask(size, kept)) for size, kept in cases]
    structured = structured_rows()
    large = [large_row(*case) for case in ((0.02, UNIFORM), (0.3, UNIFORM), (0.5, Normal(1.0)))]
    slowest = max(row["regenerate_mask_and_check_seconds"] for row in large)
    beyond = max(row["beyond_limit"] for row in rows)
    too_large = sum(row["beyond_limit"] > 4096 for row in structured)
    lost = sum(not row["same_masks"] for row in large)
    return {
        "random": rows,
        "structured": structured,
        "large": large,
        "must_show": [
            figure("largest file beyond 102 % of the entropy, bytes", beyond, "<=", 4096),
            figure("structured masks beyond the same limit", too_large, "==", 0),
            figure("regenerate, mask and check 10^8 weights, seconds", slowest, "<", 5),
            figure("masks of 10^8 weights that a file does not give back", lost, "==", 0),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
