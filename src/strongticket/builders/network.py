"""A ticket of one of the theorems' networks: choose the width, solve, certify the arrays, make one ticket."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import nn

from strongticket import checks
from strongticket.builders.attention import prune_attention
from strongticket.builders.product import Assignment
from strongticket.builders.relu import prune_relu
from strongticket.builders.source import Init, Size, Source
from strongticket.checks import Real
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets import Block, MultiHeadAttention, ReluNetwork, Transformer
from strongticket.nets.certifying import certify_weights
from strongticket.nets.merging import weights_of
from strongticket.nets.weights import read
from strongticket.settings import check
from strongticket.subset_sum import MAX_EXACT
from strongticket.theory.rounding import Arithmetic, unit_of
from strongticket.theory.weights import BlockWeights, TransformerWeights, Weights
from strongticket.ticket import Ticket

FIRST, LAST = 4, MAX_EXACT  # units per row tried first, and at most: beyond, subset sums are no longer exact
Built = TypeVar("Built")


def build_network(
    target: nn.Module,
    *,
    width: int | Sequence[int] | None = None,
    per_row: int | None = None,
    epsilon: Real | None = None,
    radius: Real | None = None,
    certificate: bool = True,
    arithmetic: Arithmetic = "float32",
    floors: Sequence[float] | None = None,
    seed: int = 0,
    assignment: Assignment = "balanced",
    init: Init = "theory",
    rank: bool = False,
    kept: Real | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Ticket:
    """Build a ticket for one of the theorems' networks: give one of width, per_row and epsilon.

    Args:
        target: a MultiHeadAttention, ReluNetwork, Block or Transformer.
        width: units of every product; or two numbers, n_K and n_V of attention, n_MHA and n_FC of every block; or
            one for each layer of a ReLU network.
        per_row: units for each row of the side of a product where a unit keeps one weight (Lemma 7's n′).
        epsilon: the output error to certify, at the smallest width whose certificate meets it.
        radius: the certificate holds for tokens with ‖x_i‖ ≤ radius; None means √d, the least that the paper's
            α ≥ √d₁ allows.
        certificate: whether to compute one; a build is faster without.
        arithmetic: what the certificate holds for: "float32" is `Ticket.network()`, "float64" is
            `Ticket.network(dtype=torch.float64)`, "exact" the network as mathematics.
        floors: in networks with norms, for each norm the least length of what it reads (see nets.certify).
        seed: of the random source.
        assignment: "balanced" gives units to rows where they are strong, then moves them to rows that still fail,
            and lets units keep one weight on the smaller side of each product; "paper" is Lemma 7: contiguous groups,
            on the input's side; "one-sign" uses of these groups only the units whose weight there is positive.
        init: how the source is drawn. "theory" is section 3.1: U[±n_K^¼] for query and key, U[±1] otherwise, as
            the proof needs; "inverse" is section 4.1: U[±n_K^-¼] for query and key; "xavier" is appendix B.1:
            U[±√(6 / (rows + columns))]. With the last two W_QK is out of reach as n grows.
        rank: build heads that are narrower than half their inputs through their own factors, of rank d_K and d_V:
            fewer units. Query, key, value and output are then each a product of two random matrices.
        kept: share of its products that every entry keeps, between 0 and 1 (the nearest whole number of them, at
            least one); the other weight of a unit is kept once. None keeps what comes closest, about half.
        progress: called with the number of finished products and of all, None where that is not known before.

    >>> target = initialise(MultiHeadAttention(4, 4, 1, 2, 2), seed=1, normalised=True)
    >>> ticket = build_network(target, epsilon=1e-2, radius=2.0)
    >>> x = torch.ones(5, 4)  # (tokens, dim_in), each ‖x_i‖ = 2
    >>> bool((ticket.network()(x) - target(x)).norm(dim=-1).max() <= ticket.certificate["bound"] <= 1e-2)
    True
    """
    asked = dict(width=width, per_row=per_row, epsilon=epsilon)
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise StrongTicketError(
            f"{' and '.join(given) or 'nothing'} given: expected exactly one of width (units), per_row (units for "
            "each row) and epsilon (certified accuracy)",
            hint="Give one, such as epsilon=1e-3.",
        )
    if epsilon is not None and not certificate:
        raise StrongTicketError(
            "certificate=False with epsilon: the width is found by the certificate",
            hint="Leave the certificate on, or give a width.",
        )
    check(Assignment, assignment=assignment)
    check(Init, init=init)
    if kept is not None:
        checks.fraction(kept=kept)
    unit_of(arithmetic)
    if radius is not None:
        checks.positive(radius=radius)
    kind, settings, wanted = _read_target(target)
    if floors is not None and kind in ("attention", "relu"):
        raise StrongTicketError(f"floors does not apply: a network of kind {kind!r} has no norms")
    known = epsilon is None and not rank
    finished, total = itertools.count(1), _products(kind, settings) if known else None

    def advance() -> None:
        if progress is not None:
            progress(next(finished), total)

    def attempt(size: Size) -> tuple[Source, JsonObject, Any]:
        """The pruned source, its settings and its certificate, if one is wanted."""
        source = Source(seed, assignment, init, advance, rank, kept)
        described = PRUNE[kind](wanted, settings, size, source)
        source.prune()
        if not certificate:
            return source, described, None
        built = read(kind, described, source.tensors)
        found = certify_weights(wanted, built, radius, arithmetic=arithmetic, floors=floors)
        return source, described, found

    if epsilon is None:
        source, described, found = attempt(_size(kind, settings, width, per_row))
    else:
        source, described, found = search_width(
            lambda n: attempt(Size(n)), lambda built: float(built[2].bound), epsilon
        )
    return Ticket.of(
        source.tensors,
        certificate=found and found.to_dict() | dict(errors=source.errors),
        seed=seed,
        kind=kind,
        settings=described,
        laws=source.laws,
        masks=source.masks,
        metadata=dict(assignment=assignment, init=init)
        | (dict(rank=True) if rank else {})
        | ({} if kept is None else dict(kept=kept)),
    )


def prune_block(
    target: BlockWeights, settings: JsonObject, size: Size, source: Source, prefix: str = ""
) -> JsonObject:
    """Draw and prune a block, whose feed-forward network gets twice as deep; size: n_MHA and n_FC."""
    attention_size = forward_size = size
    if size.per_row is None:
        attention, forward = size.widths
        attention_size = Size(None, (attention, attention))
        forward_size = Size(None, (forward,) * len(target.layers))
    return settings | dict(
        attention=prune_attention(
            target, settings["attention"], attention_size, source, f"{prefix}attention."
        ),
        feed_forward=prune_relu(
            target, settings["feed_forward"], forward_size, source, f"{prefix}feed_forward."
        ),
    )


def prune_transformer(
    target: TransformerWeights, settings: JsonObject, size: Size, source: Source
) -> JsonObject:
    """Draw and prune all blocks, each of the same size."""
    blocks = zip(target.blocks, settings["blocks"], strict=True)
    return settings | dict(
        blocks=[
            prune_block(block, its_settings, size, source, f"blocks.{index}.")
            for index, (block, its_settings) in enumerate(blocks)
        ]
    )


PRUNE: dict[str, Callable[..., JsonObject]] = dict(
    attention=prune_attention, relu=prune_relu, block=prune_block, transformer=prune_transformer
)


def search_width(build: Callable[[int], Built], bound_of: Callable[[Built], float], epsilon: Real) -> Built:
    """Double the units per row from FIRST until the bound reaches epsilon, then bisect; every step really builds.

    The narrowest of all where the bound falls with the width; other widths are other sources, so it need not.
    """
    checks.positive(epsilon=epsilon)
    failed, works = FIRST - 1, FIRST
    while bound_of(best := build(works)) > epsilon:
        if works == LAST:
            raise StrongTicketError(
                f"epsilon={epsilon:g} was not reached: with {LAST} units per row the certified error is "
                f"{bound_of(best):.3g}",
                hint="Ask for a larger epsilon, a smaller radius, or float64: float32 outputs are rounded.",
            )
        failed, works = works, min(2 * works, LAST)
    while works - failed > 1:
        middle = (works + failed) // 2
        built = build(middle)
        if bound_of(built) <= epsilon:
            works, best = middle, built
        else:
            failed = middle
    return best


def _read_target(target: Any) -> tuple[str, JsonObject, Weights]:
    """Kind, settings and merged weights of the target, its numbers checked."""
    if not isinstance(target, MultiHeadAttention | ReluNetwork | Block | Transformer):
        raise StrongTicketError(
            f"target is a {type(target).__name__}: expected one of strongticket.nets' networks "
            f"({', '.join(PRUNE)})",
            hint="MultiHeadAttention.from_torch copies torch's own layer; strongticket.build accepts any torch module.",
        )
    for name, tensor in target.state_dict().items():
        if not tensor.is_floating_point():
            raise StrongTicketError(
                f"target's {name} is {tensor.dtype}: expected floating point",
                hint="Convert it with .float().",
            )
        checks.finite(**{f"target's {name}": tensor.double().cpu().numpy()})
    return target.kind, target.settings(), weights_of(target)


def _size(kind: str, settings: JsonObject, width: Any, per_row: int | None) -> Size:
    """The size that was asked for."""
    if per_row is not None:
        checks.whole(per_row=per_row)
        return Size(per_row)
    count = len(settings["bias"]) if kind == "relu" else 2
    widths = list(width) if isinstance(width, Sequence) else [width] * count
    if len(widths) != count:
        names = dict(attention="n_K and n_V", relu="one for each layer").get(kind, "n_MHA and n_FC")
        raise StrongTicketError(f"width={width!r}: expected one number, or {count}: {names}")
    for index, units in enumerate(widths):
        checks.whole(**{f"width[{index}]": units})
    return Size(None, tuple(widths))


def _products(kind: str, settings: JsonObject) -> int:
    """How many products a network is built of."""
    if kind == "attention":
        return 2 * int(settings["kv_heads"])
    if kind == "relu":
        return len(settings["bias"])
    blocks = settings["blocks"] if kind == "transformer" else [settings]
    return sum(
        _products("attention", block["attention"]) + _products("relu", block["feed_forward"])
        for block in blocks
    )
