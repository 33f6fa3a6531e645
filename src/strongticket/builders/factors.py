"""Heads built through their own factors: query, key, value and output are each a product of two pruned matrices.

W_VO of a head has rank r = d_V at most. As one product it takes min(d₁, d₂)·n′ units; W_V and W_O as products of
their own take r·n′ each, as units keep one weight on the narrow side. So it is with W_QK, r = d_K.
"""

import numpy as np
from jaxtyping import Bool, Float

from strongticket.builders.source import Source
from strongticket.theory import AttentionFactors


def needs_fewer_units(rank: int, rows: int, columns: int) -> bool:
    """Whether products of rows × rank and rank × columns take fewer units than one of rows × columns."""
    return 2 * rank < min(rows, columns)


def query_and_key(
    target: AttentionFactors | None, kv_heads: int
) -> tuple[Float[np.ndarray, "heads dim_in key_dim"], Float[np.ndarray, "kv_heads context_dim key_dim"]]:
    """W_Q and W_K, of like size."""
    assert target is not None
    return _balanced(target.query, target.key, kv_heads)


def output_and_value(
    target: AttentionFactors | None, kv_heads: int
) -> tuple[Float[np.ndarray, "heads dim_out value_dim"], Float[np.ndarray, "kv_heads context_dim value_dim"]]:
    """W_Oᵀ and W_V, of like size; where the output has a bias, the constant is one more value of every head."""
    assert target is not None
    value, output, bias = target.value, target.output, target.output_bias
    if bias is not None:
        one = np.zeros_like(value[:, :, :1])
        one[:, -1] = 1
        share = np.broadcast_to(bias / len(output), (len(output), 1, len(bias)))
        value, output = np.concatenate([value, one], 2), np.concatenate([output, share], 1)
    return _balanced(output.transpose(0, 2, 1), value, kv_heads)


def prune_factor(
    name: str,
    target: Float[np.ndarray, "heads rows rank"],
    outer: Float[np.ndarray, "heads rows units"],
    inner: Float[np.ndarray, "heads rank units"],
    source: Source,
) -> tuple[Bool[np.ndarray, "heads rows units"], Bool[np.ndarray, "heads rank units"]]:
    """Masks with which outer @ innerᵀ becomes the target of every head; a unit keeps one weight of `inner`."""
    outer_mask, inner_mask, errors = np.zeros(outer.shape, bool), np.zeros(inner.shape, bool), []
    for h, wanted in enumerate(target):
        built = source.product(f"{name} of head {h}", wanted.T, inner[h], outer[h])
        inner_mask[h], outer_mask[h] = built.left_mask, built.right_mask
        errors.append(float(np.abs(built.error).max()))
    source.errors[name] = max(errors)
    return outer_mask, inner_mask


def _balanced(own: np.ndarray, shared: np.ndarray, kv_heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Each head's own factors and those that a group of heads shares, scaled to like size by powers of two."""
    group = len(own) // kv_heads
    own, shared = own.copy(), shared[::group].copy()
    for g in range(kv_heads):
        ours = slice(g * group, (g + 1) * group)
        sizes = np.abs(own[ours]).max(), np.abs(shared[g]).max()
        if min(sizes) > 0:
            power = 2.0 ** round(np.log2(sizes[1] / sizes[0]) / 2)
            own[ours] *= power
            shared[g] /= power
    return own, shared
