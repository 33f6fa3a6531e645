"""A bound for every attention layer of a model: normalised tokens have a known length."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from strongticket.pretrained.families import AttentionMap, Product, attention_of, norm_weights
from strongticket.pretrained.source import Source
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
from strongticket.ticket import Ticket

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


def certify_layers(ticket: Ticket, target: nn.Module) -> list[LayerCertificate]:
    """One certificate for each attention layer that is made of products and whose inputs are normalised.

    Args:
        ticket: of kind "pretrained".
        target: the model that it was built from.
    """
    source = Source(ticket.settings)
    if ticket.settings["attention"] != "products":
        return []
    found = []
    for layer in attention_of(target):
        if layer.products()[0].name in source.tensors:
            radius = input_radius(layer, target)
            targets = dict(layer.targets(target))
            # The network's own numbers are float32.
            sources = {p: source.folded(p.name, ticket).astype(np.float64) for p in targets}
            bound = attention_bound(layer, targets, sources, radius)
            found.append(LayerCertificate(layer.layer, radius, bound))
    return found


def input_radius(layer: AttentionMap, model: nn.Module) -> float:
    """Radius of what attention reads: √d behind a norm, changed by its gain and shift."""
    root = float(np.sqrt(layer.shape.dim))
    gain, shift = norm_weights(model, layer.reads)
    return root * float(np.abs(gain).max()) + (0.0 if shift is None else float(np.linalg.norm(shift)))


def attention_bound(layer: AttentionMap, targets: Products, sources: Products, radius: float) -> float:
    """The error of the sources as they run in float32, against the targets as mathematics."""
    s, radius = layer.shape, radius * LONGER
    rounding = running(layer, sources, radius)
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


def running(layer: AttentionMap, sources: Products, radius: float) -> AttentionRounding:
    """What float32 adds when SourceAttention runs these products."""
    s = layer.shape
    logit_terms = s.dim + s.dim + s.pairs + 12
    value_terms = s.heads * s.dim + 8
    turned = 1.5 if s.pairs else 1.0  # a rotation's products are added up: |cos| + |sin| ≤ √2
    found = []
    heads = [(head, j) for head in layer.logits() for j in range(s.group)]
    for (head, j), values in zip(heads, value_output(layer, sources), strict=True):
        sizes = sum(frobenius(rotated(layer, sources, frequency, j)) for frequency in head)
        largest = LONGER * turned * longest_inputs(layer, radius) * sizes
        carried = radius * frobenius(values)
        found.append(running_rounding(largest, carried, logit_terms, value_terms, TOKENS, ARITHMETIC))
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
