"""A Dask worker killed in the middle of a build: the file must have the bytes of a build on one core."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

OPTIONS: dict[str, Any] = dict(per_row=12, tolerance=1e-2, piece_problems=200)


def small_model() -> Any:
    """A GPT-2 of one block, with random weights that are the same every time."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT2LMHeadModel(config).eval()


def kill_a_worker() -> dict[str, Any]:
    from distributed import LocalCluster

    from strongticket.pretrained import build_file

    model = small_model()
    killed: list[tuple[int, int]] = []

    def kill(done: int, total: int) -> None:
        if not killed and 4 * done > total:
            killed.append((done, total))
            os.kill(victim, signal.SIGKILL)
            time.sleep(0.5)  # so that it is noticed before the work is done

    with tempfile.TemporaryDirectory() as name:
        alone, together = Path(name) / "alone.ticket", Path(name) / "together.ticket"
        build_file(model, alone, workers=1, **OPTIONS)
        with LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster:
            victim = next(iter(cluster.workers.values())).pid
            build_file(model, together, cluster=cluster.scheduler_address, progress=kill, **OPTIONS)
        same = alone.read_bytes() == together.read_bytes()
    done, total = killed[0]
    return {"workers": 2, "killed": 1, "problems": total, "done_before": done, "identical": same}
