"""From built weights alone: a bound on attention's error for every input in the ball, every T and mask."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from strongticket import checks
from strongticket.checks import Real
from strongticket.theory.joint import Term, supremum_bound
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
    dims = [target_vo.shape[2], inputs, *([1] if constant else [])]
    values = [radius * spectral_norm(error[:keys]) for error in vo_error]
    terms, lost = _constant_rows(vo_error, constant)
    softmax = []
    for logit, delta, vo, error, moved in zip(logits, deltas, target_vo, vo_error, values, strict=True):
        size = spectral_norm(vo[:keys])
        # Two valid bounds on (p′ − p)Y·W_VO: by covariance (sharp for small errors), by total variation.
        mixed = radius * _input_norm(vo[:keys].T @ logit, constant)
        covariance = radius * (delta * size + mixed) / 2 * INFLATE
        spread = 2 * radius * float(np.tanh(delta / 2)) * INFLATE
        averages = (radius * error[:keys],)
        if covariance <= spread * size:
            # Tokens' variance and their average share the radius; W_VO goes from the target's to the source's.
            middle = np.vstack([vo[:keys] + error[:keys] / 2, error[:keys] / 12**0.5])
            pair = np.vstack([radius * radius * logit, np.zeros_like(logit)]), middle
            largest = supremum_bound(dims, [Term(pair=pair)]) + delta * moved / 2
            terms.append(Term(averages, pair, largest * INFLATE))
        else:
            terms += [Term((spread * vo[:keys],)), Term(averages)]
        softmax.append(min(covariance, spread * size))
    wanted, made = (largest_output(value_output, radius, constant) for value_output in (target_vo, source_vo))
    extra = rounding.head_errors(target_vo[:, :keys], source_vo[:, :keys], radius) if rounding else []
    bound = (min(supremum_bound(dims, terms) + lost, wanted + made) + sum(extra)) * INFLATE
    last = output_rounding(wanted + bound, dims[0], arithmetic)
    return Certificate(
        kind="attention",
        bound=(bound + last) * INFLATE,
        paper_bound=paper_attention_bound(qk_error, vo_error, target_vo, radius, constant),
        radius=float(radius),
        terms={
            "logits": tuple(deltas),
            "softmax": tuple(softmax),
            "values": tuple(values),
            "rounding": tuple(extra),
            "output": (last,),
        },
        context_radius=float(radius),
        arithmetic=arithmetic,
    )


def largest_output(value_output: np.ndarray, radius: Real, constant: bool = False) -> float:
    """At least the norm of any output: an average of tokens, which stays in the ball, times each head's W_VO."""
    keys = value_output.shape[1] - constant
    row, hidden = _constant_rows(value_output, constant)
    heads = [Term((radius * head[:keys],)) for head in value_output]
    return supremum_bound([value_output.shape[2]], heads + row) + hidden


def _constant_rows(value_output: np.ndarray, constant: bool) -> tuple[list[Term], float]:
    """The constant's rows of all heads, added up, as softmax rows sum to one; and what rounding may hide of them."""
    if not constant:
        return [], 0.0
    row, hidden = sum_rows(value_output[:, -1])
    return [Term((row[None],))], hidden


def _input_norm(matrix: np.ndarray, constant: bool) -> float:
    """At least sup ‖M(x, 1)‖ over ‖x‖ ≤ 1; without a constant the spectral norm."""
    if not constant:
        return spectral_norm(matrix)
    return spectral_norm(matrix[:, :-1]) + spectral_norm(matrix[:, -1:])
