"""The parts of a model's ticket: coded by whoever is free, kept in files until the ticket is written."""

import base64
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from strongticket.files import JsonObject
from strongticket.work.store import Store, run_pieces

Progress = Callable[[int, int], None]  # (numbers done, numbers in all)
PartOf = tuple[str, int]  # a tensor, and what its parts are sorted by


@dataclass(frozen=True)
class Coder:
    """Who codes, and where finished pieces are kept; for the first three see builders.model."""

    workers: int | None
    cluster: str | None
    progress: Progress | None
    store: Store
    numbers: int  # of the model

    def code(
        self,
        function: Callable[..., list[JsonObject]],
        pieces: Iterable[tuple[list[PartOf], JsonObject, tuple[Any, ...]]],
        *,
        threads: bool = False,
    ) -> dict[str, list[JsonObject]]:
        """For each tensor what is known of its parts; their bytes stay in the store.

        Args:
            function: makes `coded_part`s, those of one piece.
            pieces: what the parts belong to, settings that determine them, and the arguments of `function`.
            threads: as in work.processes.
        """
        found: dict[str, dict[int, JsonObject]] = {}
        done = 0
        how: Any = dict(workers=self.workers, cluster=self.cluster, threads=threads)
        for owners, path, parts in run_pieces(function, pieces, self.store, **how):
            for place, ((tensor, number), part) in enumerate(zip(owners, parts, strict=True)):
                known = {name: value for name, value in part.items() if name != "data"}
                found.setdefault(tensor, {})[number] = known | {"place": (path, place)}
                done += part["numbers"]
            if self.progress is not None:
                self.progress(done, self.numbers)
        return {
            tensor: [parts[number] for number in sorted(parts)] for tensor, parts in sorted(found.items())
        }

    def data(self, coded: Mapping[str, Sequence[JsonObject]]) -> Iterator[bytes]:
        """The bytes of these parts in their order, one piece in memory at a time."""
        read: Path | None = None
        piece: list[JsonObject] = []
        for part in chain.from_iterable(coded.values()):
            path, place = part["place"]
            if path != read:
                read, (piece,) = path, self.store.read(path)
            yield base64.b64decode(piece[place]["data"])


def coded_part(data: bytes, made: np.ndarray, target: np.ndarray, **known: Any) -> JsonObject:
    """A part of a tensor as JSON has it, with its errors, to be added up."""
    wanted = target.astype(np.float64)
    error = made.astype(np.float64) - wanted
    return {
        "data": base64.b64encode(data).decode("ascii"),
        "numbers": target.size,
        "largest": float(np.abs(error).max(initial=0.0)),
        "squared": float(np.square(error).sum()),
        "target": float(np.square(wanted).sum()),
        **known,
    }


def errors_metadata(coded: Mapping[str, Sequence[JsonObject]]) -> JsonObject:
    """For every tensor the largest error of a number, and the root mean square error relative to its own.

    relative_error is the root mean square of the latter over all numbers, each tensor in units of its own.
    """
    errors, total, numbers = {}, 0.0, 0
    for name, parts in coded.items():
        squared, target = (math.fsum(part[key] for part in parts) for key in ("squared", "target"))
        relative = squared / target if target else 0.0
        errors[name] = [_rounded(max(part["largest"] for part in parts)), _rounded(relative**0.5)]
        size = sum(part["numbers"] for part in parts)
        total, numbers = total + relative * size, numbers + size
    return {"errors": errors, "relative_error": _rounded((total / numbers) ** 0.5)}


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
