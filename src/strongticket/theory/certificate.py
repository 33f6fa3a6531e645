"""From built weights alone: a bound on attention's error for every input in the ball, every T and mask."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from strongticket import checks
from strongticket.checks import Real
from strongticket.theory.joint import NormTerm, PairTerm, Term, supremum_bound
from strongticket.theory.paper_bounds import paper_attention_bound
from strongticket.theory.rounding import (
    DEVICES,
    INFLATE,
    MAX_TOKENS,
    Arithmetic,
    AttentionRounding,
    output_rounding,
    spectral_norm,
    sum_rows,
    unit_of,
)
from strongticket.theory.weights import AttentionWeights, both_roundings, check_attention


@dataclass(frozen=True)
class Certificate:
    """‖source(x) − target(x)‖ ≤ bound at every position, for all inputs with ‖x_i‖ ≤ radius.

    Attributes:
        kind: "attention", "relu" or "transformer".
        bound: the certified error.
        paper_bound: what the paper's inequalities give for the same weights.
        radius: largest norm of an input token.
        terms: what the bound is made of, one value per head, layer or block, each taken alone: together they
            give less than their sum.
        context_radius: in attention, the largest norm of the tokens that keys and values come from.
        arithmetic: what the source runs in. "float32" holds for `Ticket.network()`, "float64" for
            `Ticket.network(dtype=torch.float64)`, both on DEVICES; "exact" for the network as mathematics. The
            target is always mathematics.
        floors: in networks with normalisation, the least length of what each norm reads in the source, in
            order; the bound holds for inputs that respect them (`Ticket.network(check=True)` checks).
    """

    kind: str
    bound: float
    paper_bound: float
    radius: float
    terms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    context_radius: float | None = None
    arithmetic: Arithmetic = "exact"
    floors: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if np.isnan(self.bound):  # of infinities: the weights are too large for a bound
            object.__setattr__(self, "bound", np.inf)

    @property
    def form(self) -> Literal["any", "merged"]:
        """What must run for the bound to hold: "merged" products; in exact arithmetic all forms are one function."""
        return "any" if self.arithmetic == "exact" else "merged"

    @property
    def tokens(self) -> int | None:
        """The longest context that the bound holds for; None for any: rounding grows with it, the rest does not."""
        return None if self.arithmetic == "exact" or self.kind == "relu" else MAX_TOKENS

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; a number too large for it is None."""

        def stored(value: float) -> float | None:
            return value if np.isfinite(value) else None

        record = asdict(self) | {"form": self.form, "tokens": self.tokens, "floors": list(self.floors or ())}
        record["devices"] = None if self.arithmetic == "exact" else list(DEVICES)
        if self.floors is None:
            del record["floors"]
        record |= {name: stored(record[name]) for name in ("bound", "paper_bound", "radius")}
        record["terms"] = {name: list(map(stored, values)) for name, values in self.terms.items()}
        return record


@np.errstate(over="ignore", invalid="ignore")
def certify_attention(
    target: AttentionWeights,
    source: AttentionWeights,
    radius: Real,
    *,
    arithmetic: Arithmetic = "exact",
    rounding: AttentionRounding | None = None,
) -> Certificate:
    """Bound ‖Attn_S − Attn_T‖ from the merged weights of both. Proof in docs/theory.md.

    Args:
        target: its weights.
        source: of the same shapes; with factors, their rounding is counted.
        radius: largest norm of a token, those that keys and values come from included.
        arithmetic: the arithmetic the bound holds for: the output is rounded to it.
        rounding: what else runs than the merged weights; None counts that of nets.Merged.
    """
    check_attention(target, source)
    checks.positive(radius=radius)
    if rounding is None:
        rounding = both_roundings(target, source, radius, arithmetic)
    constant, target_vo, source_vo = target.constant, target.value_output, source.value_output
    _, rows, columns = target.query_key.shape
    inputs, keys = rows - constant, columns - constant
    qk_error, vo_error = source.query_key - target.query_key, source_vo - target_vo

    # The constant's column moves all logits of a query alike: softmax does not see it.
    scale = np.append(np.full(inputs, float(radius)), [1.0] * constant)
    logits = [error[:, :keys].T * scale for error in qk_error]
    deltas = [radius * _input_norm(error, constant) for error in logits]
    terms, lost = _average_terms(vo_error, radius, constant)
    softmax = []
    for logit, delta, vo in zip(logits, deltas, target_vo, strict=True):
        values = vo[:keys]
        norm = spectral_norm(values)
        # Two valid bounds on (p′ − p)Y·W_VO: by covariance (sharp for small errors), by total variation.
        mixed = radius * _input_norm(values.T @ logit, constant)
        covariance = radius * (delta * norm + mixed) / 2
        spread = 2 * radius * float(np.tanh(delta / 2)) * INFLATE
        if covariance <= spread * norm:
            terms.append(PairTerm(radius * radius * logit, values))
        else:
            terms.append(NormTerm(spread * values))
        softmax.append(min(covariance, spread * norm))
    extra = rounding.head_errors(target_vo[:, :keys], source_vo[:, :keys], radius) if rounding else []
    dims = [target_vo.shape[2], inputs, *([1] if constant else [])]
    bound = (supremum_bound(dims, terms) + lost + sum(extra)) * INFLATE
    last = 0.0
    if unit_of(arithmetic):
        outputs, hidden = _average_terms(target_vo, radius, constant)
        last = output_rounding(supremum_bound(dims[:1], outputs) + hidden + bound, dims[0], arithmetic)
    return Certificate(
        kind="attention",
        bound=(bound + last) * INFLATE,
        paper_bound=paper_attention_bound(qk_error, vo_error, target_vo, radius, constant),
        radius=float(radius),
        terms={
            "logits": tuple(deltas),
            "softmax": tuple(softmax),
            "values": tuple(radius * spectral_norm(error[:keys]) for error in vo_error),
            "rounding": tuple(extra),
            "output": (last,),
        },
        context_radius=float(radius),
        arithmetic=arithmetic,
    )


def _average_terms(value_output: np.ndarray, radius: Real, constant: bool) -> tuple[list[Term], float]:
    """An average of tokens times each head's W_VO, added up; and what rounding may hide of that.

    Softmax rows sum to one: the average stays in the ball, and the heads' constant rows add up.
    """
    keys = value_output.shape[1] - constant
    terms: list[Term] = [NormTerm(radius * head[:keys]) for head in value_output]
    if not constant:
        return terms, 0.0
    row, hidden = sum_rows(value_output[:, -1])
    return [*terms, NormTerm(row[None])], hidden


def _input_norm(matrix: np.ndarray, constant: bool) -> float:
    """At least sup ‖M(x, 1)‖ over ‖x‖ ≤ 1; without a constant the spectral norm."""
    if not constant:
        return spectral_norm(matrix)
    return spectral_norm(matrix[:, :-1]) + spectral_norm(matrix[:, -1:])
