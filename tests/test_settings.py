"""Settings: each value fits its annotation, or an error says which does not and what was expected."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np
import pytest

from strongticket.errors import StrongTicketError
from strongticket.settings import Count, Positive, Range, Settings


@dataclass(frozen=True)
class Example(Settings):
    steps: Count = 1
    kept: Annotated[float, Range(above=0, most=1)] = 0.5
    scale: Literal["paper"] | Positive | None = "paper"
    parts: tuple[str, ...] = ()
    fast: bool = False


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"steps": 0}, "steps=0: expected a whole number of at least 1"),
        ({"steps": True}, "steps=True: expected a whole number"),
        ({"steps": 2.0}, r"steps=2\.0: expected a whole number"),
        ({"kept": 0}, "kept=0: expected a number above 0 and at most 1"),
        ({"kept": float("nan")}, "kept=nan: expected a number"),
        ({"kept": "0.3"}, r"kept='0\.3': expected a number"),
        ({"scale": "big"}, "scale='big': expected one of paper or a number above 0 or None"),
        ({"scale": float("inf")}, "scale=inf"),
        ({"parts": "norm"}, "parts='norm': expected a tuple of strings"),
        ({"parts": (1,)}, r"parts=\(1,\)"),
        ({"fast": 1}, "fast=1: expected True or False"),
    ],
)
def test_what_does_not_fit_is_named(change, expected):
    with pytest.raises(StrongTicketError, match=expected):
        Example(**change)


def test_what_json_and_numpy_hold_becomes_pythons_own():
    found = Example(steps=np.int64(3), kept=np.float32(0.5), scale=None, parts=["norm"])
    assert found == Example(steps=3, kept=0.5, scale=None, parts=("norm",))
    assert json.loads(json.dumps(asdict(found)))["steps"] == 3
    assert Example(kept=1, scale=2).scale == 2
