"""A bound for every attention layer of a model: normalised tokens have a known length."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from strongticket.pretrained.families import AttentionMap, Product, attention_of, norm_weights
from strongticket.pretrained.source import Source
from strongticket.theory.certificate import certify_attention
from strongticket.theory.rounding import spectral_norm
from strongticket.ticket import Ticket

Products = Mapping[Product, np.ndarray]  # the matrices of an attention layer
Frequency = tuple[Product, Product | None, Product | None]  # of tokens, the query's bias, the key's bias


@dataclass(frozen=True)
class LayerCertificate:
    """‖source − target‖ ≤ bound at every token, for the same input with ‖x_i‖ ≤ radius, any mask and length.

    module: path of the target's module that gives the attention's output
    output: mean norm of that output on what was compared, to see the bound beside; None if nothing was
    """

    layer: int
    radius: float
    bound: float
    module: str
    output: float | None = None


def certify_layers(ticket: Ticket, target: nn.Module) -> list[LayerCertificate]:
    """One certificate for each attention layer that is made of products and whose inputs are normalised.

    ticket: of kind "pretrained"; target: the model that it was built from
    """
    source = Source(ticket.settings)
    if ticket.settings["attention"] != "products":
        return []
    found = []
    for layer in attention_of(target):
        if layer.reads and layer.products()[0].name in source.tensors:
            radius = input_radius(layer, target)
            targets = dict(layer.targets(target))
            # The network runs the products in float32.
            sources = {p: source.folded(p.name, ticket).astype(np.float64) for p in targets}
            bound = attention_bound(layer, targets, sources, radius)
            found.append(LayerCertificate(layer.layer, radius, bound, (layer.path, *layer.after)[-1]))
    return found


def input_radius(layer: AttentionMap, model: nn.Module) -> float:
    """Radius of what attention reads: √d behind a norm, changed by its gain and shift."""
    root = float(np.sqrt(layer.shape.query_dim))
    gain, shift = norm_weights(model, layer.reads)
    return root * float(np.abs(gain).max()) + (0.0 if shift is None else float(np.linalg.norm(shift)))


def attention_bound(layer: AttentionMap, targets: Products, sources: Products, radius: float) -> float:
    s = layer.shape
    if not s.pairs:
        matrices = [merged(layer, found) for found in (targets, sources)]
        (target_qk, target_vo), (source_qk, source_vo) = matrices
        constant = s.query_bias or s.output_bias
        return certify_attention(target_qk, source_qk, target_vo, source_vo, radius, constant=constant).bound
    # With RoPE the logits' matrix is cos·A + sin·B, at any angle at most ‖[A; B]‖; frequencies add up.
    longer = [float(np.hypot(radius, biased)) for biased in (s.query_bias, s.key_bias)]
    bound = 0.0
    for g, head in enumerate(layer.logits()):
        values = [
            found[layer.values()[g]].reshape(s.value_dim, s.group, s.dim_out) for found in (targets, sources)
        ]
        for j in range(s.group):
            moved = sum(
                spectral_norm(rotated(layer, sources, frequency, j) - rotated(layer, targets, frequency, j))
                for frequency in head
            )
            softmax = 2 * float(np.tanh(longer[0] * longer[1] * moved / 2))
            target, error = values[0][:, j], values[1][:, j] - values[0][:, j]
            bound += radius * (softmax * spectral_norm(target) + spectral_norm(error))
    if s.output_bias:
        bound += float(np.linalg.norm(sources[layer.bias()] - targets[layer.bias()]))
    return bound


def rotated(layer: AttentionMap, found: Products, frequency: Frequency, head: int) -> np.ndarray:
    """[A; B] of one query head at one frequency: (key_dim', 2·query_dim')."""
    s = layer.shape
    tokens, query_bias, key_bias = frequency
    whole = found[tokens].reshape(s.key_dim, s.group, 2, s.query_dim)
    if query_bias:
        whole = np.concatenate([whole, found[query_bias].reshape(s.key_dim, s.group, 2, 1)], -1)
    if key_bias:
        whole = np.concatenate([whole, found[key_bias].reshape(1, *whole.shape[1:])])
    return whole[:, head].reshape(len(whole), -1)


def merged(layer: AttentionMap, found: Products) -> tuple[np.ndarray, np.ndarray]:
    """W_QK (heads, query_dim', key_dim') and W_VO (heads, value_dim', dim_out), the constant's row last."""
    s = layer.shape
    constant = s.query_bias or s.output_bias
    query_key = np.zeros((s.heads, s.query_dim + constant, s.key_dim + constant))
    value_output = np.zeros((s.heads, s.value_dim + constant, s.dim_out))
    for g, ((tokens, query_bias, _),) in enumerate(layer.logits()):
        mine = slice(g * s.group, (g + 1) * s.group)
        logits = found[tokens].reshape(s.key_dim, s.group, s.query_dim)
        query_key[mine, : s.query_dim, : s.key_dim] = logits.transpose(1, 2, 0)
        if query_bias:
            query_key[mine, -1, : s.key_dim] = found[query_bias].reshape(s.key_dim, s.group).T
        values = found[layer.values()[g]].reshape(s.value_dim, s.group, s.dim_out)
        value_output[mine, : s.value_dim] = values.transpose(1, 0, 2)
    if s.output_bias:
        value_output[:, -1] = found[layer.bias()] / s.heads
    return query_key, value_output
