"""Bits a weight against what they buy: tickets beside rounding, an entropy-coded quantiser and the theoretical limit.

Every ticket is the whole file that a build asked for these bits writes, with index and checksums, read again before it
is measured. Rounding is to the nearest of 2^bits levels, symmetric, with a float16 scale for each 32 numbers. The
entropy-coded quantiser is uniform, one step for each tensor, and pays the entropy of its indices. The limit is that of
normal numbers, log2(1 / relative error). The loss of stories260K is measured on stories that the model itself writes
with a fixed seed; the cosine of MiniLM is that of mean-pooled embeddings of passages of WikiText-2.
"""

import copy
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.harness import figure, main, tell
from benchmarks.pretrained import PASSAGES, STORIES, TEXTS, minilm_path
from strongticket import pretrained
from strongticket.data.models import tokenizer_files
from strongticket.data.tokenizers import FromFiles
from strongticket.ticket import Ticket

# What is asked for: bits a weight, or below 1 a relative error.
ASKED = {
    "normal 64×64": (0.1, 0.03, 0.01, 0.001),
    "normal 256×256": (3.6, 4.6, 5.6, 6.6, 8.1, 10.1),
    "stories260K": (4.7, 5.7, 6.7, 8.2, 1.45e-4),
    "MiniLM": (5.1, 7.1, 9.1),
}
ROUNDED = (8, 6, 5, 4)  # bits
STEPS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of the entropy-coded quantiser, in root mean squares
Tensors = dict[str, np.ndarray]
Measure = Callable[[nn.Module], dict[str, float]]


def ticket_of(model: nn.Module, asked: float) -> tuple[Tensors, float, dict[str, float]]:
    """(tensors of the ticket, bits a weight of its whole file, seconds and entries out of reach)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rate.ticket"
        start = time.process_time()
        pretrained.build_file(model, path, workers=1, **{"bits" if asked >= 1 else "tolerance": asked})
        seconds = time.process_time() - start
        ticket, size = Ticket.load(path), path.stat().st_size
    network = ticket.network(copy.deepcopy(model)) if isinstance(model, nn.Linear) else ticket.network()
    numbers = sum(parameter.numel() for parameter in model.parameters())
    more = {"us a weight": 1e6 * seconds / numbers, "out of reach": ticket.metadata["unreached"]}
    return parameters(network), 8 * size / numbers, more


def rounded(tensors: Tensors, bits: int) -> tuple[Tensors, float]:
    """Round to nearest in groups of 32; a vector is left as it is, at 32 bits."""
    made, total = {}, 0.0
    top = 2 ** (bits - 1) - 1
    for name, tensor in tensors.items():
        if min(tensor.shape) == 1:
            made[name], total = tensor, total + 32 * tensor.size
            continue
        flat = np.pad(tensor.reshape(-1), (0, -tensor.size % 32)).reshape(-1, 32)
        scale = (np.abs(flat).max(axis=1, keepdims=True) / top).astype(np.float16).astype(np.float64)
        scale[scale == 0] = 1
        levels = np.clip(np.round(flat / scale), -top - 1, top)
        made[name] = (levels * scale).reshape(-1)[: tensor.size].reshape(tensor.shape)
        total += bits * tensor.size + 16 * len(flat)
    return made, total / sum(tensor.size for tensor in tensors.values())


def quantised(tensors: Tensors, step: float) -> tuple[Tensors, float]:
    """Uniform steps, and the entropy of their indices."""
    made, total = {}, 0.0
    for name, tensor in tensors.items():
        if min(tensor.shape) == 1:
            made[name], total = tensor, total + 32 * tensor.size
            continue
        size = step * math.sqrt(np.square(tensor).mean())
        levels = np.round(tensor / size)
        _, counts = np.unique(levels, return_counts=True)
        made[name], total = levels * size, total + float(counts @ np.log2(tensor.size / counts))
    return made, total / sum(tensor.size for tensor in tensors.values())


def error_of(tensors: Tensors, made: Tensors) -> float:
    """Root mean square of the tensors' relative errors, each counted by its numbers."""
    total = sum(
        tensor.size * np.square(made[name] - tensor).sum() / (np.square(tensor).sum() or 1)
        for name, tensor in tensors.items()
    )
    return math.sqrt(total / sum(tensor.size for tensor in tensors.values()))


def table(what: str, model: nn.Module, measure: Measure) -> list[dict]:
    """A row for each method and setting."""
    rows, tensors = [], parameters(model)

    def add(method: str, setting: object, made: Tensors, bits: float, **more: float) -> None:
        error = error_of(tensors, made)
        row = {"method": method, "setting": setting, "bits": bits, "error": error, "limit": -math.log2(error)}
        network = copy.deepcopy(model)
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                parameter.copy_(torch.from_numpy(made[name]).reshape(parameter.shape))
        rows.append(row | {"above limit": bits + math.log2(error)} | measure(network) | more)
        tell(f"{what}, {method} {setting}: {bits:.2f} bits, error {error:.2e}")

    for asked in ASKED[what]:
        made, bits, more = ticket_of(model, asked)
        add("ticket", f"{asked:g} bits" if asked >= 1 else f"error {asked:g}", made, bits, **more)
    for number in ROUNDED:
        add("rounded", f"int{number}", *rounded(tensors, number))
    for step in STEPS:
        add("entropy-coded", f"step {step:g}", *quantised(tensors, step))
    return rows


def bits_at(rows: list[dict], method: str, column: str, value: float) -> float:
    """Bits that a method needs for this value of a column, between its settings on a logarithmic scale."""
    points = sorted(
        (math.log(max(row[column], 1e-9)), row["bits"]) for row in rows if row["method"] == method
    )
    return float(np.interp(math.log(max(value, 1e-9)), *zip(*points, strict=True)))


def normal(size: int) -> list[dict]:
    matrix = nn.Linear(size, size, bias=False)
    numbers = np.random.default_rng(size).normal(size=(size, size))
    with torch.no_grad():
        matrix.weight.copy_(torch.from_numpy(numbers))
    return table(f"normal {size}×{size}", matrix, lambda network: {})


def parameters(model: nn.Module) -> Tensors:
    """Every trained tensor as a matrix, tied ones once; a vector is one row."""
    arrays = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    return {
        name: array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(1, -1)
        for name, array in arrays.items()
    }


def stories() -> list[dict]:
    model = pretrained.load_target(str(STORIES))
    batches = pretrained.batches(model, None, None, sequences=PASSAGES)

    def measure(network: nn.Module) -> dict[str, float]:
        found = pretrained.compare(model, network, batches)
        assert found.source_loss is not None
        assert found.target_loss is not None
        return {"loss %": 100 * (found.source_loss / found.target_loss - 1)}

    return table("stories260K", model, measure)


def minilm(path: str) -> list[dict]:
    model = pretrained.load_target(path)
    tokenizer = FromFiles(tokenizer_files(path)).inner
    batches = pretrained.batches(model, TEXTS, tokenizer, sequences=PASSAGES)

    def measure(network: nn.Module) -> dict[str, float]:
        found = pretrained.compare(model, network, batches)
        distance = 1 - found.cosine_mean
        return {"cosine": found.cosine_mean, "distance": distance, "largest distance": 1 - found.cosine_min}

    return table("MiniLM", model, measure)


def tickets(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["method"] == "ticket"]


def least_bits(rows: list[dict], column: str, most: float) -> float:
    """Of the smallest ticket whose value is at most this; 99 if none is that good."""
    return min((row["bits"] for row in tickets(rows) if row[column] <= most), default=99.0)


def above_rounding(rows: list[dict], column: str) -> float:
    """The most bits that a ticket needs more than rounding at the same value, where both were measured."""
    values = [max(row[column], 1e-9) for row in rows if row["method"] == "rounded"]
    inside = [row for row in tickets(rows) if min(values) <= row[column] <= max(values)]
    return max(
        (row["bits"] - bits_at(rows, "rounded", column, row[column]) for row in inside), default=math.nan
    )


def run(quick: bool, plot: str | None) -> dict:
    result: dict = {"normal_64": normal(64), "normal_256": normal(256)}
    above = bits_at(result["normal_256"], "ticket", "error", 3e-2) - math.log2(1 / 3e-2)
    shown = [
        figure("normal 256×256, error 3e-2: bits above the limit", above, "<=", 2.1),
        figure("normal 256×256, error 3e-2: bits above the limit (goal)", above, "<=", 1.3),
    ]
    if STORIES.is_dir():
        rows = result["stories260K"] = stories()
        more = above_rounding(rows, "loss %")
        shown += [
            figure("stories260K: bits at a loss of at most +1 %", least_bits(rows, "loss %", 1), "<=", 9.5),
            figure(
                "stories260K: bits at an error of at most 1.5e-4", least_bits(rows, "error", 1.5e-4), "<=", 17
            ),
            figure("stories260K: bits above rounding at equal loss", more, "<=", 2.2),
            figure("stories260K: bits above rounding at equal loss (goal)", more, "<=", 1),
        ]
    if not quick and (path := minilm_path()):
        rows = result["minilm"] = minilm(path)
        more = above_rounding(rows, "distance")
        shown += [
            figure(
                "MiniLM: bits at a least cosine of 0.992",
                least_bits(rows, "largest distance", 0.008),
                "<=",
                8.6,
            ),
            figure(
                "MiniLM: bits at a least cosine of 0.998",
                least_bits(rows, "largest distance", 0.002),
                "<=",
                10.4,
            ),
            figure("MiniLM: bits above rounding at equal cosine", more, "<=", 2.2),
            figure("MiniLM: bits above rounding at equal cosine (goal)", more, "<=", 1),
        ]
    if plot:
        draw_plot(result, Path(plot))
    return result | {"must_show": shown}


def draw_plot(result: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = [("normal_256", "error", "Normal 256 × 256: relative RMS error")]
    panels += (
        [("stories260K", "loss %", "stories260K: loss above the model's, %")]
        if "stories260K" in result
        else []
    )
    panels += [("minilm", "distance", "MiniLM: 1 − mean cosine")] if "minilm" in result else []
    styles = {"ticket": "o-", "rounded": "s--", "entropy-coded": "^:"}
    figure_, axes = pyplot.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.8), squeeze=False)
    for axis, (name, column, title) in zip(axes[0], panels, strict=True):
        for method, style in styles.items():
            rows = sorted(
                (row for row in result[name] if row["method"] == method), key=lambda row: row["bits"]
            )
            rows = [row for row in rows if row[column] > 1e-5]
            axis.plot([row["bits"] for row in rows], [row[column] for row in rows], style, label=method)
        if name.startswith("normal"):
            bits = np.linspace(2, 10, 20)
            axis.plot(bits, 2.0**-bits, "k-", linewidth=0.8, label="limit")
        axis.set(yscale="log", xlabel="bits per weight", title=title, xlim=(2, 12))
        axis.grid(alpha=0.3)
        axis.legend()
    figure_.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure_.savefig(path, dpi=130)


if __name__ == "__main__":
    main(
        __doc__,
        run,
        quick="leave out MiniLM, which takes minutes",
        files={"plot": "write the chart to this file"},
    )
