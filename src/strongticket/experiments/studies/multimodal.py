"""Does scaling queries and keys help tickets of two towers, one for images and one for text? The valley of Figure 8
for a contrastive model of digits and their names in words.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strongticket.experiments.driver import Run
from strongticket.experiments.points import Settings, code_version
from strongticket.experiments.spread import Row
from strongticket.experiments.tasks.digit_names import NAMES, TwoTowers, digit_names, reader_inputs
from strongticket.experiments.tasks.language import head_size, point
from strongticket.experiments.tasks.valley_study import (
    Scale,
    ValleyStudy,
    measure_valley,
    valley_page,
    valley_prints,
)
from strongticket.report import Page
from strongticket.searching import SearchConfig, logit_std, preset, search
from strongticket.searching.tasks.task import stacked

VERSION = code_version(
    "seeds", "data", "searching", "experiments/tasks/digit_names.py", "experiments/studies/multimodal.py"
)
# As in the study of images. Without the residual factor, which would count the blocks of both towers together.
_LAPTOP = preset(
    "images", dim=32, heads=2, layers=1, batch=32, micro_batch=32, steps=300, warmup=30, kept=0.3, scope="tensor",
    method="edge-popup", law="normal", activation="relu", std=0.1, embedding_std=0.3, residual_scaling=False,
    lr=6e-3, lr_end=6e-4,
)  # fmt: skip
SCALES = {
    "laptop": Scale(_LAPTOP, (1.0, 2**0.5, 2.0, 2**1.5, 4.0, 2**2.5), 3),
    "paper": Scale(
        replace(_LAPTOP, dim=192, heads=3, layers=12, batch=256, micro_batch=256, steps=20_000, lr=1e-3, lr_end=1e-4),
        tuple(2 ** (k / 2) for k in range(-2, 7)),
        3,
    ),
    "test": Scale(replace(_LAPTOP, dim=8, layers=1, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 1),
}  # fmt: skip
_LOOKED_AT = 16  # pairs on which the logits are measured


def measure(run: Run) -> ValleyStudy:
    """Search at every scale with every seed, and train the same networks."""
    scale = SCALES[run.options.scale]

    def searches(configs: Sequence[SearchConfig]) -> list[Row]:
        points = [{"study": "multimodal", **point(config)} for config in configs]
        rows = run.compute(f"{len(configs)} searches and trainings", compute, points, VERSION)
        return [dict(sorted(row.items())) for row in rows]

    return measure_valley("multimodal", _method(scale.config), scale, run.options.seed, searches)


def compute(settings: Settings) -> Row:
    """Run one search and return its row; the logits' deviation is that of both towers, root mean square.

    settings: of `point`
    """
    start = time.process_time()
    config = SearchConfig(**settings["search"], cpu=True)
    task = digit_names(config.data)
    towers = TwoTowers(config, task.sizes["image_size"])
    logits: dict[str, float | None] = {"logit_std": None, "logit_std_image": None, "logit_std_text": None}
    if config.method != "dense":
        search(replace(config, steps=0), task=task, model=towers)  # attaches the scores and trains nothing
        image, text = tower_logit_stds(towers, task.train)
        logits = {
            "logit_std": float(np.sqrt((image**2 + text**2) / 2)),
            "logit_std_image": image,
            "logit_std_text": text,
        }
    found = search(config, task=task, model=TwoTowers(config, task.sizes["image_size"]))
    return {
        "loss": found.loss,
        **found.measures,
        **logits,
        "parameters": found.parameters,
        "nonzero": found.kept,
        "file_bytes": found.file_bytes,
        "cpu_seconds": round(time.process_time() - start, 3),
    }


def tower_logit_stds(towers: TwoTowers, data: object) -> tuple[float, float]:
    """Return the deviation of the attention logits of both towers.

    data: pairs, of which the first few are looked at
    """
    device = next(towers.parameters()).device
    batch = stacked(data, range(_LOOKED_AT), device)
    image = logit_std(towers.image, {"pixel_values": batch["pixel_values"]})
    return image, logit_std(towers.text, reader_inputs(batch["input_ids"]))


prints = valley_prints


def page(result: ValleyStudy) -> Page:
    """Return the page."""
    return valley_page(result, "Images and text: does the scale of queries and keys matter?")


def _method(config: SearchConfig) -> str:
    return (
        f"A vision transformer and a BERT ({config.layers} block(s) each, width {config.dim}, "
        f"n_K = {head_size(config)}), trained to give an image of a digit and its name the same direction: names in "
        f"{len(NAMES)} languages, read letter by letter; {config.steps:,} steps of {config.batch} pairs. The loss is "
        "−log of the probability that falls on names of the right digit in the batch, and back from names to images; "
        "accuracy asks for the nearest of all fifty names. Images are held out, by other writers. Tickets keep "
        f"{config.kept:.0%} of every tensor by edge-popup and train nothing else. Dense training has a third of the "
        "learning rate, falling to zero."
    )
