"""Multi-head attention from a pruned random one of the same shape but wider heads (Theorem 3/9).

Head h of the target is softmax(x W_QK x'ᵀ) x' W_VO. Both matrices are products of two random ones (Lemma
4/7): on one side a unit keeps one weight, on the other the masks choose. Lemma 7 has query and value for the first
side; the smaller of the two needs fewer units for the same error. Where heads share keys and values it is what
they share, so that each head's own query and output stay free. With `rank`, heads much narrower than their inputs
are built through their own factors instead (builders.factors).
"""

import numpy as np
from jaxtyping import Bool, Float

from strongticket.builders import factors
from strongticket.builders.source import Size, Source
from strongticket.files import JsonObject
from strongticket.theory import AttentionWeights


def prune_attention(
    target: AttentionWeights,
    settings: JsonObject,
    size: Size,
    source: Source,
    prefix: str = "",
) -> JsonObject:
    """Draw and prune an attention layer, its tensors' names with this prefix; `settings` are the target's.

    Returns:
        settings of the source: wider heads, and the value's bias also makes the output's.
    """
    heads, kv_heads, dim_in, context_dim, dim_out = (
        settings[name] for name in ("heads", "kv_heads", "dim_in", "context_dim", "dim_out")
    )
    constant = settings["bias"] or settings["output_bias"]
    # The constant's column of W_QK is zero (softmax does not see it), so the key's bias is pruned away whole.
    query_rows, key_rows, value_rows = dim_in + settings["bias"], context_dim, context_dim + constant
    alone = kv_heads == heads

    def draw(name: str, count: int, dim: int, width: int, law_width: int | None = None) -> np.ndarray:
        """One matrix a head (count, dim', width), the bias as the constant's last row."""
        law = source.law(dim, width, key_width=law_width)
        weight = source.draw(f"{prefix}{name}", (count, dim, width), law)
        if not constant:
            return weight
        bias = source.draw(f"{prefix}{name}_bias", (count, width), law)
        return np.concatenate([weight, bias[:, None]], 1)

    def keep(name: str, mask: np.ndarray, dim: int) -> None:
        """The reverse of `draw`; without the constant's row the bias stays pruned."""
        source.masks[f"{prefix}{name}"] = mask[:, :dim]
        if mask.shape[1] > dim:
            source.masks[f"{prefix}{name}_bias"] = mask[:, dim]

    def through(name: str, wanted: np.ndarray, outer: np.ndarray) -> np.ndarray:
        """Mask of the outer half of a factor, (heads, rows, units); the inner half is drawn and pruned here."""
        (count, _, rank), units, inner_name = wanted.shape, outer.shape[2], f"{prefix}{name}_inner"
        turned = (0, 1, 2) if name == "output" else (0, 2, 1)
        shape = tuple(np.array((count, rank, units))[list(turned)].tolist())
        inner = source.draw(inner_name, shape, source.law(*shape[1:])).transpose(turned)
        outer_mask, inner_mask = factors.prune_factor(f"{prefix}{name}", wanted, outer, inner, source)
        source.masks[inner_name] = inner_mask.transpose(turned)
        return outer_mask

    made: JsonObject = dict(bias=constant, output_bias=False)
    key_dim, value_dim = settings["key_dim"], settings["value_dim"] + settings["output_bias"]
    if source.rank and factors.needs_fewer_units(key_dim, query_rows, key_rows):
        units = size.units(0, key_dim)
        query, key = (
            draw("query", heads, dim_in, units, key_dim),
            draw("key", kv_heads, context_dim, units, key_dim),
        )
        wanted_query, wanted_key = factors.query_and_key(target.factors, kv_heads)
        query_mask = through("query", wanted_query[:, :query_rows], query[:, :query_rows])
        key_mask = through("key", wanted_key[:, :key_rows], key[:, :key_rows])
        made |= dict(key_dim=key_dim, key_inner=units)
    else:
        by_query = alone and (source.as_paper or query_rows <= key_rows)
        units = size.units(0, query_rows if by_query else key_rows)
        query = draw("query", heads, dim_in, units, units)[:, :query_rows]
        key = draw("key", kv_heads, context_dim, units, units)[:, :key_rows]
        wanted = target.query_key[:, :query_rows, :key_rows]
        query_mask, key_mask = _prune_heads(
            wanted, query, key, source, f"{prefix}query_key", "key ", by_query, scale=units**-0.5
        )
        made |= dict(key_dim=units)
    keep("query", query_mask, dim_in)
    keep("key", key_mask, context_dim)

    through_values = source.rank and factors.needs_fewer_units(value_dim, value_rows, dim_out)
    by_output = alone and not source.as_paper and dim_out < value_rows
    units = size.units(1, value_dim if through_values else dim_out if by_output else value_rows)
    value = draw("value", kv_heads, context_dim, units)
    output = source.draw(f"{prefix}output", (heads, units, dim_out), source.law(units, dim_out))
    output = output.transpose(0, 2, 1)
    if through_values:
        wanted_output, wanted_value = factors.output_and_value(target.factors, kv_heads)
        output_mask = through("output", wanted_output, output)
        value_mask = through("value", wanted_value, value)
        made |= dict(value_dim=value_dim, value_inner=units)
    else:
        wanted = target.value_output.transpose(0, 2, 1)
        output_mask, value_mask = _prune_heads(
            wanted, output, value, source, f"{prefix}value_output", "value ", by_output
        )
        made |= dict(value_dim=units)
    keep("value", value_mask, context_dim)
    source.masks[f"{prefix}output"] = output_mask.transpose(0, 2, 1)
    return settings | made


def _prune_heads(
    target: Float[np.ndarray, "heads own_dim shared_dim"],
    own: Float[np.ndarray, "heads own_dim units"],
    shared: Float[np.ndarray, "kv_heads shared_dim units"],
    source: Source,
    name: str,
    shared_name: str,
    by_own: bool,
    *,
    scale: float = 1.0,
) -> tuple[Bool[np.ndarray, "heads own_dim units"], Bool[np.ndarray, "kv_heads shared_dim units"]]:
    """Masks with which scale · own @ sharedᵀ becomes the target of every head.

    A unit keeps one weight of `own` if by_own, or else of `shared`, the factor that a group of heads shares.
    """
    group = len(own) // len(shared)
    own_mask, shared_mask, errors = np.zeros(own.shape, bool), np.zeros(shared.shape, bool), []
    for g in range(len(shared)):
        ours = slice(g * group, (g + 1) * group)
        free = own[ours].reshape(-1, own.shape[2])
        wanted = target[ours].reshape(-1, target.shape[2])
        what = f"{name} of {'' if group == 1 else shared_name}head {g}"
        # A product's transpose is a product with its factors exchanged.
        factors = (free, shared[g]) if by_own else (shared[g], free)
        wanted = wanted if by_own else wanted.T
        built = source.product(what, wanted, *factors, scale=scale)
        masks = built.left_mask, built.right_mask
        own_side, shared_mask[g] = masks if by_own else masks[::-1]
        own_mask[ours] = own_side.reshape(own[ours].shape)
        errors.append(float(np.abs(built.product - wanted).max()))
    source.errors[name] = max(errors)
    return own_mask, shared_mask
