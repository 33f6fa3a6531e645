"""A bound for every attention layer of a model: normalised tokens have a known length."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from strongticket.models.attention import AttentionMap, Product, attention_of, norm_weights
from strongticket.models.attention.attention_map import Projections
from strongticket.models.attention.products import ProductAttention
from strongticket.theory.certificate import certify_attention
from strongticket.theory.rounding import (
    Arithmetic,
    AttentionRounding,
    frobenius,
    output_rounding,
    running_rounding,
    spectral_norm,
)
from strongticket.theory.weights import AttentionWeights

Products = Mapping[Product, np.ndarray]  # the matrices of an attention layer
Frequency = tuple[Product, Product | None, Product | None]  # of tokens, the query's bias, the key's bias

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
        arithmetic: what the source runs in, as `Ticket.network()` does; the target is mathematics.
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
        module = source.get_submodule(layer.path)
        radius, targets = input_radius(layer, target), dict(layer.targets(target))
        if isinstance(module, ProductAttention):
            sources: Products = {
                product: module.get_parameter(product.name.rpartition(".")[2]).double().numpy()
                for product in targets
            }
            rounding = running_products(layer, sources, radius * LONGER)
        else:
            sources = dict(layer.targets(source))
            rounding = running_projections(layer, layer.read(source), radius * LONGER)
        bound = attention_bound(layer, targets, sources, rounding, radius * LONGER)
        found.append(LayerCertificate(layer.layer, radius, bound))
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
        longest = longest_inputs(layer, radius)
        rounding = running_projections(layer, made, radius)
        group, bound, reach = layer.shape.group, 0.0, 0.0
        for head in range(layer.shape.heads):
            query, key = (
                [_with_bias(p, side, head // (group if side == "key" else 1)) for p in (made, wrong)]
                for side in ("query", "key")
            )
            value = [p.value[head // group] for p in (made, wrong)]
            output = [p.output[head] for p in (made, wrong)]
            carried, lost = _product_error(value, output)
            # RoPE turns queries and keys, which changes none of these norms.
            moved = longest * _product_error(query, key)[1] + float(rounding.logits[head])
            bound += radius * (2 * float(np.tanh(moved / 2)) * (carried + lost) + lost)
            bound += float(rounding.values[head])
            reach += radius * carried
            if made.value_bias is not None and wrong.value_bias is not None:
                bias = [p.value_bias[head // group][None] for p in (made, wrong)]  # type: ignore[index]
                size, error = _product_error(bias, output)
                bound, reach = bound + error, reach + size
        if made.output_bias is not None and wrong.output_bias is not None:
            bound += float(np.linalg.norm(wrong.output_bias))
            reach += float(np.linalg.norm(made.output_bias))
        bound += output_rounding(reach + bound, ARITHMETIC)
        found.append(LayerCertificate(layer.layer, stated, bound))
    return found


def _with_bias(p: Projections, side: str, head: int) -> np.ndarray:
    weight, bias = getattr(p, side)[head], getattr(p, f"{side}_bias")
    return weight if bias is None else np.concatenate([weight, bias[head][None]])


def _product_error(left: list[np.ndarray], right: list[np.ndarray]) -> tuple[float, float]:
    """(norm of the product of two matrices, how far it may be from that of matrices within the bounds of both)."""
    (a, wrong_a), (b, wrong_b) = left, right
    norm_a, norm_b, error_a, error_b = (
        spectral_norm(a),
        spectral_norm(b),
        frobenius(wrong_a),
        frobenius(wrong_b),
    )
    return norm_a * norm_b, error_a * norm_b + norm_a * error_b + error_a * error_b


def input_radius(layer: AttentionMap, model: nn.Module) -> float:
    """Radius of what attention reads: √d behind a norm, changed by its gain and shift."""
    root = float(np.sqrt(layer.shape.dim))
    gain, shift = norm_weights(model, layer.reads)
    return root * float(np.abs(gain).max()) + (0.0 if shift is None else float(np.linalg.norm(shift)))


def attention_bound(
    layer: AttentionMap, targets: Products, sources: Products, rounding: AttentionRounding, radius: float
) -> float:
    """The error of the sources as they run in float32, against the targets as mathematics."""
    s = layer.shape
    if not s.pairs:
        constant = s.query_bias or s.output_bias
        target, source = (AttentionWeights(*merged(layer, found), constant) for found in (targets, sources))
        return certify_attention(target, source, radius, rounding=rounding, arithmetic=ARITHMETIC).bound
    # With RoPE the logits' matrix is cos·A + sin·B, at any angle at most ‖[A; B]‖; frequencies add up.
    longest = longest_inputs(layer, radius)
    target_vo, source_vo = value_output(layer, targets), value_output(layer, sources)
    bound, reach = sum(rounding.head_errors(target_vo, source_vo, radius)), 0.0
    heads = [(head, j) for head in layer.logits() for j in range(s.group)]
    for (head, j), wanted, error in zip(heads, target_vo, source_vo - target_vo, strict=True):
        moved = sum(
            spectral_norm(rotated(layer, sources, frequency, j) - rotated(layer, targets, frequency, j))
            for frequency in head
        )
        softmax = 2 * float(np.tanh(longest * moved / 2))
        bound += radius * (softmax * spectral_norm(wanted) + spectral_norm(error))
        reach += radius * spectral_norm(wanted)
    if s.output_bias:
        bound += float(np.linalg.norm(sources[layer.bias()] - targets[layer.bias()]))
        reach += float(np.linalg.norm(targets[layer.bias()]))
    return bound + output_rounding(reach + bound, ARITHMETIC)


def running_products(layer: AttentionMap, sources: Products, radius: float) -> AttentionRounding:
    """What float32 adds when a ProductAttention runs these products."""
    s = layer.shape
    heads = [(head, j) for head in layer.logits() for j in range(s.group)]
    sizes = [sum(frobenius(rotated(layer, sources, f, j)) for f in head) for head, j in heads]
    carried = [frobenius(values) for values in value_output(layer, sources)]
    return _running(layer, sizes, carried, 2 * s.dim + s.pairs + 12, s.heads * s.dim + 8, radius)


def running_projections(layer: AttentionMap, p: Projections, radius: float) -> AttentionRounding:
    """What float32 adds when the model's own attention runs its four projections, and merging them in float64."""
    s, group = layer.shape, layer.shape.group
    head_dim = p.query.shape[-1]
    sizes, carried = [], []
    for head in range(s.heads):
        query, key = _with_bias(p, "query", head), _with_bias(p, "key", head // group)
        sizes.append(frobenius(query) * frobenius(key))
        bias = 0.0 if p.value_bias is None else frobenius(p.value_bias[head // group]) / radius
        carried.append((frobenius(p.value[head // group]) + bias) * frobenius(p.output[head]))
    terms = 2 * s.dim + head_dim + 16
    return _running(layer, sizes, carried, terms, s.dim + s.heads * head_dim + 12, radius)


def _running(
    layer: AttentionMap,
    sizes: list[float],
    carried: list[float],
    logit_terms: int,
    value_terms: int,
    radius: float,
) -> AttentionRounding:
    turned = 2.0 if layer.shape.pairs else 1.0  # queries and keys are rotated: |cos| + |sin| ≤ √2
    longest = LONGER * turned * longest_inputs(layer, radius)
    found = [
        running_rounding(longest * size, radius * value, logit_terms, value_terms, TOKENS, ARITHMETIC)
        for size, value in zip(sizes, carried, strict=True)
    ]
    logits, values = zip(*found, strict=True)
    return AttentionRounding(np.array(logits), np.array(values))


def longest_inputs(layer: AttentionMap, radius: float) -> float:
    """Largest product of the norms of a query's and a key's input, the constant of a bias included."""
    return float(np.hypot(radius, layer.shape.query_bias) * np.hypot(radius, layer.shape.key_bias))


def rotated(layer: AttentionMap, found: Products, frequency: Frequency, head: int) -> np.ndarray:
    """[A; B] of one query head at one frequency, A alone without RoPE: (key_dim', halves·query_dim')."""
    s, halves = layer.shape, 2 if layer.shape.pairs else 1
    tokens, query_bias, key_bias = frequency
    whole = found[tokens].reshape(s.dim, s.group, halves, s.dim)
    if query_bias:
        whole = np.concatenate([whole, found[query_bias].reshape(s.dim, s.group, halves, 1)], -1)
    if key_bias:
        whole = np.concatenate([whole, found[key_bias].reshape(1, *whole.shape[1:])])
    return whole[:, head].reshape(len(whole), -1)


def value_output(layer: AttentionMap, found: Products) -> np.ndarray:
    """W_VO of every head: (heads, value_dim, dim_out)."""
    s = layer.shape
    groups = [found[product].reshape(s.dim, s.group, s.dim) for product in layer.values()]
    return np.concatenate(groups, 1).transpose(1, 0, 2)


def merged(layer: AttentionMap, found: Products) -> tuple[np.ndarray, np.ndarray]:
    """W_QK (heads, query_dim', key_dim') and W_VO (heads, value_dim', dim_out), the constant's row last."""
    s = layer.shape
    constant = s.query_bias or s.output_bias
    query_key = np.zeros((s.heads, s.dim + constant, s.dim + constant))
    whole = np.zeros((s.heads, s.dim + constant, s.dim))
    for g, ((tokens, query_bias, _),) in enumerate(layer.logits()):
        mine = slice(g * s.group, (g + 1) * s.group)
        logits = found[tokens].reshape(s.dim, s.group, s.dim)
        query_key[mine, : s.dim, : s.dim] = logits.transpose(1, 2, 0)
        if query_bias:
            query_key[mine, -1, : s.dim] = found[query_bias].reshape(s.dim, s.group).T
    whole[:, : s.dim] = value_output(layer, found)
    if s.output_bias:
        whole[:, -1] = found[layer.bias()] / s.heads
    return query_key, whole
