"""ReLU networks from pruned random ones: two layers for one (Lemma 2), 2L layers for L (Theorem 10).

A hidden unit that keeps the input weight u gives u·relu(x_i) if u > 0 and |u|·relu(−x_i) if u < 0. So a
linear map is a product problem with two rows per coordinate: (i, +) must make W and (i, −) must make −W. What
is never negative (the constant 1 that carries a bias, the output of an earlier ReLU) needs its + row alone.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Float64, Int

from strongticket import checks
from strongticket.builders import assign
from strongticket.builders.options import BuildOptions
from strongticket.builders.source import Builder, Part, certified, checked_target, finish
from strongticket.builders.width import build_sized
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject
from strongticket.nets import ReluNetwork
from strongticket.ticket import Ticket


def build_relu(target: object, options: BuildOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for an L-layer ReluNetwork in a random one of 2L layers.

    Args:
        target: a ReluNetwork.
        options: see BuildOptions; floors do not apply. per_row counts the units of a coordinate, both signs
            together.
        changes: fields of BuildOptions, as keywords.

    >>> target = initialise(ReluNetwork([4, 3]), seed=1)
    >>> x = torch.ones(4) / 2  # (dim_in,)
    >>> ticket = build_relu(target, per_row=24, radius=1.0)
    >>> bool((ticket.network()(x) - target(x)).norm() <= ticket.certificate["bound"])
    True
    """
    chosen = BuildOptions.of(options, changes, unused=("floors",))
    builder = Builder(chosen)
    network = checked_target(target, (ReluNetwork,))

    def build(widths: Sequence[int]) -> Ticket:
        settings = relu_settings(network, widths)
        return finish(network, settings, relu_part(network, settings["dims"][1::2], builder, ""), chosen)

    given = chosen.width
    widths = cast(Sequence[int] | None, [given] * len(network.biases) if checks.is_whole(given) else given)
    return build_sized(build, lambda n: relu_widths(network, n), certified, chosen, widths)


def relu_widths(target: ReluNetwork, per_row: int) -> list[int]:
    return [per_row * (d + bias) for d, bias in zip(target.dims[:-1], target.biases, strict=True)]


def relu_settings(target: ReluNetwork, widths: Sequence[int]) -> JsonObject:
    """Settings of the 2L-layer source: a bias only where the target has one, on the first layer of its pair."""
    layers = len(target.biases)
    if not isinstance(widths, Sequence) or len(widths) != layers:
        raise StrongTicketError(
            f"width={widths!r}: expected one number, or {layers} of them, one per target layer"
        )
    dims, biases = [target.dims[0]], []
    for layer, width in enumerate(widths):
        checks.whole(**{f"width of layer {layer}": width})
        dims += [width, target.dims[layer + 1]]
        biases += [target.biases[layer], False]
    return dict(dims=dims, bias=biases)


def relu_part(target: ReluNetwork, widths: Sequence[int], builder: Builder, prefix: str) -> Part:
    """Masks for all pairs of layers."""
    whole = Part()
    for index, (layer, width) in enumerate(zip(target.layers, widths, strict=True)):
        names = f"{prefix}layers.{2 * index}", f"{prefix}layers.{2 * index + 1}"
        weight = layer.weight.numpy().T
        if layer.bias is not None:
            weight = np.vstack([weight, layer.bias.numpy()])
        whole.add(linear_pair(weight, width, builder, names, layer.bias is not None, nonnegative=index > 0))
    return whole


def linear_pair(
    weight: Float64[np.ndarray, "in1 out"],
    width: int,
    builder: Builder,
    names: tuple[str, str],
    bias: bool,
    nonnegative: bool,
) -> Part:
    """Masks for one linear map; weight: one row per input coordinate, with a bias the constant's row last."""
    rows, dim_out = weight.shape
    dim_in = rows - bias
    first, second = names
    part = Part()
    inner = builder.law(width, dim_in)
    units = part.draw(builder, f"{first}.weight", (width, dim_in), inner).T
    if bias:
        units = np.vstack([units, part.draw(builder, f"{first}.bias", (width,), inner)])
    outer = part.draw(builder, f"{second}.weight", (dim_out, width), builder.law(dim_out, width))
    signed = 0 if nonnegative else dim_in
    # Rows: (0, +) … (dim_in−1, +), the constant, then (0, −) … (dim_in−1, −).
    left = np.vstack([np.maximum(units, 0), np.maximum(-units[:signed], 0)])
    owner = paper_owner(units, signed) if builder.options.assignment != "balanced" else None
    built = builder.product(first, np.vstack([weight, -weight[:signed]]), left, outer, owner=owner)
    kept = built.left_mask[:rows].copy()
    kept[:signed] |= built.left_mask[rows:]
    part.masks[f"{first}.weight"] = kept[:dim_in].T.copy()
    if bias:
        part.masks[f"{first}.bias"] = kept[dim_in]
    part.masks[f"{second}.weight"] = built.right_mask
    part.errors[second] = float(np.abs(built.error).max())
    return part


def paper_owner(units: Float[np.ndarray, "rows width"], signed: int) -> Int[np.ndarray, " width"]:
    """Lemma 2's assignment: contiguous groups, one per coordinate, inside which each unit's sign decides."""
    rows, width = units.shape
    group = assign.contiguous(rows, width)
    negative = units[group, np.arange(width)] < 0
    opposite = np.where(group < signed, rows + group, assign.NO_ROW)
    return np.where((group != assign.NO_ROW) & negative, opposite, group)
