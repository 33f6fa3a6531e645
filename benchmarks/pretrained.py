"""Models as tickets: `python -m benchmarks.pretrained [--json] [--quick]`, a few minutes on two cores.

stories260K and all-MiniLM-L6-v2 with every tensor made from pruned random matrices: bits a weight, what they buy, time,
memory and the plan's forecast; calibration; loading and running the ticket beside the original. Models that are not
there are left out (see benchmarks/models.py); --quick leaves out the large one.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
import transformers
from torch import nn

from benchmarks.harness import Row, fastest, figure, main, tell
from benchmarks.models import PASSAGES, Model, built, minilm, numbers, stories
from strongticket import models, pretrained
from strongticket.models.inputs import Batch
from strongticket.pretrained.calibration import grams, linear_weights
from strongticket.ticket import Ticket

TOLERANCES = {"stories260K": (0.1, 0.03, 0.01, 1.45e-4), "MiniLM": (0.022, 0.012, 0.008)}

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


def planned_and_built(model: Model, folder: Path) -> list[Row]:
    rows, out = [], folder / "model.ticket"
    for tolerance in TOLERANCES[model.name]:
        planned = pretrained.plan(model.path, tolerance=tolerance, workers=2)
        # In a fresh process, whose memory is that of the build alone.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            row = process.submit(built, model.network, out, workers=2, tolerance=tolerance).result()
        row |= {f"planned_{name}": getattr(planned, name) for name in ("bits", "error", "seconds")}
        rows.append({"tolerance": tolerance} | row | model.quality(Ticket.load(out).network()))
        tell(f"{model.name}: {rows[-1]}")
    return rows


def figures(name: str, rows: list[Row]) -> list[Row]:
    """What bits buy is among the figures of `benchmarks.rate`."""
    bits, error = (
        max(abs(row[f"planned_{column}"] / row[column] - 1) for row in rows) for column in ("bits", "error")
    )
    shown = [
        figure(f"{name}: planned bits, and bytes, off by at most 20 %", bits, "<=", 0.2),
        figure(f"{name}: planned error off by at most 20 %", error, "<=", 0.2),
    ]
    if name == "MiniLM":
        slowest = max(rows, key=lambda row: row["cpu_seconds"])
        note = (
            f"processor time, the driver's and half of the workers'; on the clock {slowest['seconds']:.0f} s"
        )
        memory = max(row["memory_gb"] for row in rows)
        shown += [
            figure("MiniLM: seconds to build on two cores", slowest["cpu_seconds"], "<", 60, note),
            figure("MiniLM: gigabytes, all processes together", memory, "<", 3, "at most: peaks added up"),
        ]
    return shown


def calibrated(model: Model, folder: Path) -> tuple[list[Row], list[Row]]:
    """With and without --calibrate: errors of linear layers' outputs on other stories, at equal bits."""
    files = {path.name: path.read_text() for path in Path(model.path).glob("tokenizer*.json")}
    tokenizer = transformers.AutoTokenizer.from_pretrained(model.path)
    written = models.batches(model.network, None, None, sequences=PASSAGES, seed=1)
    text, out = folder / "stories.txt", folder / "calibrated.ticket"
    text.write_text("\n".join(tokenizer.decode(ids) for each in written for ids in each.inputs["input_ids"]))
    rows, ratios = [], []
    for bits in (5.7, 6.7, 8.2):
        for calibrate in (None, text):
            asked = {"bits": bits, "calibrate": calibrate, "tokenizer": files}
            row = built(model.network, out, workers=2, **asked)
            network = Ticket.load(out).network()
            error = output_error(model.network, network, model.batches)
            rows.append({"asked": bits, "calibrated": calibrate is not None, "bits": row["bits"]})
            rows[-1] |= {"output_error_squared": error, "error": row["error"]} | model.quality(network)
        ratios.append(rows[-2]["output_error_squared"] / rows[-1]["output_error_squared"])
    note = f"at 5.7, 6.7 and 8.2 bits: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    name = "calibrated: error² of outputs is so many times lower"
    return rows, [figure(name, min(ratios), ">=", 1.7, note)]


def output_error(model: nn.Module, network: nn.Module, batches: list[Batch]) -> float:
    """Square error of a linear layer's outputs relative to them, for inputs as the model has them; mean of layers."""
    weights = linear_weights(model)
    found = grams(model, weights, batches)

    def size(matrix: torch.Tensor, name: str) -> float:
        inputs_last = (matrix.T if weights[name] else matrix).double().numpy()
        return float(((inputs_last @ found[name]) * inputs_last).sum())

    shares = []
    for name in weights:
        wanted, made = model.get_parameter(name).detach(), network.get_parameter(name).detach()
        shares.append(size(made - wanted, name) / size(wanted, name))
    return sum(shares) / len(shares)


def loading(model: Model, folder: Path) -> tuple[list[Row], list[Row]]:
    """The last ticket and the original: loaded by transformers in fresh processes, then the time of a batch."""
    file, out = folder / "model.ticket", folder / "output.pt"
    ticket = Ticket.load(file)
    networks = {"ticket": ticket.network(), "float32": model.network}
    saved = ticket.save_pretrained(folder / model.name)
    loads: dict[str, list[Row]] = {"float32": [], "ticket": []}
    for _ in range(2):
        for name, path in (("float32", model.path), ("ticket", str(saved))):
            command = [sys.executable, "-c", LOADING, type(model.network).__name__, path, str(out)]
            loads[name].append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    original, ours = (min(found, key=lambda row: row["seconds"]) for found in loads.values())
    first, ids = torch.arange(1, 25)[None] * 7, torch.arange(2048).reshape(8, 256) % 512
    with torch.no_grad():
        equal = torch.equal(torch.load(out, weights_only=True), networks["ticket"](first)[0])
        speed = fastest({name: partial(network, ids) for name, network in networks.items()}, repeats=15)
    slower = speed["ticket"] / speed["float32"]
    more = numbers(networks["ticket"]) / numbers(model.network)
    size = (saved / "model.safetensors").stat().st_size / file.stat().st_size
    note = " and ".join(f"{row['seconds']:.2g} s, peak {row['peak_mb']:.0f} MB" for row in (ours, original))
    shown = [
        figure("two lines in a fresh process, no network: output equal to the last bit", equal, "==", 1),
        figure("bytes of model.safetensors over the ticket's", size, "<=", 1.01),
        figure("time of the ticket's network against the model's", slower, "<=", 1.05),
        figure("parameters against the model's", more, "==", 1),
    ]
    if model.name == "MiniLM":
        ratio = ours["seconds"] / original["seconds"]
        shown.append(figure("MiniLM: load time over float32's", ratio, "<=", 3, note))
    return [{"file": "ticket"} | ours, {"file": "float32"} | original], shown


def run(quick: bool = False) -> Row:
    os.environ["HF_HUB_OFFLINE"] = "1"
    result, shown = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder, small, large = Path(name), stories(), None if quick else minilm()
        for model in (small, large):
            if model:
                result[model.name] = planned_and_built(model, folder)
                shown += figures(model.name, result[model.name])
        for part, model in ((loading, large or small), (calibrated, small)):
            if model:
                tell(part.__doc__ or "")
                result[part.__name__], more = part(model, folder)
                shown += more
    return {**result, "must_show": shown}


if __name__ == "__main__":
    main(__doc__, run)
