"""Laws of random weights, each with one number: its scale."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from strongticket.errors import StrongTicketError

_TINY = float(np.finfo(np.float32).tiny)
_HUGE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class _Law:
    """What all laws share.

    Attributes:
        name: in ticket files.
        limits: of the scale, so that no weight over- or underflows.
    """

    name: ClassVar[str]
    limits: ClassVar[tuple[float, float]] = (_TINY, _HUGE)

    @property
    def scale(self) -> float:
        return float(getattr(self, fields(self)[0].name))

    def __post_init__(self) -> None:
        name = fields(self)[0].name
        value = getattr(self, name)
        what, (low, high) = f"{type(self).__name__}.{name}", self.limits
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
            raise StrongTicketError(f"{what} must be a number, got {value!r}")
        if not low <= value <= high:  # NaN fails too
            raise StrongTicketError(
                f"{what} must be from {low:.3g} to {high:.3g} (float32 weights), got {value!r}"
            )
        object.__setattr__(self, name, float(value))


@dataclass(frozen=True)
class Uniform(_Law):
    """U[-half_width, half_width] on 2^24 equal steps, symmetric, never 0.

    >>> bool(abs(draw(0, "w", (3, 4), Uniform(0.5))).max() <= 0.5)
    True
    """

    half_width: float
    name: ClassVar[str] = "uniform"
    # The smallest step, half_width * 2^-24, must still be a normal float32: nothing may vanish to 0.
    limits: ClassVar[tuple[float, float]] = (_TINY * 2.0**24, _HUGE)


@dataclass(frozen=True)
class Normal(_Law):
    """N(0, std^2) by inverting the normal distribution function at 2^32 equal steps; |weight| < 6.34 std.

    >>> draw(0, "w", (3, 4), Normal(0.02)).dtype
    dtype('float32')
    """

    std: float
    name: ClassVar[str] = "normal"
    limits: ClassVar[tuple[float, float]] = (_TINY * 2.0**32, _HUGE / 8)


@dataclass(frozen=True)
class SignedConstant(_Law):
    """magnitude or -magnitude, by one random bit: the sign that Normal and Uniform give the same weight.

    >>> sorted(set(draw(0, "w", (3, 4), SignedConstant(0.5)).reshape(-1).tolist()))
    [-0.5, 0.5]
    """

    magnitude: float
    name: ClassVar[str] = "signed"


@dataclass(frozen=True)
class Hadamard(_Law):
    """magnitude or -magnitude, by a Hadamard matrix whose rows and columns have random signs.

    The tensor is read as a matrix (first axis × all others). Its shorter side is cut from Hadamard's matrix of
    the next power of two, n; along its longer side such blocks of n follow each other, each with signs of its
    own. If the shorter side is a power of two and divides the longer one, its vectors are exactly orthogonal.

    >>> w = draw(0, "w", (4, 8), Hadamard(1.0))
    >>> (w @ w.T).tolist() == (8 * np.eye(4)).tolist()
    True
    """

    magnitude: float
    name: ClassVar[str] = "hadamard"


@dataclass(frozen=True)
class Constant(_Law):
    """Every weight is `value`: nothing is random. With value 1 a masked tensor is the mask itself, as numbers.

    >>> draw(0, "w", (2,), Constant(1.0), mask=np.array([True, False])).tolist()
    [1.0, 0.0]
    """

    value: float
    name: ClassVar[str] = "constant"


Law = Uniform | Normal | SignedConstant | Hadamard | Constant
LAWS: dict[str, type[Law]] = {law.name: law for law in (Uniform, Normal, SignedConstant, Hadamard, Constant)}


def law_named(name: object, scale: float) -> Law:
    """The law that a file gives by its `name` and its `scale`.

    >>> law_named("normal", 0.02)
    Normal(std=0.02)
    """
    if not isinstance(name, str) or name not in LAWS:
        raise StrongTicketError(f"unknown law {name!r}: expected {' or '.join(LAWS)}")
    return LAWS[name](scale)
