"""Size, speed and safety of ticket files: `python -m benchmarks.ticket [--json]`, about a minute."""

import hashlib
import io
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from tests.crafted import join

from benchmarks.harness import figure, main
from strongticket.errors import TicketError
from strongticket.seeds import Law, Normal, Uniform
from strongticket.ticket import Ticket, container, masks
from strongticket.ticket.format import FORMAT

LARGE = 100_000_000
CORRUPTIONS = 3000
UNIFORM = Uniform(1.0)


def one_tensor(mask: np.ndarray, law: Law = UNIFORM) -> Ticket:
    settings = {"dims": [mask.shape[1], mask.shape[0]], "bias": False}
    return Ticket(0, "relu", settings, {"layers.0.weight": law}, {"layers.0.weight": mask})


def random_mask(shape: tuple[int, ...], kept: float) -> np.ndarray:
    """Row by row: float64 noise for all rows at once would need eight times the memory."""
    rng = np.random.default_rng(0)
    return np.stack([rng.random(shape[1:], np.float32) < kept for _ in range(shape[0])])


def seconds(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """(best time, result): a shared machine only ever slows a run down."""
    times = []
    for _ in range(repeats):
        result = None  # the last one's memory is free again
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def row(name: str, mask: np.ndarray) -> dict[str, Any]:
    ticket = one_tensor(mask.reshape(-1, mask.shape[-1]))
    sizes = ticket.sizes()
    kept = int(np.count_nonzero(mask))
    limit = 1.02 * sizes.entropy + 4096
    return {
        "masks": name,
        "weights": mask.size,
        "file_bytes": sizes.file,
        "entropy_bytes": round(sizes.entropy),
        "float32_bytes": sizes.float32,
        "bits_per_weight": round(8 * sizes.file / mask.size, 4),
        "entropy_per_weight": round(8 * sizes.entropy / mask.size, 4),
        "bits_per_kept": round(8 * sizes.file / max(kept, 1), 3),
        "over_entropy": round(sizes.file / sizes.entropy - 1, 5),
        "within_limit": sizes.file <= limit,
    }


def random_rows() -> list[dict[str, Any]]:
    return [
        row(f"random, kept {kept}", random_mask((size, size), kept))
        for size in (100, 2000)
        for kept in (0.02, 0.05, 0.1, 0.3, 0.5)
    ]


def structured_rows() -> list[dict[str, Any]]:
    """The masks that builds make: 64 inputs, 4096 hidden units, in groups or given to any input."""
    rng = np.random.default_rng(1)
    dim, width = 64, 4096
    group = np.arange(width) * dim // width
    in_order = group == np.arange(dim)[:, None]
    anywhere = rng.permutation(group) == np.arange(dim)[:, None]
    free = rng.random((dim, width)) < 0.5
    used = rng.random(width) < 0.3
    return [
        row("one kept a unit, groups in order", in_order),
        row("one kept a unit, any input", anywhere),
        row("free half", free),
        row("free half, 70 % of units dropped", free & used),
        row("free half, the last 70 % of units dropped", free & (np.arange(width) < 0.3 * width)),
        row("each unit its own kept fraction", rng.random((dim, width)) < rng.random(width)),
    ]


def large_row(kept: float, law: Law) -> dict[str, Any]:
    """10^8 weights: save, load and regenerate, beside torch.save of the same masked weights."""
    ticket = one_tensor(random_mask((10_000, LARGE // 10_000), kept), law)
    save, data = seconds(ticket.to_bytes)
    load, loaded = seconds(lambda: Ticket.from_bytes(data))
    unchecked, tensor = seconds(lambda: ticket.weights("layers.0.weight"), 3)
    checked, _ = seconds(lambda: loaded.weights("layers.0.weight"), 3)
    buffer = io.BytesIO()
    torch_save, _ = seconds(partial(torch.save, {"weight": torch.from_numpy(tensor)}, buffer))
    del tensor
    buffer.seek(0)
    torch_load, _ = seconds(lambda: torch.load(buffer, weights_only=True))
    return {
        "kept": kept,
        "law": str(law),
        "weights": LARGE,
        "save_seconds": round(save, 2),
        "load_seconds": round(load, 2),
        "regenerate_and_mask_seconds": round(unchecked, 2),
        "regenerate_mask_and_check_seconds": round(checked, 2),
        "file_megabytes": round(len(data) / 1e6, 2),
        "torch_save_seconds": round(torch_save, 2),
        "torch_load_seconds": round(torch_load, 2),
        "torch_megabytes": round(buffer.getbuffer().nbytes / 1e6, 2),
        "times_smaller": round(buffer.getbuffer().nbytes / len(data), 1),
        "same_masks": masks.equal(loaded.masks["layers.0.weight"], ticket.masks["layers.0.weight"]),
    }


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A flip, a cut, an insertion or two swapped pieces."""
    first, second, third = sorted(int(i) for i in rng.integers(0, len(data), 3))
    match rng.integers(4):
        case 0:
            return data[:first] + bytes([data[first] ^ 1 << int(rng.integers(8))]) + data[first + 1 :]
        case 1:
            return data[:first] + data[second:]
        case 2:
            return data[:first] + rng.bytes(int(rng.integers(1, 9))) + data[first:]
        case _:
            return data[:first] + data[second:third] + data[first:second] + data[third:]


def corruptions() -> dict[str, int]:
    """A third as they come, a third with the digest made right, a third inside one tensor of a right file."""
    rng = np.random.default_rng(2)
    ticket = one_tensor(random_mask((40, 50), 0.3))
    data = ticket.to_bytes()
    expected = ticket.weights("layers.0.weight").tobytes()
    counts = {"tried": CORRUPTIONS, "errors": 0, "identical": 0, "wrong": 0}
    for i in range(CORRUPTIONS):
        if i % 3 == 0:
            bad = damaged(data, rng)
        elif i % 3 == 1:
            body = damaged(data[:-32], rng)
            bad = body + hashlib.sha256(body).digest()
        else:
            tensors = container.split(data, FORMAT)
            name = ("index", "masks")[i // 3 % 2]
            content = np.frombuffer(damaged(tensors[name].tobytes(), rng), np.uint8)
            bad = join(tensors | {name: content}, FORMAT)
        try:
            network = Ticket.from_bytes(bad).network()
        except TicketError:
            counts["errors"] += 1
        else:
            found = network.state_dict()["layers.0.weight"].numpy().tobytes()
            counts["identical" if found == expected else "wrong"] += 1
    return counts


def round_trips() -> dict[str, bool]:
    """The same weights after a journey through bytes, for the sizes where packing can go wrong."""
    result = {}
    for size in (0, 1, 7, 8, 9):
        mask = np.arange(size) % 3 == 0
        ticket = Ticket(0, "relu", {"dims": [1, 1]}, {"w": Uniform(1.0)}, {"w": mask})
        loaded = Ticket.from_bytes(ticket.to_bytes())
        same = loaded == ticket and loaded.weights("w").tobytes() == ticket.weights("w").tobytes()
        result[str(size)] = same and ticket.to_bytes(threads=1) == loaded.to_bytes(threads=2)
    return result


def run() -> dict[str, Any]:
    rows, structured, trips, damage = random_rows(), structured_rows(), round_trips(), corruptions()
    large = [large_row(*case) for case in ((0.02, UNIFORM), (0.3, UNIFORM), (0.5, Normal(1.0)))]
    slowest = max(row["regenerate_mask_and_check_seconds"] for row in large)
    worst = max(rows, key=lambda row: row["file_bytes"] - 1.02 * row["entropy_bytes"])
    beyond = worst["file_bytes"] - 1.02 * worst["entropy_bytes"]
    trips[str(LARGE)] = all(row["same_masks"] for row in large)

    too_large = sum(not row["within_limit"] for row in structured)
    lost = [size for size, same in trips.items() if not same]
    must_show = [
        figure("largest file beyond 102 % of the entropy, bytes", beyond, "<=", 4096),
        figure("structured masks beyond the same limit", too_large, "==", 0),
        figure("regenerate, mask and check 10^8 weights, seconds", slowest, "<", 5),
        figure("round trips of 0, 1, 7, 8, 9, 10^8 weights that lose one", len(lost), "==", 0),
        figure(f"wrong networks from {CORRUPTIONS} corruptions", damage["wrong"], "==", 0),
    ]
    return {
        "random": rows,
        "structured": structured,
        "large": large,
        "corruptions": [damage],
        "must_show": must_show,
    }


if __name__ == "__main__":
    main(__doc__, run)
