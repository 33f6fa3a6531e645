"""Networks in plain numpy, float64, written from the paper's formulas and from nothing else."""

import numpy as np


def generator(seed):
    return np.random.default_rng(seed)


def unit_norm(rng, *shape):
    """Random matrices of spectral norm at most 1, a good part of them exactly 1."""
    matrices = rng.standard_normal(shape)
    norms = np.linalg.norm(matrices, 2, axis=(-2, -1), keepdims=True)
    return matrices / norms * rng.choice([1.0, 1.0, 0.5])


def ball(rng, tokens, dim, radius):
    """Tokens in the ball, most of them on its sphere."""
    x = rng.standard_normal((tokens, dim))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x * radius * np.where(rng.random((tokens, 1)) < 0.7, 1, rng.random((tokens, 1)))


def mask(rng, tokens, context=None):
    """Any attention mask in which each position attends to something."""
    allowed = rng.random((tokens, context or tokens)) < rng.choice([0.3, 0.7, 1.1])
    allowed[np.arange(tokens), rng.integers(0, allowed.shape[1], tokens)] = True
    return allowed


def softmax(logits, allowed):
    logits = np.where(allowed, logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attention(query_key, value_output, x, allowed, context=None, constant=False):
    """query_key (heads, d, d), value_output (heads, d, out), x (tokens, d) -> (tokens, out)"""
    y = x if context is None else context
    if constant:
        x, y = (np.hstack([z, np.ones((len(z), 1))]) for z in (x, y))
    heads = zip(query_key, value_output, strict=True)
    return sum(softmax(x @ qk @ y.T, allowed) @ y @ vo for qk, vo in heads)


def relu_network(layers, x):
    """x (tokens, d), layers of (weight (out, in), bias or None)"""
    for index, (weight, bias) in enumerate(layers):
        x = (np.maximum(x, 0) if index else x) @ weight.T + (0 if bias is None else bias)
    return x


def normalise(x, norm):
    """LayerNorm or RMSNorm of every row, without trained parameters."""
    if norm.kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + norm.epsilon)


def block(query_key, value_output, layers, x, allowed, constant=False, norm=None, read=None):
    """norm: of a pre-norm block; read: a list that is given the shortest vector each norm reads"""

    def reads(z):
        if norm is None:
            return z
        if read is not None:
            read.append(float(np.linalg.norm(z @ norm.centring(z.shape[1]), axis=1).min()))
        return normalise(z, norm)

    y = attention(query_key, value_output, reads(x), allowed, constant=constant) + x
    return relu_network(layers, reads(y)) + y


def target_heads(rng, heads, dim, dim_out, key_dim):
    """Merged W_QK and W_VO of a target whose four matrices have norm at most 1, as the paper assumes."""
    query, key = unit_norm(rng, heads, dim, key_dim), unit_norm(rng, heads, dim, key_dim)
    value, output = unit_norm(rng, heads, dim, key_dim), unit_norm(rng, heads, key_dim, dim_out)
    return query @ key.transpose(0, 2, 1) / np.sqrt(key_dim), value @ output


def largest_row(matrix):
    return float(np.linalg.norm(matrix, axis=-1).max())


def spectral(matrix):
    return float(np.linalg.norm(matrix, 2))
