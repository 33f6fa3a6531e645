"""ReLU networks from pruned random ones: two layers for one (Lemma 2), 2L layers for L (Theorem 10).

A unit that keeps the input weight u gives u·relu(x_i) if u > 0 and |u|·relu(−x_i) if u < 0. So a linear map is a
product problem with two rows per coordinate: (i, +) must make W and (i, −) must make −W. What is never negative (the
constant 1 that carries a bias, the output of an earlier ReLU) needs its + row alone.
"""

import numpy as np
from jaxtyping import Float, Int

from strongticket.builders import assign
from strongticket.builders.source import Size, Source
from strongticket.files import JsonObject
from strongticket.theory.weights import BlockWeights, ReluWeights


def prune_relu(
    target: ReluWeights | BlockWeights,
    settings: JsonObject,
    size: Size,
    source: Source,
    prefix: str = "",
) -> JsonObject:
    """Draw and prune a network of two layers for each of the target's, as prune_attention does.

    size.per_row counts the units of a coordinate, both signs together.

    Returns:
        settings of the source: a bias only where the target has one, on the first layer of its pair.
    """
    dims, biases = [settings["dims"][0]], []
    for index, (weight, bias) in enumerate(target.layers):
        names = f"{prefix}layers.{2 * index}", f"{prefix}layers.{2 * index + 1}"
        rows = weight.T if bias is None else np.vstack([weight.T, bias])
        width = size.units(index, len(rows))
        _prune_pair(rows, width, source, names, biased=bias is not None, nonnegative=index > 0)
        dims += [width, len(weight)]
        biases += [bias is not None, False]
    return dict(dims=dims, bias=biases)


def _prune_pair(
    weight: Float[np.ndarray, "in1 out"],
    width: int,
    source: Source,
    names: tuple[str, str],
    *,
    biased: bool,
    nonnegative: bool,
) -> None:
    """Two layers for one linear map, given by a row per input coordinate, with a bias the constant's row last."""
    rows, dim_out = weight.shape
    dim_in = rows - biased
    first, second = names
    inner = source.law(width, dim_in)
    units = source.draw(f"{first}.weight", (width, dim_in), inner).T
    if biased:
        units = np.vstack([units, source.draw(f"{first}.bias", (width,), inner)])
    outer = source.draw(f"{second}.weight", (dim_out, width), source.law(dim_out, width))
    signed = 0 if nonnegative else dim_in
    # Rows: (0, +) … (dim_in−1, +), the constant, then (0, −) … (dim_in−1, −).
    left = np.vstack([np.maximum(units, 0), np.maximum(-units[:signed], 0)])
    owner = paper_owner(units, signed) if source.as_paper else None
    built = source.product(first, np.vstack([weight, -weight[:signed]]), left, outer, owner=owner)
    kept = built.left_mask[:rows].copy()
    kept[:signed] |= built.left_mask[rows:]
    source.masks[f"{first}.weight"] = kept[:dim_in].T
    if biased:
        source.masks[f"{first}.bias"] = kept[dim_in]
    source.masks[f"{second}.weight"] = built.right_mask
    source.errors[second] = float(np.abs(built.error).max())


def paper_owner(units: Float[np.ndarray, "rows width"], signed: int) -> Int[np.ndarray, " width"]:
    """Lemma 2's assignment: contiguous groups, one per coordinate, inside which each unit's sign decides."""
    rows, width = units.shape
    group = assign.contiguous(rows, width)
    negative = units[group, np.arange(width)] < 0
    opposite = np.where(group < signed, rows + group, assign.NO_ROW)
    return np.where((group != assign.NO_ROW) & negative, opposite, group)
