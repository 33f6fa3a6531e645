"""Before a build: how wide the source must be, what error to expect, what it will cost."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strongticket import checks, theory
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT, solve
from strongticket.theory.constants import Construction
from strongticket.ticket import masks

# Measured for d = 16 … 64: moving units between rows solves everything about ten times, and every problem costs
# some bookkeeping and its share of the certificate.
PASSES, OVERHEAD = 10, 60e-6  # seconds
FILE_OVERHEAD = 1000  # bytes of a ticket besides its masks


@dataclass(frozen=True)
class Layer:
    """One product (`heads` of them) that a source must make: rows × columns, n = rows·n_prime hidden units."""

    name: str
    construction: Construction
    heads: int
    rows: int
    columns: int
    n_prime: int

    @property
    def width(self) -> int:
        return self.rows * self.n_prime

    @property
    def problems(self) -> int:
        signs = 2 if self.construction == "relu" else 1
        return self.heads * self.rows * self.columns * signs

    @property
    def values(self) -> int:
        """Of one subset-sum problem: no row is given more than can be solved exactly. Half of a ReLU pair's
        units serve each sign.
        """
        return max(1, min(self.n_prime // (2 if self.construction == "relu" else 1), MAX_EXACT))

    @property
    def weights(self) -> int:
        return self.heads * self.width * (self.rows + self.columns)

    @property
    def error_norm(self) -> float:
        """Spectral norm to expect of the error: many small entries, or one large one."""
        signs = 2 if self.construction == "relu" else 1
        dim = min(self.rows, self.columns)
        expected = theory.predicted_error(self.values * signs, dim=dim, construction=self.construction)
        spread = 1.48 * expected.median * (math.sqrt(self.rows) + math.sqrt(self.columns))
        return max(expected.maximum, spread)

    @property
    def mask_bits(self) -> float:
        """A unit keeps one of `rows` weights, and about half of its `columns` others."""
        return self.heads * self.width * (masks.entropy(self.rows, 1) + self.columns)


@dataclass(frozen=True)
class Size:
    """A source and its price. error: what to expect of the output, the blocks' own errors added up."""

    layers: tuple[Layer, ...]
    error: float
    seconds: float

    @property
    def problems(self) -> int:
        return sum(layer.problems for layer in self.layers)

    @property
    def weights(self) -> int:
        return sum(layer.weights for layer in self.layers)

    @property
    def file_bytes(self) -> int:
        return FILE_OVERHEAD + math.ceil(sum(layer.mask_bits for layer in self.layers) / 8)

    @property
    def memory_bytes(self) -> int:
        """On top of the program: weights and masks, and the subsets of the largest product, old and new."""
        largest = max(layer.problems * (2 * layer.values + 32) for layer in self.layers)
        return 10 * self.weights + largest


@dataclass(frozen=True)
class Architecture:
    """One attention layer (blocks = 0), or blocks of attention and a feed-forward network of `layers` layers.

    norm_floor: in pre-norm blocks, the least length of what a norm reads; None for blocks without norms
    """

    dim: int
    dim_out: int
    heads: int
    blocks: int
    layers: int
    radius: float
    norm_floor: float | None = None

    @property
    def reads(self) -> float:
        """The largest norm of what a sublayer reads: behind a norm always √d."""
        return self.radius if self.norm_floor is None else math.sqrt(self.dim)

    def source(self, n_primes: Sequence[tuple[int, int]]) -> tuple[Layer, ...]:
        """n_primes: of query-key and value-output; in blocks, one pair each, of attention and feed-forward."""
        if not self.blocks:
            key, value = n_primes[0]
            return self._attention("", key, value)
        found: list[Layer] = []
        for block, (attention, forward) in enumerate(n_primes):
            found += self._attention(f"blocks.{block}.attention.", attention, attention)
            names = [f"blocks.{block}.feed_forward.layers.{i}" for i in range(self.layers)]
            found += [Layer(name, "relu", 1, self.dim, self.dim, forward) for name in names]
        return tuple(found)

    def error(self, source: Sequence[Layer]) -> float:
        """The certificate's formula on the errors to expect, for matrices of norm 1: logits move by δ, so
        softmax by 2·tanh(δ/2). In blocks every part reads inputs within the radius, and errors add up.
        """
        total = 0.0
        for layer in source:
            own = self.reads * layer.error_norm
            if layer.name.endswith("query_key"):
                own = self.reads * 2 * math.tanh(self.reads * own / 2)
            total += layer.heads * own
        return total

    def _attention(self, prefix: str, key: int, value: int) -> tuple[Layer, Layer]:
        return (
            Layer(f"{prefix}query_key", "product", self.heads, self.dim, self.dim, key),
            Layer(
                f"{prefix}value_output",
                "product",
                self.heads,
                min(self.dim, self.dim_out),  # the smaller side is structured
                max(self.dim, self.dim_out),
                value,
            ),
        )


@dataclass(frozen=True)
class Plan:
    """Three answers to the question how wide a source must be.

    theorem: which one
    constants: the measured C of products and of ReLU pairs, for the worst targets known
    architecture: what is planned
    by_theorem: the widths that the theorem asks for with the measured C; it promises an output error of at most
        epsilon with probability 1 − epsilon
    in_practice: the narrowest source expected to reach epsilon, judging by measured errors of random targets;
        if none is, the widest with exact sums (see its error)
    lower_bound: the width n_V of value and output below which no source can do it, by counting masks; None
        for blocks, where attention and feed-forward network may stand in for each other
    """

    theorem: str
    constants: dict[str, float]
    architecture: Architecture
    by_theorem: Size
    in_practice: Size
    lower_bound: float | None


def plan(
    epsilon: float,
    dim: int,
    *,
    dim_out: int | None = None,
    heads: int = 1,
    blocks: int = 0,
    layers: int = 1,
    radius: float | None = None,
    norm_floor: float | None = None,
) -> Plan:
    """Widths and costs for one attention layer (blocks=0: Theorem 3) or a transformer (Theorems 11 and 14).

    Args:
        epsilon: the output error wanted, between 0 and 1.
        dim: width d₁ of the input.
        dim_out: width d₂ of one attention's output; by default dim.
        heads: attention heads H.
        blocks: transformer blocks B; 0 for one attention alone.
        layers: of each block's feed-forward network.
        radius: largest ‖x_i‖; by default √dim.
        norm_floor: for pre-norm blocks: the least length of what a norm reads.
    """
    dim_out = dim if dim_out is None else dim_out
    checks.whole(dim=dim, dim_out=dim_out)
    if blocks and dim_out != dim:
        raise StrongTicketError(
            f"dim_out={dim_out} but dim={dim}: a block writes what it reads", hint="Leave dim_out out."
        )
    if norm_floor is not None and not blocks:
        raise StrongTicketError("norm_floor is for blocks with norms", hint="Give blocks too.")
    radius = math.sqrt(max(dim, dim_out)) if radius is None else radius
    architecture = Architecture(dim, dim_out, heads, blocks, layers, radius, norm_floor)
    constants: dict[str, float] = {
        "product": theory.measured_constant("product"),
        "relu": theory.measured_constant("relu"),
    }
    theorem, n_primes = _by_theorem(epsilon, architecture, constants)
    clock = Clock()
    return Plan(
        theorem,
        constants,
        architecture,
        _size(architecture, n_primes, clock),
        _size(architecture, _in_practice(epsilon, architecture), clock),
        None if blocks else theory.value_lower_bound(epsilon, dim, dim_out, heads, radius),
    )


class Clock:
    """Seconds that one subset-sum problem takes here, measured once for each number of values."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def __call__(self, values: int) -> float:
        if values not in self._seconds:
            rng = np.random.default_rng(0)
            problems = 256 if values <= 24 else 4  # a few milliseconds either way
            x, y = rng.uniform(-1, 1, (problems, values)), rng.uniform(-1, 1, problems)
            self._seconds[values] = min(_seconds(x, y) for _ in range(3)) / problems
        return self._seconds[values]


def _by_theorem(
    epsilon: float, a: Architecture, constants: dict[str, float]
) -> tuple[str, list[tuple[int, int]]]:
    if not a.blocks:
        found = theory.attention_widths(
            epsilon,
            a.dim,
            a.dim_out,
            a.heads,
            a.radius,
            constant=constants["product"],
            smaller_side=True,
        )
        return "Theorem 3", [(found.n_K.n_prime, found.n_V.n_prime)]
    if a.norm_floor is not None:
        attention, forward = (
            theory.prenorm_widths(
                epsilon, a.dim, a.heads, a.norm_floor, a.layers, a.blocks, constant=constants[c]
            )
            for c in ("product", "relu")
        )
        return "Theorem N", [
            (x.n_MHA.n_prime, y.n_FC.n_prime) for x, y in zip(attention, forward, strict=True)
        ]
    attention, forward = (
        theory.transformer_widths(
            epsilon, a.dim, a.heads, a.radius, a.layers, a.blocks, constant=constants[c]
        )
        for c in ("product", "relu")
    )
    pairs = [(x.n_MHA.n_prime, y.n_FC.n_prime) for x, y in zip(attention, forward, strict=True)]
    return "Theorem 11" if a.blocks == 1 else "Theorem 14", pairs


def _in_practice(epsilon: float, a: Architecture) -> list[tuple[int, int]]:
    for n in range(2, MAX_EXACT + 1):
        # A ReLU pair splits its units between the signs.
        n_primes = [(n, 2 * n if a.blocks else n)] * max(a.blocks, 1)
        if a.error(a.source(n_primes)) <= epsilon:
            break
    return n_primes


def _size(architecture: Architecture, n_primes: list[tuple[int, int]], clock: Clock) -> Size:
    source = architecture.source(n_primes)
    seconds = sum(layer.problems * (PASSES * clock(layer.values) + OVERHEAD) for layer in source)
    return Size(source, architecture.error(source), seconds)


def _seconds(values: np.ndarray, targets: np.ndarray) -> float:
    start = time.perf_counter()
    solve(values, targets)
    return time.perf_counter() - start
