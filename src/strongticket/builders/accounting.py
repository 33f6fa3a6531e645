"""What a built ticket says of itself besides its network: how far its numbers are from the target's, its tokenizer."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from strongticket.files import JsonObject
from strongticket.ticket import packed_size


def errors_of(made: np.ndarray, target: np.ndarray) -> JsonObject:
    """Errors of a part of a tensor, to be added up."""
    wanted = target.astype(np.float64)
    error = made.astype(np.float64) - wanted
    return {
        "numbers": target.size,
        "largest": float(np.abs(error).max(initial=0.0)),
        "squared": float(np.square(error).sum()),
        "target": float(np.square(wanted).sum()),
    }


def errors_metadata(parts: Mapping[str, Sequence[JsonObject]]) -> JsonObject:
    """For every tensor the largest error of a number, and the root mean square error relative to its own.

    relative_error is the root mean square of the latter over all numbers, each tensor in units of its own.
    """
    errors, total, numbers = {}, 0.0, 0
    for name, found in parts.items():
        squared, target = (math.fsum(part[key] for part in found) for key in ("squared", "target"))
        relative = squared / target if target else 0.0
        errors[name] = [_rounded(max(part["largest"] for part in found)), _rounded(relative**0.5)]
        size = sum(part["numbers"] for part in found)
        total, numbers = total + relative * size, numbers + size
    return {"errors": errors, "relative_error": _rounded((total / numbers) ** 0.5)}


def tokenizer_metadata(tokenizer: dict[str, str]) -> JsonObject:
    """The tokenizer, stored with the network as beside a model's weights, and its share of the file."""
    if not tokenizer:
        return {}
    return {"tokenizer": tokenizer, "tokenizer_bytes": packed_size(tokenizer)}


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
