"""Models as tickets by choice, beside rounding: `python -m benchmarks.pretrained [--json] [--quick] [--plot FILE]`.

stories260K, all-MiniLM-L6-v2 and a small language model that is trained here on WikiText-2: bits a weight of the whole
file (tokenizer aside) and what they buy, without data and calibrated, means of three seeds (twelve of stories260K).
Rivals are rounding in groups of 32 with float16 scales (the nearest; the better of a signed extreme and a searched
scale) and GPTQ with the same covariances; their vectors are float16, and everything counts for everyone. Bits saved are
read at the rivals' own 4.5, 5.5 and 6.5 bits, between tickets on a logarithmic scale. The model of WikiText-2 is judged
by the KL divergence from the original in nats: its loss grows by less than a tenth of a per cent, which is noise. Then
time, memory, the plan's forecast, and loading. Models that are not there are left out (see benchmarks/models.py);
--quick leaves out all but stories260K.
"""

import copy
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import strongticket
from benchmarks.harness import Row, fastest, figure, main, tell
from benchmarks.models import Model, bits_of, built, minilm, numbers, stories, wikitext
from benchmarks.rivals import ROUNDINGS, gptq, rounded
from strongticket.builders import plan_model
from strongticket.builders.calibration import covariances, linear_weights
from strongticket.models.inputs import batches
from strongticket.models.tensors import parameters
from strongticket.models.tokenizers import FromFiles
from strongticket.reproduce import plots
from strongticket.ticket import Ticket

ASKED = (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0)
CALIBRATED = (3.5, 4.5, 5.5, 6.5)
ROUNDED = (4, 5, 6)  # bits of a number; a half more with the scales
SEEDS = {"stories260K": range(12)}  # tickets of so small a model differ most; three of others
# What a ticket changes: the column of its size, what is held equal, and the axis of the plot.
EFFECTS = {
    "stories260K": ("loss %", "loss", "loss above the model's, %"),
    "MiniLM": ("distance", "cosine", "1 − mean cosine"),
    "WikiText-2 Llama": ("divergence", "divergence", "KL divergence, nats"),
}

# The two lines that load a ticket, timed, with sockets refused: class, folder, file for the output.
LOADING = """
import json, socket, sys, time
def refuse(*_, **__):
    raise OSError("no network in this process")
socket.socket.connect = refuse
import strongticket.hf
import torch, transformers
from tests.faults.memory import peak_memory
transformers.logging.disable_progress_bar()
start = time.perf_counter()
model = getattr(transformers, sys.argv[1]).from_pretrained(sys.argv[2])
seconds = time.perf_counter() - start
torch.save(model(torch.arange(1, 25)[None] * 7)[0].detach(), sys.argv[3])
print(json.dumps({"seconds": seconds, "peak_mb": peak_memory() / 1e6}))
"""


def tickets(model: Model, asked: Sequence[float], **options: Any) -> list[Row]:
    """Tickets of these bits, means of several seeds."""
    rows = []
    for bits in asked:
        found = []
        for seed in SEEDS.get(model.name, range(3)):
            ticket = strongticket.build(model.path, bits=bits, seed=seed, **options)
            found.append({"bits": bits_of(ticket)} | model.quality(ticket.network()))
        mean = {column: float(np.mean([row[column] for row in found])) for column in found[0]}
        effect = [row[EFFECTS[model.name][0]] for row in found]
        rows.append({"method": "choice", "asked": bits} | mean | {"spread": max(effect) - min(effect)})
        tell(f"{model.name}, {options or 'no data'}: {rows[-1]}")
    return rows


def changed(model: Model, code: Callable[[str, np.ndarray], tuple[np.ndarray, float]]) -> Row:
    """Bits and effect of a model each of whose tensors is coded in another way."""
    made, total = copy.deepcopy(model.network), 0.0
    with torch.no_grad():
        for name in parameters(made):
            parameter = made.get_parameter(name)
            array, bits = code(name, parameter.double().numpy())
            parameter.copy_(torch.from_numpy(array))
            total += bits
    return {"bits": total / numbers(model.network)} | model.quality(made)


def roundings(model: Model) -> list[Row]:
    rows = []
    for (method, rounding), bits in product(ROUNDINGS.items(), ROUNDED):
        row = changed(model, lambda _, array, b=bits, r=rounding: rounded(array, b, r))
        rows.append({"method": method, "asked": bits} | row)
    return rows


def with_gptq(model: Model, text: Path) -> list[Row]:
    """GPTQ of all linear layers, in both orders; other matrices get a bit more, rounded with a searched scale."""
    linear = linear_weights(model.network)
    tokenizer = FromFiles(model.tokenizer).inner
    found = covariances(model.network, linear, batches(model.network, text, tokenizer))

    def code(bits: int, in_order: bool, name: str, array: np.ndarray) -> tuple[np.ndarray, float]:
        if name not in linear:
            return rounded(array, bits + 1, ROUNDINGS["searched scale"])
        matrix = array.T if linear[name] else array
        made = gptq(matrix, found[name], bits, in_order)
        scales = matrix.shape[0] * math.ceil(matrix.shape[1] / 32)
        return made.T if linear[name] else made, bits * array.size + 16 * scales

    rows = []
    for (method, in_order), bits in product({"GPTQ": True, "GPTQ, act-order": False}.items(), ROUNDED):
        rows.append({"method": method, "asked": bits} | changed(model, partial(code, bits, in_order)))
        tell(f"{model.name}: {rows[-1]}")
    return rows


def saved(model: Model, rows: list[Row], methods: list[str], what: str, least: float, more: str = "") -> Row:
    """Bits that a ticket needs less than the best of these methods, at each of their sizes."""
    column, found = EFFECTS[model.name][0], []
    ours = [row for row in rows if row["method"] == "choice"]
    ours = sorted((math.log(max(row[column], 1e-9)), row["bits"]) for row in ours)
    for bits in ROUNDED:
        rivals = [row for row in rows if row["method"] in methods and row["asked"] == bits]
        best = min(rivals, key=lambda row: row[column])
        at = math.log(max(best[column], 1e-9))
        found.append(best["bits"] - float(np.interp(at, *zip(*ours, strict=True))))
    note = ", ".join(f"{bits:.2f}" for bits in found) + more
    return figure(f"{model.name}{what}", min(found), ">=", least, note)


def comparison(model: Model) -> tuple[list[Row], list[Row]]:
    """Without data."""
    rows, shown, name = tickets(model, ASKED) + roundings(model), [], model.name
    if least := {"stories260K": 0.7, "MiniLM": 1.0}.get(name):
        what = f": bits saved against rounding at equal {EFFECTS[name][1]}, at 4.5, 5.5, 6.5 bits"
        shown.append(saved(model, rows, ["nearest"], what, least))
    if name == "MiniLM":
        what = ": bits saved against the better of a signed extreme and a searched scale"
        shown.append(saved(model, rows, ["signed extreme", "searched scale"], what, 0.8))
    worst = max(abs(row["bits"] / row["asked"] - 1) for row in rows if row["method"] == "choice")
    shown.append(figure(f"{name}: bits= is off by at most, %", 100 * worst, "<=", 1))
    return rows, shown


def calibrated(model: Model, text: Path) -> tuple[list[Row], list[Row]]:
    """With errors fed forward, against GPTQ with the same covariances."""
    rows = tickets(model, CALIBRATED, calibrate=text) + with_gptq(model, text)
    what = ", calibrated: bits saved against GPTQ, groups of 32"
    more = "; against the better order of columns"
    return rows, [saved(model, rows, ["GPTQ", "GPTQ, act-order"], what, 0.5, more)]


def tolerances(model: Model) -> tuple[list[Row], list[Row]]:
    """The error asked for, planned and reached."""
    rows = []
    for tolerance, states in product((0.1, 0.03, 0.01), (1, 8)):
        planned = plan_model(model.path, tolerance=tolerance, states=states)
        ticket = strongticket.build(model.path, tolerance=tolerance, states=states)
        matrices = {name: math.prod(shape) for name, shape in ticket.shapes().items() if len(shape) > 1}
        errors = [ticket.metadata["errors"][name][1] for name in matrices]
        reached = math.sqrt(np.average(np.square(errors), weights=list(matrices.values())))
        bits = bits_of(ticket)
        rows.append(
            {"tolerance": tolerance, "states": states, "error": reached, "bits": bits,
             "error off %": 100 * abs(reached / tolerance - 1), "planned bits": planned.bits,
             "planned off %": 100 * abs(planned.bits / bits - 1)}
        )  # fmt: skip
    worst, planned_worst = (max(row[column] for row in rows) for column in ("error off %", "planned off %"))
    return rows, [
        figure(f"{model.name}: tolerance= is off by at most, %", worst, "<=", 1),
        figure(f"{model.name}: planned against built bits, off by at most, %", planned_worst, "<=", 1),
    ]


def resources(model: Model, folder: Path) -> tuple[list[Row], list[Row]]:
    """Time and memory of a build and a plan in fresh processes: first calls compile or load compiled code."""
    out, rows = folder / "model.ticket", []
    for _ in range(2):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            process.submit(plan_model, model.path, bits=4).result()  # imports and compilation
            start = time.perf_counter()
            process.submit(plan_model, model.path, bits=4.5).result()
            plan_seconds = time.perf_counter() - start
            row = process.submit(built, model.path, out, workers=2, bits=4.5).result()
        rows.append(row | {"plan_seconds": plan_seconds})
    row = min(rows, key=lambda row: row["seconds"])
    if model.name != "MiniLM":
        return rows, []
    return rows, [
        figure("MiniLM: seconds to build on two cores", row["seconds"], "<", 5),
        figure("MiniLM: gigabytes", row["memory_gb"], "<", 1.5),
        figure("MiniLM: seconds to plan", row["plan_seconds"], "<", 2),
    ]


def loading(model: Model, folder: Path) -> tuple[list[Row], list[Row]]:
    """The last ticket and the original: loaded by transformers in fresh processes, then the time of a batch."""
    file, out = folder / "model.ticket", folder / "output.pt"
    ticket = Ticket.load(file)
    networks = {"ticket": ticket.network(), "float32": model.network}
    written = ticket.save_pretrained(folder / model.name)
    loads: dict[str, list[Row]] = {"float32": [], "ticket": []}
    for _ in range(3):
        for name, path in (("float32", model.path), ("ticket", str(written))):
            command = [sys.executable, "-c", LOADING, type(model.network).__name__, path, str(out)]
            loads[name].append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    original, ours = (min(found, key=lambda row: row["seconds"]) for found in loads.values())
    first, ids = torch.arange(1, 25)[None] * 7, torch.arange(2048).reshape(8, 256) % 512
    with torch.no_grad():
        equal = torch.equal(torch.load(out, weights_only=True), networks["ticket"](first)[0])
        speed = fastest({name: partial(network, ids) for name, network in networks.items()}, repeats=15)
    slower = speed["ticket"] / speed["float32"]
    size = (written / "model.safetensors").stat().st_size / file.stat().st_size
    note = " and ".join(f"{row['seconds']:.2g} s, peak {row['peak_mb']:.0f} MB" for row in (ours, original))
    shown = [
        figure("two lines in a fresh process, no network: output equal to the last bit", equal, "==", 1),
        figure("bytes of model.safetensors over the ticket's", size, "<=", 1.01),
        figure("time of the ticket's network against the model's", slower, "<=", 1.05),
    ]
    if model.name == "MiniLM":
        ratio = ours["seconds"] / original["seconds"]
        shown.append(figure("MiniLM: load time over float32's", ratio, "<=", 2, note))
    return [{"file": "ticket"} | ours, {"file": "float32"} | original], shown


def run(quick: bool = False, plot: str = "") -> Row:
    os.environ["HF_HUB_OFFLINE"] = "1"
    result: dict[str, list[Row]] = {}
    shown: list[Row] = []

    def add(name: str, found: tuple[list[Row], list[Row]]) -> None:
        result[name] = found[0]
        shown.extend(found[1])

    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name), stories()
        large, trained = (None, None) if quick else (minilm(), wikitext())
        for model in (small, large, trained):
            if model:
                add(model.name, comparison(model))
        for model in (large, trained):
            if model and model.calibration:
                add(f"{model.name} calibrated", calibrated(model, model.calibration))
        for model in (small, large):
            if model:
                add(f"{model.name} tolerances", tolerances(model))
        if last := large or small:
            add("resources", resources(last, folder))
            add("loading", loading(last, folder))
    if plot:
        draw_plot(result, Path(plot))
    return {**result, "must_show": shown}


def draw_plot(result: dict[str, list[Row]], path: Path) -> None:
    """As path.png and path.pdf: a panel for each model, what uses data with dashes."""
    panels = {name: effect for name, effect in EFFECTS.items() if name in result}

    def draw(axes: Sequence[Any]) -> None:
        for axis, (name, (column, _, label)) in zip(axes, panels.items(), strict=True):
            for part, line in ((name, "-"), (f"{name} calibrated", "--")):
                for method in dict.fromkeys(row["method"] for row in result.get(part, ())):
                    rows = [row for row in result[part] if row["method"] == method and row[column] > 0]
                    said = f"{method}, calibrated" if part != name and method == "choice" else method
                    plots.curve(axis, rows, "bits", column, label=said, linestyle=line)
            axis.set_yscale("log")
            plots.label(axis, name, "bits per weight", label)

    path.parent.mkdir(parents=True, exist_ok=True)
    plots.save(path.with_suffix(""), len(panels), draw)


if __name__ == "__main__":
    main(__doc__, run)
