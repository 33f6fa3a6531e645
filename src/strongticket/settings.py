"""Settings that are checked by their annotations. Loads no NumPy."""

import math
import numbers
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from strongticket.errors import StrongTicketError

# NumPy's float64 scalars are floats; an integer is accepted where a real number is meant.
Real = float | int


@dataclass(frozen=True)
class Range:
    """Bounds of a number: `least` and `most` belong to the range, `above` and `below` do not."""

    least: Real = -math.inf
    above: Real = -math.inf
    most: Real = math.inf
    below: Real = math.inf

    def __contains__(self, value: Real) -> bool:
        return self.least <= value <= self.most and self.above < value < self.below

    def __str__(self) -> str:
        words = {"of at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{word} {bound}" for word, bound in words.items() if math.isfinite(bound))


Count = Annotated[int, Range(least=1)]
Size = Annotated[int, Range(least=0)]
Positive = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(least=0)]
Fraction = Annotated[float, Range(least=0, below=1)]
_IN_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a string"}


@dataclass(frozen=True)
class Settings:
    """Base of frozen dataclasses of settings: checks every value against the annotation of its field.

    Annotations are int, float, bool, str, Literal, tuple[kind, ...], Annotated[kind, Range(...)] and unions of them.
    A list, as JSON and TOML have it, becomes a tuple, and a number of NumPy one of Python.
    """

    def __post_init__(self) -> None:
        kinds = get_type_hints(type(self), include_extras=True)
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, list):
                value = tuple(value)
            elif isinstance(value, numbers.Real) and not isinstance(value, bool):
                value = int(value) if isinstance(value, numbers.Integral) else float(value)
            object.__setattr__(self, setting.name, value)
            check(kinds[setting.name], **{setting.name: value})


def is_whole(value: object) -> bool:
    """Whether it is an integer, NumPy's included; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check(kind: Any, **values: object) -> None:
    """Raise unless each named value is of the kind that an annotation names."""
    for name, value in values.items():
        if not fits(value, kind):
            raise StrongTicketError(f"{name}={value!r}: expected {_in_words(kind)}")


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of the kind that an annotation of Settings names."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return fits(value, parts[0]) and value in parts[1]
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(each, parts[0]) for each in value)
    if parts:  # a union
        return any(fits(value, part) for part in parts)
    if kind is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_whole(value) if kind is int else isinstance(value, kind)


def _in_words(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return f"{_in_words(parts[0])} {parts[1]}"
    if origin is Literal:
        return f"one of {', '.join(map(str, parts))}"
    if origin is tuple:
        return f"a tuple of {_in_words(parts[0]).removeprefix('a ')}s"
    if parts:
        return " or ".join(map(_in_words, parts))
    return "None" if kind is type(None) else _IN_WORDS.get(kind, kind.__name__)
