"""Searching against dense training: `python -m benchmarks.search [--json] [--quick]`, three minutes.

Step time and memory of the default method beside dense AdamW training of the same model and beside a full sort of
every layer at every forward pass, as peers do it; the file of a found network; every method reloaded and resumed.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import transformers
from tests.faults.checkpoints import interrupted

from benchmarks.harness import figure, main, tell
from benchmarks.search_steps import default_method, memory, step_times
from strongticket.experiments.spread import Row
from strongticket.searching import SearchConfig, preset, search
from strongticket.searching.config.methods import METHODS
from strongticket.searching.evaluate import evaluate
from strongticket.searching.tasks import load_task
from strongticket.ticket import Ticket

GPT2_VOCABULARY = 50257


def found_file(config: SearchConfig) -> Row:
    """A search, its file, and the loss of what the file gives back."""
    with TemporaryDirectory() as folder:
        result = search(config, out=f"{folder}/found.ticket")
        again = Ticket.load(f"{folder}/found.ticket").network()
    weights = sum(mask.size for mask in result.ticket.masks.values())
    return {
        "weights": weights,
        "kept": result.kept,
        "file_bytes": result.file_bytes,
        "bytes_over_one_bit_a_weight": result.file_bytes - weights / 8,
        "loss": result.loss,
        "reloaded_loss": evaluate(again, load_task(config))["loss"],
        "seconds": round(result.seconds, 1),
    }


def methods_table(names: Iterable[str]) -> list[Row]:
    """Tiny searches by every method, and with a sparse source: the loss of the reloaded file, the bytes of a resumed
    run.
    """
    rows = []
    sparse = {"dropped": 0.3, "locked": 0.2}
    for name, source in [*((name, {}) for name in names), ("annealed", sparse)]:
        tell(f"method {name} {source or ''}")
        with TemporaryDirectory() as folder:
            text = Path(folder) / "text.txt"
            text.write_text("".join(f"{i} times {j} is {i * j}. " for i in range(20) for j in range(20)))
            config = preset(
                "laptop", method=name, data=str(text), cache=folder, cpu=True, layers=1, heads=2, dim=16,
                context=16, steps=5, batch=4, micro_batch=4, warmup=2, save_every=3, **source,
            )  # fmt: skip
            found = search(config)
            task = load_task(config)
            again = evaluate(Ticket.from_bytes(found.ticket.to_bytes()).network(), task)["loss"]
            resumed = found
            if name != "random":  # it trains nothing
                interrupted(config, 4)
                resumed = search(replace(config, resume=True))
        same = resumed.ticket.to_bytes() == found.ticket.to_bytes()
        shown = f"{name}, sparse source" if source else name
        rows.append({"method": shown, "reloads": again == found.loss, "resumes": same})
    return rows


def benchmark(quick: bool) -> dict:
    transformers.logging.set_verbosity_error()
    laptop, mini = preset("laptop"), default_method("gpt2-mini")
    if quick:
        times = [step_times("tiny", replace(laptop, dim=32), 100, 4, 3)]
        sizes = []
        file = found_file(replace(laptop, steps=5, dim=32, context=16))
        methods = methods_table(["annealed", "iterand", "int4"])
    else:
        times = [
            step_times("laptop", laptop, 103, laptop.batch, 60),
            step_times("gpt2-mini", mini, GPT2_VOCABULARY, 2, 1),
        ]
        sizes = [memory("gpt2-mini", GPT2_VOCABULARY)]
        file = found_file(replace(laptop, steps=30))
        methods = methods_table(METHODS)
    limit = {"laptop": 1.2, "gpt2-mini": 1.2}
    must_show = []
    for row in times:
        name = row["model"]
        if name not in limit:
            continue
        must_show.append(figure(f"{name}: step over dense", row["search_over_dense"], "<=", limit[name]))
        must_show.append(figure(f"{name}: full sort over ours", row["sort_over_search"], ">=", 1.5))
    for row in sizes:
        name = f"{row['model']}: bytes a weight over dense AdamW"
        must_show.append(figure(name, row["extra_bytes_a_weight"], "<=", 1))
    must_show.append(
        figure("file: bytes over one bit a weight", file["bytes_over_one_bit_a_weight"], "<=", 4096)
    )
    must_show.append(
        figure("file: reloaded loss minus trained", file["reloaded_loss"] - file["loss"], "==", 0)
    )
    for what in ("reloads", "resumes"):
        wrong = [row["method"] for row in methods if not row[what]]
        note = ", ".join(wrong) or f"of {len(methods)} methods"
        must_show.append(
            figure(f"methods: not as it should be when it {what}", len(wrong), "==", 0, note=note)
        )
    return {
        "threads": torch.get_num_threads(),
        "step_times": times,
        "memory": sizes,
        "file": [file],
        "methods": methods,
        "must_show": must_show,
    }


if __name__ == "__main__":
    main(__doc__ or "", benchmark, quick="small sizes, for tests")
