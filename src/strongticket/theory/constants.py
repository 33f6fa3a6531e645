"""What was measured: the theorems' constant C, the units that a row needs, and the error to expect of them.

`strongticket reproduce constant` measures all of it; its summary.json, copied here as measured_constant.json, is what
this module reads.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from strongticket import checks
from strongticket.checks import Real
from strongticket.errors import StrongTicketError

Construction = Literal["product", "relu"]
# "entries": uniform on [−1, 1], all that Lemma 7 asks. "norm": Gaussian with ‖W‖ = 1, as Lemma 4 has it. The
# others are the hardest known: entries as large as Lemma 7 allows, where a row's units may not reach.
Targets = Literal["entries", "norm", "ones", "signs", "identity"]
EXPECTED: tuple[Targets, ...] = ("entries", "norm")  # of which the error to expect is measured too
TABLE = "measured_constant.json"


@dataclass(frozen=True)
class PredictedError:
    """Median error of an entry, and of the largest one, of a square matrix built with some units for each row."""

    median: float
    maximum: float


def measured_constant(construction: Construction = "product", targets: Targets | None = None) -> float:
    """The smallest C with which n′ ≥ C·log(…) holds in every cell measured.

    Args:
        construction: "product" (Lemma 7) or "relu" (Lemma 2).
        targets: the kind of target; None takes the worst of all kinds, which is as near to the theorems' "for any
            target" as measuring comes.
    """
    return max(float(section["constant"]) for section in _sections(construction, targets))


def measured_units(log_argument: Real, construction: Construction = "product") -> float:
    """Units for a row, not rounded: the line a·log(…) + b above every cell measured, below C·log(…) for large ones.

    Args:
        log_argument: what the theorems multiply by C.
        construction: "product" (Lemma 7) or "relu" (Lemma 2).
    """
    line = measurements()["lines"][construction]
    return float(line["slope"] * log_argument + line["offset"])


def predicted_error(
    per_row: int, *, dim: int = 16, construction: Construction = "product", targets: Targets = "norm"
) -> PredictedError:
    """What to expect of the paper's assignment, read off the measured table (log-linear between and beyond).

    Args:
        per_row: units for each row; for a ReLU pair those of both signs together.
        dim: rows and columns of the matrix; one that was not measured is read as the next smaller one that was.
        construction: "product" (Lemma 7) or "relu" (Lemma 2).
        targets: the kind of target.
    """
    checks.whole(per_row=per_row, dim=dim)
    table = _sections(construction, targets)[0]["errors"]
    dims = {row["dim"] for row in table}
    nearest = max((known for known in dims if known <= dim), default=min(dims))
    rows = [row for row in table if row["dim"] == nearest]
    known = [row["per_row"] for row in rows]
    median, maximum = (
        _log_linear(per_row, known, [row[name] for row in rows]) for name in ("median", "maximum")
    )
    return PredictedError(median, maximum)


@cache  # a plan asks for hundreds of its numbers
def measurements() -> dict[str, Any]:
    """The numbers that were measured: "lines" by construction, "sections" for each construction and kind of target."""
    summary: dict[str, Any] = json.loads(files("strongticket.theory").joinpath(TABLE).read_text())
    numbers: dict[str, Any] = summary["numbers"]
    return numbers


def _log_linear(x: Real, known: list[int], values: list[float]) -> float:
    logs = np.log(values)
    place = int(np.clip(np.searchsorted(known, x) - 1, 0, len(known) - 2))
    slope = (logs[place + 1] - logs[place]) / (known[place + 1] - known[place])
    return float(np.exp(logs[place] + slope * (x - known[place])))


def _sections(construction: Construction, targets: Targets | None) -> list[dict[str, Any]]:
    known = {(s["construction"], s["targets"]): s for s in measurements()["sections"]}
    found = [s for (made, kind), s in known.items() if made == construction and targets in (None, kind)]
    if not found:
        raise StrongTicketError(
            f"construction={construction!r}, targets={targets!r}: expected one of {sorted(known)}"
        )
    return found
