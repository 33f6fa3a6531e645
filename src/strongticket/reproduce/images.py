"""The valley of Figure 8 for a vision transformer on scikit-learn's digits.

The recipe is the paper's: edge-popup, normal weights, 30 % of every tensor kept.
"""

from strongticket.reproduce.valley import ValleySettings, valley_study
from strongticket.searching import preset

LAPTOP = preset(
    "images", dim=32, heads=2, layers=2, batch=32, micro_batch=32, steps=300, warmup=30, kept=0.3, scope="tensor",
    method="edge-popup", law="normal", activation="relu", std=0.1, embedding_std=0.3, lr=6e-3, lr_end=6e-4,
)  # fmt: skip
PAPER = LAPTOP.changed(
    dim=192, heads=3, layers=12, batch=256, micro_batch=256, steps=20_000, lr=1e-3, lr_end=1e-4
)
# Factors of √2.
LAPTOP_SCALES = (1.0, 2**0.5, 2.0, 2**1.5, 4.0, 2**2.5)
PAPER_SCALES = tuple(2 ** (k / 2) for k in range(-2, 7))

STUDY = valley_study(
    "Does scaling queries and keys help tickets of a vision transformer?",
    {
        "quick": ValleySettings(LAPTOP, (1.0, 2.0, 4.0, 8.0), 1),
        "laptop": ValleySettings(LAPTOP, LAPTOP_SCALES, 3),
        "paper": ValleySettings(PAPER, PAPER_SCALES, 3),
    },
)
