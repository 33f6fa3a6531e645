"""(seed, tensor name, shape, law) -> float32 weights, the same bits on every machine.

Weight i of a tensor is a function of the key (a hash of version, seed and name) and of i alone: the number of
threads, the slice asked for and the rows that follow change nothing. The recipe is in docs/ticket-format.md.
"""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strongticket.checks import is_whole
from strongticket.compiled import njit
from strongticket.errors import StrongTicketError
from strongticket.workers import cores

GENERATOR_VERSION: int = 1

_PER_BLOCK = 8  # one Philox 4x64 counter value gives four 64-bit words: eight weights
_CHUNK = 1 << 17  # weights a thread makes at a time: fits the cache, a multiple of _PER_BLOCK
_TINY = float(np.finfo(np.float32).tiny)
_HUGE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Uniform:
    """U[-half_width, half_width] on 2^24 equal steps, symmetric, never 0.

    >>> bool(abs(draw(0, "w", (3, 4), Uniform(0.5))).max() <= 0.5)
    True
    """

    half_width: float
    name: ClassVar[str] = "uniform"

    @property
    def scale(self) -> float:
        return self.half_width

    def __post_init__(self) -> None:
        # The smallest step, half_width * 2^-24, must still be a normal float32: nothing may vanish to 0.
        half_width = _checked_scale("Uniform.half_width", self.half_width, _TINY * 2.0**24, _HUGE)
        object.__setattr__(self, "half_width", half_width)


@dataclass(frozen=True)
class Normal:
    """N(0, std^2) by inverting the normal distribution function at 2^32 equal steps; |weight| < 6.34 std.

    >>> draw(0, "w", (3, 4), Normal(0.02)).dtype
    dtype('float32')
    """

    std: float
    name: ClassVar[str] = "normal"

    @property
    def scale(self) -> float:
        return self.std

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", _checked_scale("Normal.std", self.std, _TINY * 2.0**32, _HUGE / 8))


@dataclass(frozen=True)
class SignedConstant:
    """magnitude or -magnitude, by one random bit: the sign that Normal and Uniform give the same weight.

    >>> sorted(set(draw(0, "w", (3, 4), SignedConstant(0.5)).reshape(-1).tolist()))
    [-0.5, 0.5]
    """

    magnitude: float
    name: ClassVar[str] = "signed"

    @property
    def scale(self) -> float:
        return self.magnitude

    def __post_init__(self) -> None:
        magnitude = _checked_scale("SignedConstant.magnitude", self.magnitude, _TINY, _HUGE)
        object.__setattr__(self, "magnitude", magnitude)


@dataclass(frozen=True)
class Hadamard:
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

    @property
    def scale(self) -> float:
        return self.magnitude

    def __post_init__(self) -> None:
        magnitude = _checked_scale("Hadamard.magnitude", self.magnitude, _TINY, _HUGE)
        object.__setattr__(self, "magnitude", magnitude)


@dataclass(frozen=True)
class Constant:
    """Every weight is `value`: nothing is random. With value 1 a masked tensor is the mask itself, as numbers.

    >>> draw(0, "w", (2,), Constant(1.0), mask=np.array([True, False])).tolist()
    [1.0, 0.0]
    """

    value: float
    name: ClassVar[str] = "constant"

    @property
    def scale(self) -> float:
        return self.value

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _checked_scale("Constant.value", self.value, _TINY, _HUGE))


@dataclass(frozen=True)
class OneSided:
    """U[largest/2, largest) on 2^23 equal steps: weights of one sign, so that sums of subsets keep their centre.

    >>> bool(draw(0, "w", (3, 4), OneSided(2.0)).min() >= 1)
    True
    """

    largest: float
    name: ClassVar[str] = "one-sided"

    @property
    def scale(self) -> float:
        return self.largest

    def __post_init__(self) -> None:
        largest = _checked_scale("OneSided.largest", self.largest, _TINY * 2.0**24, _HUGE)
        object.__setattr__(self, "largest", largest)


Law = Uniform | Normal | SignedConstant | Hadamard | Constant | OneSided
_LAWS: dict[str, type[Law]] = {
    law.name: law for law in (Uniform, Normal, SignedConstant, Hadamard, Constant, OneSided)
}


def law_named(name: object, scale: float) -> Law:
    """The law that a file names.

    >>> law_named("normal", 0.02)
    Normal(std=0.02)
    """
    if not isinstance(name, str) or name not in _LAWS:
        raise StrongTicketError(f"unknown law {name!r}: expected {' or '.join(_LAWS)}")
    return _LAWS[name](scale)


def draw(
    seed: int,
    name: str,
    shape: tuple[int, ...],
    law: Law,
    *,
    rows: slice | None = None,
    mask: np.ndarray | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Random weights: float32 of `shape`, C order; with `rows`, only those of the first axis.

    mask: bool of the result's shape; weights where it is False become +0.0

    >>> draw(0, "query", (1000, 4), Uniform(1.0), rows=slice(10, 12)).shape
    (2, 4)
    """
    shape = _checked_shape(shape)
    if not isinstance(law, Law):
        names = ", ".join(each.__name__ for each in _LAWS.values())
        raise StrongTicketError(f"law must be one of {names}, got {law!r}")
    if threads is not None and (not is_whole(threads) or threads < 1):
        raise StrongTicketError(f"threads must be a positive integer or None, got {threads!r}")
    words = key(seed, name)
    whole = shape
    start, shape = _selected(shape, rows)
    if mask is not None and (
        not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != shape
    ):
        raise StrongTicketError(
            f"mask must be a NumPy array of bool of shape {shape}, got {_described(mask)}"
        )
    out = np.empty(shape, np.float32)
    flat = out.reshape(-1)
    keep = None if mask is None else mask.reshape(-1)

    signs = _hadamard_signs(words, whole) if isinstance(law, Hadamard) and flat.size else None

    def fill(first: int) -> None:
        part = flat[first : first + _CHUNK]
        if signs is None:
            _fill(part, words, start + first, law)
        else:
            _hadamard(part, start + first, np.float32(law.scale), *signs)
        if keep is not None:
            apply_mask(part, keep[first : first + _CHUNK])

    chunks = range(0, flat.size, _CHUNK)
    workers = min(threads or cores(), len(chunks))
    if workers <= 1:
        for first in chunks:
            fill(first)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(fill, chunks):
                pass
    return out


def apply_mask(weights: np.ndarray, mask: np.ndarray) -> None:
    """Set the float32 weights that the bool mask drops to +0.0, in place."""
    bits = weights.view(np.uint32)
    np.multiply(bits, mask, out=bits)  # -w * 0.0 would leave -0.0


def key(seed: int, name: str) -> np.ndarray:
    """Philox's 128-bit key for a tensor: two little-endian words of blake2b(version, seed, name)."""
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise StrongTicketError(f"seed must be an integer from 0 to 2**64 - 1, got {seed!r}")
    if not isinstance(name, str):
        raise StrongTicketError(f"name must be a str, got {name!r}")
    try:
        text = name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StrongTicketError(f"name must be valid Unicode, got {name!r}: {error.reason}") from None
    head = GENERATOR_VERSION.to_bytes(4, "little") + int(seed).to_bytes(8, "little")
    digest = hashlib.blake2b(head + text, digest_size=16, person=b"strongticket").digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def _bits(words: np.ndarray, first: int, count: int) -> np.ndarray:
    """Numbers first, first + 1, ... of the stream: each word's two 32-bit halves, the low half first."""
    block, skip = divmod(first, _PER_BLOCK)
    raw = np.random.Philox(key=words, counter=block).random_raw((skip + count + 1) // 2)
    return raw.astype("<u8", copy=False).view("<u4")[skip : skip + count].astype(np.uint32, copy=False)


def _fill(out: np.ndarray, words: np.ndarray, first: int, law: Law) -> None:
    """Weights first, first + 1, ... of a tensor."""
    if isinstance(law, Constant):
        out.fill(law.value)
        return
    bits = _bits(words, first, out.size)
    if isinstance(law, Uniform):
        _uniform(bits, np.float32(law.half_width) * np.float32(2.0**-24), out)
    elif isinstance(law, Normal):
        _normal(bits, law.std, out)
    elif isinstance(law, OneSided):
        _one_sided(bits, np.float32(law.largest) * np.float32(2.0**-24), out)
    else:
        _signed(bits, np.float32(law.scale), out)


def _hadamard_signs(
    words: np.ndarray, shape: tuple[int, ...]
) -> tuple[int, bool, int, np.ndarray, np.ndarray]:
    """(columns, whether rows are the longer side, n, sign bits of the longer side, of each block's shorter side)"""
    rows = shape[0] if len(shape) > 1 else 1
    columns = math.prod(shape) // rows
    longer, shorter = max(rows, columns), min(rows, columns)
    n = 1 << (shorter - 1).bit_length()
    blocks = -(-longer // n)
    top = (_bits(words, 0, longer + blocks * shorter) >> np.uint32(31)).astype(np.int64)
    return columns, rows > columns, n, top[:longer], top[longer:].reshape(blocks, shorter)


# These kernels use only + - * / and sqrt, which IEEE 754 rounds in one way, and no fastmath, without which
# LLVM never fuses a multiply and an add. libm's log and erfinv differ in their last bits between machines.
_kernel = njit(nogil=True, cache=True, error_model="numpy")


@_kernel
def _uniform(bits: np.ndarray, step: np.float32, out: np.ndarray) -> None:
    """Top 24 bits k -> (2k + 1 - 2^24) * step: the integer is exact in float32, the product rounds once."""
    for i in range(bits.size):
        out[i] = np.float32(np.int32((bits[i] >> 7) | 1) - np.int32(1 << 24)) * step


@_kernel
def _one_sided(bits: np.ndarray, step: np.float32, out: np.ndarray) -> None:
    """Top 23 bits k -> (2^23 + k) * step: the integer is exact in float32, the product rounds once."""
    for i in range(bits.size):
        out[i] = np.float32((1 << 23) | (bits[i] >> 9)) * step


@_kernel
def _signed(bits: np.ndarray, magnitude: np.float32, out: np.ndarray) -> None:
    """The top bit: 1 is plus, as in the other laws."""
    for i in range(bits.size):
        out[i] = magnitude if bits[i] >> 31 else -magnitude


@_kernel
def _hadamard(
    out: np.ndarray,
    first: int,
    magnitude: np.float32,
    columns: int,
    is_tall: bool,
    n: int,
    longer: np.ndarray,
    shorter: np.ndarray,
) -> None:
    """Plus if an even number of these is 1: a Hadamard matrix's entry, the longer side's sign, the block's."""
    for i in range(out.size):
        row, column = divmod(first + i, columns)
        long, short = (row, column) if is_tall else (column, row)
        common = (long % n) & short
        parity = longer[long] ^ shorter[long // n, short]
        while common:
            parity ^= 1
            common &= common - 1
        out[i] = -magnitude if parity else magnitude


# Wichura's AS 241 (PPND16): rational approximations of the normal quantile, relative error about 1e-16.
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
_MIDDLE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip
_ATANH = tuple(2.0 / (2 * i + 1) for i in range(11, -1, -1))  # 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...)


@_kernel
def _normal(bits: np.ndarray, std: float, out: np.ndarray) -> None:
    """32 bits k -> quantile at (2k + 1) * 2^-33, times std in float64, rounded once to float32."""
    # The centre's formula for all, then the tails anew: without a branch the compiler takes several at once.
    for i in range(bits.size):
        q = _offset(bits[i])
        out[i] = np.float32(q * _ratio(_CENTRE, 0.180625 - q * q) * std)
    tails, count = np.empty(bits.size, np.int64), 0
    for i in range(bits.size):
        tails[count] = i
        count += abs(_offset(bits[i])) > 0.425
    for i in tails[:count]:
        q = _offset(bits[i])
        r = math.sqrt(-_log(0.5 - abs(q)))
        z = _ratio(_MIDDLE, r - 1.6) if r <= 5.0 else _ratio(_FAR, r - 5.0)
        out[i] = np.float32(math.copysign(z, q) * std)


@_kernel
def _offset(k: np.uint32) -> float:
    """Probability - 1/2, exact."""
    return (float(k) + (0.5 - 2.0**31)) * 2.0**-32


@_kernel
def _log(x: float) -> float:
    """Natural logarithm of 0 < x < 0.1 to about 1 ulp: x = m * 2^e, log m = 2 atanh((m - 1) / (m + 1))."""
    m, exponent = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        exponent -= 1
    s = (m - 1.0) / (m + 1.0)
    return s * _horner(_ATANH, s * s) + exponent * 0.6931471805599453


@_kernel
def _ratio(pair: tuple[tuple[float, ...], tuple[float, ...]], x: float) -> float:
    return _horner(pair[0], x) / _horner(pair[1], x)


@_kernel
def _horner(coefficients: tuple[float, ...], x: float) -> float:
    """Polynomial, the highest power's coefficient first."""
    value = coefficients[0]
    for i in range(1, len(coefficients)):
        value = value * x + coefficients[i]
    return value


def _selected(shape: tuple[int, ...], rows: slice | None) -> tuple[int, tuple[int, ...]]:
    """(flat index of the first weight, shape of the part)."""
    if rows is None:
        return 0, shape
    if not isinstance(rows, slice) or rows.step not in (None, 1):
        raise StrongTicketError(f"rows must be a slice with step 1, got {rows!r}")
    if not shape:
        raise StrongTicketError("rows needs a tensor with at least one axis, the shape is ()")
    first, end, _ = rows.indices(shape[0])
    return first * math.prod(shape[1:]), (max(end - first, 0), *shape[1:])


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(is_whole(size) and size >= 0 for size in shape):
        raise StrongTicketError(f"shape must be a tuple of non-negative integers, got {shape!r}")
    return tuple(int(size) for size in shape)


def _checked_scale(what: str, value: float, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise StrongTicketError(f"{what} must be a number, got {value!r}")
    if not low <= value <= high:  # NaN fails too
        raise StrongTicketError(
            f"{what} must be from {low:.3g} to {high:.3g} (float32 weights), got {value!r}"
        )
    return float(value)


def _described(value: object) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
