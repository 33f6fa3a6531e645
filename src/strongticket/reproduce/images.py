"""The valley of Figure 8 for a vision transformer on scikit-learn's digits.

The recipe is the paper's: edge-popup, normal weights, 30 % of every tensor kept.
"""

from strongticket.reproduce.valley import valley_study
from strongticket.searching import preset

LAPTOP = preset(
    "images", dim=32, heads=2, layers=2, batch=32, micro_batch=32, steps=300, warmup=30, kept=0.3, scope="tensor",
    method="edge-popup", law="normal", activation="relu", std=0.1, embedding_std=0.3, lr=6e-3, lr_end=6e-4,
)  # fmt: skip
PAPER = LAPTOP.changed(
    dim=192, heads=3, layers=12, batch=256, micro_batch=256, steps=20_000, lr=1e-3, lr_end=1e-4
)
STUDY = valley_study("Does scaling queries and keys help tickets of a vision transformer?", LAPTOP, PAPER)
