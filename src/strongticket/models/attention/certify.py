"""A bound for every attention layer of a model: normalised tokens have a known length."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from strongticket.models.attention import attention_of
from strongticket.models.attention.attention_map import AttentionMap, Projections, array
from strongticket.models.attention.products import ProductAttention, Shape
from strongticket.theory.certificate import certify_attention, largest_output
from strongticket.theory.rotary import rotary_bound, turned
from strongticket.theory.rounding import (
    Arithmetic,
    AttentionRounding,
    frobenius,
    output_rounding,
    running_rounding,
    spectral_norm,
)
from strongticket.theory.weights import AttentionWeights

Products = Mapping[str, np.ndarray]  # the matrices of an attention layer, see Shape.products

ARITHMETIC: Arithmetic = "float32"  # of the network that runs
TOKENS = 4096  # the longest context that the bounds hold for: a sum's rounding grows with it
LONGER = 1 + 1e-6  # a norm's output may be this much longer in float32


@dataclass(frozen=True)
class LayerCertificate:
    """‖source − target‖ ≤ bound at every token, for the same input with ‖x_i‖ ≤ radius and any mask.

    Attributes:
        layer: its number.
        radius: largest norm of a token that the attention reads.
        bound: the certified error.
        arithmetic: what the source runs in, as `Ticket.network()` does; the target is mathematics, but with RoPE it has
            the cosines and sines that the source computes.
        tokens: the longest context that the bound holds for.
    """

    layer: int
    radius: float
    bound: float
    arithmetic: Arithmetic = ARITHMETIC
    tokens: int = TOKENS


def certify_layers(target: nn.Module, source: nn.Module) -> list[LayerCertificate]:
    """One certificate for each attention layer, from the true difference of the matrices.

    Args:
        target: the trained model; a class of no known family is an error.
        source: the network of its ticket, float32.
    """
    found = []
    for layer in attention_of(target):
        stated = input_radius(layer, target)
        radius, targets = stated * LONGER, dict(layer.targets(target))
        module = source.get_submodule(layer.path)
        if isinstance(module, ProductAttention):
            sources = {name: array(module.get_parameter(name)) for name in targets}
            rounding = running_products(layer.shape, sources, radius)
        else:
            sources = dict(layer.targets(source))
            rounding = running_projections(layer.shape, layer.read(source), radius)
        bound = attention_bound(layer.shape, targets, sources, rounding, radius)
        found.append(LayerCertificate(layer.layer, stated, bound))
    return found


def certify_spacing(source: nn.Module, bounds: nn.Module) -> list[LayerCertificate]:
    """One certificate for each attention layer that holds for every target whose numbers are within given bounds.

    No target is needed: how far each number of a ticket can be from the target's is known from its spacing alone.

    Args:
        source: the network of a ticket, float32.
        bounds: a model of the same class with the largest difference of each number in its place.
    """
    found = []
    for layer in attention_of(source):
        stated = input_radius(layer, source) + input_radius(layer, bounds)  # of the target's norm, too
        radius = stated * LONGER
        made, wrong = layer.read(source), layer.read(bounds)
        longest = longest_inputs(layer.shape, radius)
        rounding = running_projections(layer.shape, made, radius)
        bound, reach = 0.0, 0.0
        for head in range(layer.shape.heads):
            g = head // layer.shape.group
            output = made.output[head], wrong.output[head]
            carried, lost = _product_error((made.value[g], wrong.value[g]), output)
            # RoPE turns queries and keys, which changes none of these norms.
            _, moved = _product_error((made.query[head], wrong.query[head]), (made.key[g], wrong.key[g]))
            moved = longest * moved + float(rounding.logits[head])
            bound += radius * (2 * float(np.tanh(moved / 2)) * (carried + lost) + lost)
            bound += float(rounding.values[head])
            reach += radius * carried
            size, error = _product_error((made.value_bias[g, None], wrong.value_bias[g, None]), output)
            bound, reach = bound + error, reach + size
        bound += float(np.linalg.norm(wrong.output_bias))
        reach += float(np.linalg.norm(made.output_bias))
        bound += output_rounding(reach + bound, layer.shape.dim, ARITHMETIC)
        found.append(LayerCertificate(layer.layer, stated, bound))
    return found


def _product_error(
    left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """(norm of the product of two matrices, how far it may be from that of matrices within the bounds of both)."""
    (norm_a, error_a), (norm_b, error_b) = (
        (spectral_norm(matrix), frobenius(wrong)) for matrix, wrong in (left, right)
    )
    return norm_a * norm_b, error_a * norm_b + norm_a * error_b + error_a * error_b


def input_radius(layer: AttentionMap, model: nn.Module) -> float:
    """Radius of what attention reads: √d behind a norm, changed by its gain and shift."""
    root = float(np.sqrt(layer.shape.dim))
    norm: Any = model.get_submodule(layer.reads)
    shift = 0.0 if getattr(norm, "bias", None) is None else float(np.linalg.norm(array(norm.bias)))
    return root * float(np.abs(array(norm.weight)).max()) + shift


def attention_bound(
    s: Shape, targets: Products, sources: Products, rounding: AttentionRounding, radius: float
) -> float:
    """The error of the sources as they run in float32, against the targets as mathematics."""
    if not s.pairs:
        constant = s.query_bias or s.output_bias
        target, source = (AttentionWeights(*merged(s, found), constant) for found in (targets, sources))
        return certify_attention(target, source, radius, rounding=rounding, arithmetic=ARITHMETIC).bound
    target_vo, source_vo = value_output(s, targets), value_output(s, sources)
    moves = [
        turned(rotated(s, sources, f, head) - rotated(s, targets, f, head) for f in range(s.frequencies))
        for head in range(s.heads)
    ]
    bound = rotary_bound(moves, target_vo, source_vo, radius, longest_inputs(s, radius))
    bound += sum(rounding.head_errors(target_vo, source_vo, radius))
    reach = largest_output(target_vo, radius)
    if s.output_bias:
        bound += float(np.linalg.norm(sources["output_bias"] - targets["output_bias"]))
        reach += float(np.linalg.norm(targets["output_bias"]))
    return bound + output_rounding(reach + bound, s.dim, ARITHMETIC)


def running_products(s: Shape, sources: Products, radius: float) -> AttentionRounding:
    """What float32 adds when a ProductAttention runs these products."""
    sizes = [
        sum(frobenius(rotated(s, sources, f, head)) for f in range(s.frequencies)) for head in range(s.heads)
    ]
    carried = [frobenius(values) for values in value_output(s, sources)]
    return _running(s, sizes, carried, 2 * s.dim + s.pairs + 12, s.heads * s.dim + 8, radius)


def running_projections(s: Shape, p: Projections, radius: float) -> AttentionRounding:
    """What float32 adds when the model's own attention runs its four projections, and merging them in float64."""
    head_dim, sizes, carried = p.query.shape[-1], [], []
    for head in range(s.heads):
        g = head // s.group
        sizes.append(frobenius(p.query[head]) * (frobenius(p.key[g]) + frobenius(p.key_bias[g]) / radius))
        bias = frobenius(p.value_bias[g]) / radius
        carried.append((frobenius(p.value[g]) + bias) * frobenius(p.output[head]))
    terms = 2 * s.dim + head_dim + 16
    return _running(s, sizes, carried, terms, s.dim + s.heads * head_dim + 12, radius)


def _running(
    s: Shape, sizes: list[float], carried: list[float], logit_terms: int, value_terms: int, radius: float
) -> AttentionRounding:
    halves = 2.0 if s.pairs else 1.0  # queries and keys are rotated: |cos| + |sin| ≤ √2
    longest = LONGER * halves * longest_inputs(s, radius)
    found = [
        running_rounding(longest * size, radius * value, logit_terms, value_terms, TOKENS, ARITHMETIC)
        for size, value in zip(sizes, carried, strict=True)
    ]
    logits, values = zip(*found, strict=True)
    return AttentionRounding(np.array(logits), np.array(values))


def longest_inputs(s: Shape, radius: float) -> float:
    """Largest product of the norms of a query's and a key's input, the constant of a bias included."""
    return float(np.hypot(radius, s.query_bias) * np.hypot(radius, s.key_bias))


def rotated(s: Shape, found: Products, frequency: int, head: int) -> np.ndarray:
    """A and B of one query head at one frequency, A alone without RoPE: (halves, key_dim', query_dim')."""
    g, j = divmod(head, s.group)
    whole = found[f"query_key_{frequency}_{g}"].reshape(s.dim, s.group, -1, s.dim)
    if s.query_bias:
        bias = found[f"query_bias_{frequency}_{g}"].reshape(*whole.shape[:3], 1)
        whole = np.concatenate([whole, bias], -1)
    if s.key_bias:
        bias = found[f"key_bias_{frequency}_{g}"].reshape(1, *whole.shape[1:])
        whole = np.concatenate([whole, bias])
    return whole[:, j].swapaxes(0, 1)


def value_output(s: Shape, found: Products) -> np.ndarray:
    """W_VO of every head: (heads, value_dim, dim_out)."""
    groups = [found[f"value_output_{g}"].reshape(s.dim, s.group, s.dim) for g in range(s.kv_heads)]
    return np.concatenate(groups, 1).transpose(1, 0, 2)


def merged(s: Shape, found: Products) -> tuple[np.ndarray, np.ndarray]:
    """W_QK (heads, query_dim', key_dim') and W_VO (heads, value_dim', dim_out), the constant's row last."""
    constant = s.query_bias or s.output_bias
    query_key = np.zeros((s.heads, s.dim + constant, s.dim + constant))
    for head, whole in enumerate(query_key):
        logits = rotated(s, found, 0, head)[0].T
        whole[: len(logits), : s.dim] = logits
    values = np.zeros((s.heads, s.dim + constant, s.dim))
    values[:, : s.dim] = value_output(s, found)
    if s.output_bias:
        values[:, -1] = found["output_bias"] / s.heads
    return query_key, values
