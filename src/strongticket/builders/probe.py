"""Fitting a linear map to what it really reads: ridge regression, kept only if it helps samples held out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float64

from strongticket.errors import StrongTicketError

RIDGE = 1e-3  # relative to the mean square of the features

Built = TypeVar("Built")


@dataclass(frozen=True)
class Probe:
    """What a linear map of the source reads, and what it should give there."""

    features: Float64[np.ndarray, "samples inputs"]
    desired: Float64[np.ndarray, "samples outputs"]
    held_out: Bool[np.ndarray, " samples"]

    def refit(self, weight: Float64[np.ndarray, "inputs outputs"]) -> Float64[np.ndarray, "inputs outputs"]:
        """The weight nearest to the given one that gives what is desired: min ‖FΔ − rest‖² + λ‖Δ‖²."""
        features = self.features[~self.held_out]
        rest = self.desired[~self.held_out] - features @ weight
        gram = features.T @ features
        ridge = RIDGE * max(np.trace(gram) / len(gram), np.finfo(float).tiny)
        return weight + np.linalg.solve(gram + ridge * np.eye(len(gram)), features.T @ rest)

    def choose(
        self,
        weight: Float64[np.ndarray, "inputs outputs"],
        build: Callable[[np.ndarray], Built],
        run: Callable[[Built, np.ndarray], np.ndarray],
        activation: Callable[[np.ndarray], np.ndarray] = lambda outputs: outputs,
    ) -> Built:
        """Build the plain weight and the refitted one; keep the one that is closer to what is desired once pruned."""
        plain, fitted = build(weight), self.refit(weight)
        if np.abs(fitted - weight).max() <= 1e-9 * np.abs(weight).max():
            return plain  # it reads what the target reads: nothing to fit
        better = build(fitted)
        wanted = activation(self.desired[self.held_out])

        def distance(built: Built) -> float:
            return float(np.square(activation(run(built, self.features[self.held_out])) - wanted).sum())

        return better if distance(better) < distance(plain) else plain


def check_fit(fit: str, probe: torch.Tensor | None) -> None:
    """Raise unless the probe inputs that `fit` needs are given, finite and enough to hold some out."""
    if (fit == "composition") != (probe is not None):
        raise StrongTicketError(
            "fit='composition' and probe= belong together: pass both (the target's usual inputs), or neither"
        )
    if probe is not None:
        if len(probe) < 2:
            raise StrongTicketError(f"probe has {len(probe)} samples: expected at least 2, half are held out")
        if not torch.isfinite(probe).all():
            raise StrongTicketError("probe has NaN or infinite entries: expected finite inputs")
