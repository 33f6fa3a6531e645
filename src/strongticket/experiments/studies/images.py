"""Does scaling queries and keys help tickets for images? The valley of Figure 8 and the comparison of Figure 7
for a vision transformer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from strongticket.experiments.driver import Run
from strongticket.experiments.tasks.language import head_size, searches
from strongticket.experiments.tasks.valley_study import (
    Scale,
    ValleyStudy,
    measure_valley,
    valley_page,
    valley_prints,
)
from strongticket.report import Page
from strongticket.searching import SearchConfig, preset

# The paper's recipe (edge-popup, normal weights, 30 % of every tensor) on scikit-learn's digits.
_LAPTOP = preset(
    "images", dim=32, heads=2, layers=2, batch=32, micro_batch=32, steps=300, warmup=30, kept=0.3, scope="tensor",
    method="edge-popup", law="normal", activation="relu", std=0.1, embedding_std=0.3, lr=6e-3, lr_end=6e-4,
)  # fmt: skip
SCALES = {
    "laptop": Scale(_LAPTOP, (1.0, 2**0.5, 2.0, 2**1.5, 4.0, 2**2.5), 3),
    "paper": Scale(
        replace(
            _LAPTOP,
            dim=192,
            heads=3,
            layers=12,
            batch=256,
            micro_batch=256,
            steps=20_000,
            lr=1e-3,
            lr_end=1e-4,
        ),
        tuple(2 ** (k / 2) for k in range(-2, 7)),
        3,
    ),
    "test": Scale(replace(_LAPTOP, dim=8, layers=1, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 2),
}


def measure(run: Run) -> ValleyStudy:
    """Search at every scale with every seed, and train the same networks."""
    scale = SCALES[run.options.scale]
    return measure_valley("images", _method(scale.config), scale, run.options.seed, partial(searches, run))


prints = valley_prints


def page(result: ValleyStudy) -> Page:
    """Return the page."""
    return valley_page(result, "Images: does the scale of queries and keys matter?")


def _method(config: SearchConfig) -> str:
    return (
        f"A vision transformer ({config.layers} blocks, width {config.dim}, n_K = {head_size(config)}) on "
        f"`{config.data}` images cut into patches of {config.patch} × {config.patch}; {config.steps:,} steps of "
        f"{config.batch} images. Tickets keep {config.kept:.0%} of every tensor by edge-popup, the class token and "
        "the positions included. Dense training has a third of the learning rate, falling to zero."
    )
