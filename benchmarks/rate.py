"""Bits a weight against what they buy: tickets beside rounding, an entropy-coded quantiser and the theoretical limit.

Every ticket is the whole file that a build asked for these bits writes, with index and checksums, read again before it
is measured. Rounding is to the nearest of 2^bits levels, symmetric, with a float16 scale for each 32 numbers. The
entropy-coded quantiser is uniform, one step for each tensor, and pays the entropy of its indices. The limit is that of
normal numbers, log2(1 / relative error). The loss of stories260K is measured on stories that the model itself writes
with a fixed seed; the cosine of MiniLM is that of mean-pooled embeddings of passages of WikiText-2.

`python -m benchmarks.rate [--json] [--quick] [--plot FILE]`: ten minutes; --quick leaves out MiniLM.
"""

import copy
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.harness import Row, figure, main, tell
from benchmarks.models import Model, built, minilm, numbers, stories
from strongticket.reproduce import plots
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
REQUIRED = (  # model, what is asked of a ticket, column, at most, bits at most
    ("stories260K", "a loss of at most +1 %", "loss %", 1, 9.5),
    ("stories260K", "an error of at most 1.5e-4", "error", 1.5e-4, 17),
    ("MiniLM", "a least cosine of 0.992", "largest distance", 0.008, 8.6),
    ("MiniLM", "a least cosine of 0.998", "largest distance", 0.002, 10.4),
)
METHODS = ("ticket", "rounded", "entropy-coded")
PANELS = {
    "normal 256×256": ("error", "Normal 256 × 256: relative RMS error"),
    "stories260K": ("loss %", "stories260K: loss above the model's, %"),
    "MiniLM": ("distance", "MiniLM: 1 − mean cosine"),
}
Tensors = dict[str, np.ndarray]


def ticket(network: nn.Module, asked: float) -> tuple[Tensors, float, Row]:
    """(tensors of the ticket, bits a weight of its whole file, processor time and entries out of reach)."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"bits" if asked >= 1 else "tolerance": asked}
        file = Path(folder) / "rate.ticket"
        row, made = built(network, file, workers=1, **options), Ticket.load(file)
    found = made.network(copy.deepcopy(network)) if isinstance(network, nn.Linear) else made.network()
    more = {"us a weight": 1e6 * row["cpu_seconds"] / numbers(network), "out of reach": row["out of reach"]}
    return parameters(found), row["bits"], more


def rounded(tensor: np.ndarray, bits: int) -> tuple[np.ndarray, float]:
    """Round to nearest in groups of 32: (what is left, bits together)."""
    top = 2 ** (bits - 1) - 1
    flat = np.pad(tensor.reshape(-1), (0, -tensor.size % 32)).reshape(-1, 32)
    scale = (np.abs(flat).max(axis=1, keepdims=True) / top).astype(np.float16).astype(np.float64)
    scale[scale == 0] = 1
    levels = np.clip(np.round(flat / scale), -top - 1, top)
    made = (levels * scale).reshape(-1)[: tensor.size].reshape(tensor.shape)
    return made, bits * tensor.size + 16 * len(flat)


def entropy_coded(tensor: np.ndarray, step: float) -> tuple[np.ndarray, float]:
    """Uniform steps, and the entropy of their indices: (what is left, bits together)."""
    size = step * math.sqrt(np.square(tensor).mean())
    levels = np.round(tensor / size)
    _, counts = np.unique(levels, return_counts=True)
    return levels * size, float(counts @ np.log2(tensor.size / counts))


def error_of(tensors: Tensors, made: Tensors) -> float:
    """Root mean square of the tensors' relative errors, each counted by its numbers."""
    total = sum(
        tensor.size * np.square(made[name] - tensor).sum() / (np.square(tensor).sum() or 1)
        for name, tensor in tensors.items()
    )
    return math.sqrt(total / sum(tensor.size for tensor in tensors.values()))


def table(name: str, network: nn.Module, model: Model | None = None) -> list[Row]:
    """A row for each method and setting."""
    rows, tensors = [], parameters(network)

    def add(method: str, setting: str, made: Tensors, bits: float, more: Row) -> None:
        error = error_of(tensors, made)
        row = {"method": method, "setting": setting, "bits": bits, "error": error}
        changed = copy.deepcopy(network)
        with torch.no_grad():
            for each, parameter in changed.named_parameters():
                parameter.copy_(torch.from_numpy(made[each]).reshape(parameter.shape))
        quality = model.quality(changed) if model else {}
        rows.append(row | {"above limit": bits + math.log2(error)} | quality | more)
        tell(f"{name}, {method} {setting}: {bits:.2f} bits, error {error:.2e}")

    for asked in ASKED[name]:
        add("ticket", f"{asked:g} bits" if asked >= 1 else f"error {asked:g}", *ticket(network, asked))
    coders = [("rounded", f"int{bits}", rounded, bits) for bits in ROUNDED]
    coders += [("entropy-coded", f"step {step:g}", entropy_coded, step) for step in STEPS]
    for method, setting, code, strength in coders:
        # A vector is left as it is, at 32 bits.
        found = {
            each: (tensor, 32 * tensor.size) if min(tensor.shape) == 1 else code(tensor, strength)
            for each, tensor in tensors.items()
        }
        bits = sum(bits for _, bits in found.values()) / numbers(network)
        add(method, setting, {each: made for each, (made, _) in found.items()}, bits, {})
    return rows


def parameters(model: nn.Module) -> Tensors:
    """Every trained tensor as a matrix, tied ones once; a vector is one row."""
    arrays = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    return {
        name: array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(1, -1)
        for name, array in arrays.items()
    }


def normal(size: int) -> list[Row]:
    matrix = nn.Linear(size, size, bias=False)
    with torch.no_grad():
        matrix.weight.copy_(torch.from_numpy(np.random.default_rng(size).normal(size=(size, size))))
    return table(f"normal {size}×{size}", matrix)


def of(rows: list[Row], method: str) -> list[Row]:
    return [row for row in rows if row["method"] == method]


def bits_at(rows: list[Row], column: str, value: float) -> float:
    """Bits that one method's rows need for this value of a column, between its settings on a logarithmic scale."""
    points = sorted((math.log(max(row[column], 1e-9)), row["bits"]) for row in rows)
    return float(np.interp(math.log(max(value, 1e-9)), *zip(*points, strict=True)))


def above_rounding(rows: list[Row], column: str) -> float:
    """The most bits that a ticket needs more than rounding at the same value, where both were measured."""
    rounds = of(rows, "rounded")
    values = [max(row[column], 1e-9) for row in rounds]
    inside = [row for row in of(rows, "ticket") if min(values) <= row[column] <= max(values)]
    return max((row["bits"] - bits_at(rounds, column, row[column]) for row in inside), default=math.nan)


def figures(result: dict[str, list[Row]]) -> list[Row]:
    above = bits_at(of(result["normal 256×256"], "ticket"), "error", 3e-2) - math.log2(1 / 3e-2)
    name = "normal 256×256, error 3e-2: bits above the limit"
    shown = [figure(name, above, "<=", 2.1), figure(f"{name} (goal)", above, "<=", 1.3)]
    for model, what, column, most, limit in REQUIRED:
        if model in result:
            enough = [row["bits"] for row in of(result[model], "ticket") if row[column] <= most]
            shown.append(figure(f"{model}: bits at {what}", min(enough, default=99.0), "<=", limit))
    for model, what, column in (("stories260K", "loss", "loss %"), ("MiniLM", "cosine", "distance")):
        if model in result:
            name, more = (
                f"{model}: bits above rounding at equal {what}",
                above_rounding(result[model], column),
            )
            shown += [figure(name, more, "<=", 2.2), figure(f"{name} (goal)", more, "<=", 1)]
    return shown


def run(quick: bool = False, plot: str = "") -> Row:
    result = {f"normal {size}×{size}": normal(size) for size in (64, 256)}
    for model in (stories(), None if quick else minilm()):
        if model:
            result[model.name] = table(model.name, model.network, model)
    if plot:
        draw_plot(result, Path(plot))
    return {**result, "must_show": figures(result)}


def draw_plot(result: dict[str, list[Row]], path: Path) -> None:
    """As path.png and path.pdf."""
    panels = [(name, *panel) for name, panel in PANELS.items() if name in result]

    def draw(axes: Sequence[Any]) -> None:
        for axis, (name, column, title) in zip(axes, panels, strict=True):
            for method in METHODS:
                rows = [row for row in of(result[name], method) if row[column] > 1e-5]
                plots.curve(axis, sorted(rows, key=lambda row: row["bits"]), "bits", column, label=method)
            if column == "error":
                limit = [{"bits": bits, "error": 2.0**-bits} for bits in range(2, 11)]
                plots.curve(axis, limit, "bits", "error", label="limit", marker="", linestyle=plots.BOUND)
            plots.label(axis, title, "bits per weight", column)

    path.parent.mkdir(parents=True, exist_ok=True)
    plots.save(path.with_suffix(""), len(panels), draw)


if __name__ == "__main__":
    main(__doc__, run)
