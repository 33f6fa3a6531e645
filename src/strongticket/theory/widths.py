"""How wide the theorems ask a random source to be: a whole number of units for each row (n′ in the paper).

Every function takes some of:

    epsilon: ε, the error of the output (of every entry, where a single matrix is built), between 0 and 1
    d1, d2: dimensions of input and output; a block has d₁ at both ends
    heads, layers, blocks: H; L of a feed-forward network; B
    alpha: α, the largest norm of an input
    constant: the theorems' C; None takes the measured line a·log(…) + b in place of C·log(…)

All in logarithms: Theorem 14's arguments overflow any float long before B = 100.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from strongticket import checks
from strongticket.checks import Real
from strongticket.theory import lemmas
from strongticket.theory.constants import Construction, measured_units

# Rounding must not push an exact whole number over the edge.
_EDGE = 1e-9


@dataclass(frozen=True)
class Width:
    """rows·per_row units, the fewest that the inequality allows."""

    per_row: int
    rows: int

    @property
    def width(self) -> int:
        return self.rows * self.per_row


@dataclass(frozen=True)
class AttentionWidths:
    """Widths of Theorem 3: n_K of query and key, n_V of value and output.

    Attributes:
        assumption: whether α ≥ max(√d₁, √d₂) holds.
        failure: what the failure probabilities in its proof add up to; at most ε where the assumption holds.
    """

    n_K: Width
    n_V: Width
    assumption: bool
    failure: float


@dataclass(frozen=True)
class BlockWidths:
    """Widths of a block: n_MHA of its attention, n_FC of its feed-forward network; whether α ≥ √d₁ holds."""

    n_MHA: Width
    n_FC: Width
    assumption: bool


def product_width(
    epsilon: Real, d1: int, d2: int, *, constant: Real | None = None, smaller_side: bool = False
) -> Width:
    """Lemma 4 and 7: n ≥ d₁·C·log(d₁d₂/ε).

    With smaller_side the units serve the smaller side of the product: min(d₁, d₂) in place of the first d₁.
    """
    _check(epsilon, d1=d1, d2=d2)
    rows = min(d1, d2) if smaller_side else d1
    return _width(rows, constant, math.log(d1) + math.log(d2) - math.log(epsilon))


def relu_widths(epsilon: Real, dims: list[int], *, constant: Real | None = None) -> tuple[Width, ...]:
    """Theorem 10: n_l ≥ d_l·C·log(4L·d_l·d_{l+1}/ε) for each layer of a network with these dimensions."""
    _check(epsilon, **{f"dims[{i}]": dim for i, dim in enumerate(dims)}, layers=len(dims) - 1)
    first = math.log(4 * (len(dims) - 1)) - math.log(epsilon)
    return tuple(_width(a, constant, first + math.log(a) + math.log(b), "relu") for a, b in pairwise(dims))


def relu_layer_width(epsilon: Real, d1: int, d2: int, *, constant: Real | None = None) -> Width:
    """Lemma 2, for a single layer: n ≥ d₁·C·log(2d₁d₂/ε)."""
    _check(epsilon, d1=d1, d2=d2)
    return _width(d1, constant, math.log(2) + math.log(d1) + math.log(d2) - math.log(epsilon), "relu")


def attention_widths(
    epsilon: Real,
    d1: int,
    d2: int,
    heads: int,
    alpha: Real,
    *,
    constant: Real | None = None,
    smaller_side: bool = False,
) -> AttentionWidths:
    """Theorem 3 and 9: n_K ≥ d₁C·log(8Hα³d₁^(3/2)/ε), n_V ≥ d₁C·log(2Hαd₁√d₂/ε).

    The printed union bound forgets the factor H; with it the failure probability is still below ε. With
    smaller_side, units of value and output serve the smaller side, so n_V has min(d₁, d₂) first.
    """
    _check(epsilon, d1=d1, d2=d2, heads=heads)
    checks.positive(alpha=alpha)
    common = math.log(heads) - math.log(epsilon)
    key = common + math.log(8) + 3 * math.log(alpha) + 1.5 * math.log(d1)
    value = common + math.log(2) + math.log(alpha) + math.log(d1) + 0.5 * math.log(d2)
    rows, assumption = min(d1, d2) if smaller_side else d1, alpha >= math.sqrt(max(d1, d2)) - _EDGE
    failure = heads * (d1 * d1 * math.exp(-key) + d1 * d2 * math.exp(-value))
    return AttentionWidths(_width(d1, constant, key), _width(rows, constant, value), assumption, failure)


def factor_widths(
    epsilon: Real, d1: int, d2: int, heads: int, alpha: Real, rank: int, *, constant: Real | None = None
) -> AttentionWidths:
    """Heads of rank r through their own factors: each of the four is a product of r·n′ units.

    With d = max(d₁, d₂) and s = √(dr): n_K ≥ rC·log(5Hs·max(α³, s)/ε) and n_V ≥ rC·log(5Hs·max(α, s)/ε). For
    factors of norm 1 at most, and every α. Proof in docs/theory.md.
    """
    _check(epsilon, d1=d1, d2=d2, heads=heads, rank=rank)
    checks.positive(alpha=alpha)
    size = 0.5 * math.log(max(d1, d2) * rank)
    common = math.log(5 * heads) + size - math.log(epsilon)
    key, value = (common + max(power * math.log(alpha), size) for power in (3, 1))
    failure = 2 * heads * math.exp(2 * size) * (math.exp(-key) + math.exp(-value))
    return AttentionWidths(_width(rank, constant, key), _width(rank, constant, value), True, failure)


def prenorm_widths(
    epsilon: Real, d1: int, heads: int, floor: Real, layers: int, blocks: int, *, constant: Real | None = None
) -> tuple[BlockWidths, ...]:
    """Pre-norm blocks: n_MHA ≥ d₁C·log(16BHd₁³G^B/ε), n_FC ≥ d₁C·log(8BLd₁^(5/2)G^B/ε) in every block.

    G = (1 + λH(2d₁ + 1))(1 + λ) with λ = √d₁/floor. For all inputs for which every norm reads vectors at least
    as long as floor, in target and source. The logarithm grows with B, in Theorem 14 with B². Proof in
    docs/theory.md.
    """
    _check(epsilon, d1=d1, heads=heads, layers=layers, blocks=blocks)
    checks.positive(floor=floor)
    slope = math.sqrt(d1) / floor
    log_gain = blocks * (math.log1p(slope * heads * (2 * d1 + 1)) + math.log1p(slope))
    common = log_gain + math.log(8 * blocks) - math.log(epsilon)
    attention = _width(d1, constant, common + math.log(2 * heads) + 3 * math.log(d1))
    forward = _width(d1, constant, common + math.log(layers) + 2.5 * math.log(d1), "relu")
    return (BlockWidths(attention, forward, assumption=True),) * blocks


def transformer_widths(
    epsilon: Real, d1: int, heads: int, alpha: Real, layers: int, blocks: int, *, constant: Real | None = None
) -> tuple[BlockWidths, ...]:
    """Theorem 14 as printed: Theorem 11 at radius β₁ for block 1 and 2β_b after it, for smaller ε.

    One block is Theorem 11: n_MHA ≥ d₁C·log(32α³Hd₁^(3/2)/ε), n_FC ≥ d₁C·log(24αLHd₁^(5/2)/ε). With more, ε is
    divided by 2^(B−1)·Π_{j=2..B} for block 1 and by 2^(B−b+1)·Π_{j=b+1..B} for block b, each factor 16H√d₁β_j².
    This rests on Lemma 13 as printed, whose proof gives twice as much.
    """
    _check(epsilon, d1=d1, heads=heads, layers=layers, blocks=blocks)
    checks.positive(alpha=alpha)
    log_beta = [lemmas.block_radius_log(b, alpha, heads, d1) for b in range(1, blocks + 1)]
    factor = [math.log(16 * heads * math.sqrt(d1)) + 2 * log for log in log_beta]
    found = []
    for block, beta in enumerate(log_beta, 1):
        first = block == 1
        shrink = (blocks - 1 if first else blocks - block + 1) * math.log(2) + sum(factor[block:])
        radius = beta + (0 if first else math.log(2))
        common = shrink - math.log(epsilon) + math.log(heads)
        attention = _width(d1, constant, common + math.log(32) + 3 * radius + 1.5 * math.log(d1))
        forward = _width(d1, constant, common + math.log(24 * layers) + radius + 2.5 * math.log(d1), "relu")
        found.append(BlockWidths(attention, forward, alpha >= math.sqrt(d1) - _EDGE))
    return tuple(found)


def _check(epsilon: Real, **sizes: int) -> None:
    checks.fraction(epsilon=epsilon)
    checks.whole(**sizes)


def _width(
    rows: int, constant: Real | None, log_argument: float, construction: Construction = "product"
) -> Width:
    if constant is None:
        units = measured_units(log_argument, construction)
    else:
        checks.positive(constant=constant)
        units = constant * log_argument
    return Width(max(1, math.ceil(units - _EDGE)), rows)
