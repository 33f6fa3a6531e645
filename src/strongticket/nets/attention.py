"""Multi-head attention as the paper writes it (section 2.2): row vectors, one matrix per head, any mask."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject


class MultiHeadAttention(nn.Module):
    """softmax(q Kᵀ / √key_dim; mask) V, summed over heads through their part of the output matrix.

    Target and source are this same class: a source has key_dim = n_K, value_dim = n_V and pruned weights.
    Weights start at zero: `initialise` draws a target, a ticket fills a source.

    Args:
        dim_in, context_dim: width of the queries' input and of the keys' and values' (None: the same).
        dim_out: width of the output.
        heads: number of query heads.
        key_dim, value_dim: width of each head.
        kv_heads: how many key/value heads the query heads share, in equal consecutive groups (None: no sharing).
        bias: whether query, key and value add a bias.
        output_bias: whether the sum over heads does.
        key_inner, value_inner: in a source built through factors, query and key, or value and output, are each a
            product of two matrices with this many units between; None: one matrix.

    >>> layer = MultiHeadAttention(8, 6, heads=2, key_dim=4, value_dim=4)
    >>> layer(torch.ones(3, 5, 8)).shape  # (batch, tokens, dim_in) -> (batch, tokens, dim_out)
    torch.Size([3, 5, 6])
    """

    kind = "attention"

    def __init__(
        self,
        dim_in: int,
        dim_out: int,
        heads: int,
        key_dim: int,
        value_dim: int,
        *,
        kv_heads: int | None = None,
        context_dim: int | None = None,
        bias: bool = False,
        output_bias: bool = False,
        key_inner: int | None = None,
        value_inner: int | None = None,
    ):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        context_dim = dim_in if context_dim is None else context_dim
        sizes = dict(dim_in=dim_in, dim_out=dim_out, heads=heads, key_dim=key_dim, value_dim=value_dim)
        sizes |= dict(kv_heads=kv_heads, context_dim=context_dim)
        inner = dict(key_inner=key_inner, value_inner=value_inner)
        sizes |= {name: units for name, units in inner.items() if units is not None}
        checks.whole(**sizes)
        if heads % kv_heads:
            raise StrongTicketError(
                f"heads={heads} cannot share kv_heads={kv_heads} evenly: choose kv_heads that divides heads"
            )
        self._settings = sizes | dict(bias=bool(bias), output_bias=bool(output_bias))
        self.dim_in, self.dim_out, self.context_dim = dim_in, dim_out, context_dim
        self.heads, self.kv_heads, self.key_dim, self.value_dim = heads, kv_heads, key_dim, value_dim
        self.width, self.bias = dim_in, bool(bias)

        def zeros(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(shape))

        key_units, value_units = key_inner or key_dim, value_inner or value_dim
        self.query = zeros(heads, dim_in, key_units)
        self.key = zeros(kv_heads, context_dim, key_units)
        self.value = zeros(kv_heads, context_dim, value_units)
        self.output = zeros(heads, value_units, dim_out)
        self.query_inner = zeros(heads, key_units, key_dim) if key_inner else None
        self.key_inner = zeros(kv_heads, key_units, key_dim) if key_inner else None
        self.value_inner = zeros(kv_heads, value_units, value_dim) if value_inner else None
        self.output_inner = zeros(heads, value_dim, value_units) if value_inner else None
        self.query_bias = zeros(heads, key_units) if bias else None
        self.key_bias = zeros(kv_heads, key_units) if bias else None
        self.value_bias = zeros(kv_heads, value_units) if bias else None
        self.output_bias = zeros(dim_out) if output_bias else None

    @classmethod
    def from_torch(cls, layer: Any) -> "MultiHeadAttention":
        """Copy torch's MultiheadAttention: the same function of inputs (batch, tokens, embed_dim).

        A boolean mask of torch's layer is True where a row does not attend: pass ~mask to ours.

        >>> MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2)).query.shape  # (heads, dim_in, key_dim)
        torch.Size([2, 8, 4])
        """
        plain = isinstance(layer, nn.MultiheadAttention) and layer.bias_k is None and not layer.add_zero_attn
        if not plain or layer.kdim != layer.vdim:
            raise StrongTicketError(
                f"layer is a {type(layer).__name__}: expected torch's MultiheadAttention, without add_bias_kv and "
                "add_zero_attn, and with kdim equal to vdim",
                hint="`strongticket.build` accepts any torch module.",
            )
        dim, heads, bias = layer.embed_dim, layer.num_heads, layer.in_proj_bias is not None
        size = dim // heads
        found = cls(dim, dim, heads, size, size, context_dim=layer.kdim, bias=bias, output_bias=bias)
        found.to(layer.out_proj.weight)
        separate = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
        weights = separate if layer.in_proj_weight is None else layer.in_proj_weight.chunk(3)
        with torch.no_grad():
            for parameter, weight in zip((found.query, found.key, found.value), weights, strict=True):
                parameter.copy_(weight.unflatten(0, (heads, size)).mT)
            found.output.copy_(layer.out_proj.weight.T.unflatten(0, (heads, size)))
            if found.output_bias is not None:
                found.output_bias.copy_(layer.out_proj.bias)
                biases = (found.query_bias, found.key_bias, found.value_bias)
                for vector, given in zip(biases, layer.in_proj_bias.chunk(3), strict=True):
                    assert vector is not None
                    vector.copy_(given.unflatten(0, (heads, size)))
        return found

    def settings(self) -> JsonObject:
        """Return what `make` needs to make a layer of this shape."""
        return dict(self._settings)

    def forward(
        self,
        x: Float[Tensor, "*batch tokens dim_in"],
        context: Float[Tensor, "*same_batch context_tokens context_dim"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch tokens dim_out"]:
        """Attend from x to the context.

        Args:
            x: the queries' tokens.
            context: what they attend to; by default x itself.
            mask: True where a row attends, the opposite of torch's MultiheadAttention; broadcastable to (batch,
                heads, tokens, context_tokens).
        """
        x, context, mask, batched = prepare(self, x, context, mask)
        group = self.heads // self.kv_heads
        q = _project(x, self.query, self.query_bias, self.query_inner)
        k = _project(context, self.key, self.key_bias, self.key_inner)
        v = _project(context, self.value, self.value_bias, self.value_inner)
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        weights = masked_softmax(q @ k.transpose(-1, -2) / self.key_dim**0.5, mask)
        averages = weights @ v if self.output_inner is None else weights @ v @ self.output_inner
        y = torch.einsum("bhtk,hkd->btd", averages, self.output)
        if self.output_bias is not None:
            y = y + self.output_bias
        return y if batched else y[0]


def _project(x: Tensor, weight: Tensor, bias: Tensor | None, inner: Tensor | None) -> Tensor:
    """Queries, keys or values of every head: (batch, heads, tokens, key_dim or value_dim)."""
    y = torch.einsum("btd,hdk->bhtk", x, weight)
    if bias is not None:
        y = y + bias[:, None]
    return y if inner is None else y @ inner


def causal_mask(tokens: int, context_tokens: int | None = None) -> Bool[Tensor, "tokens context_tokens"]:
    """Let row i attend to what is not after it; with a longer context the last rows are aligned.

    True is where a row attends, the opposite of torch's MultiheadAttention.

    >>> causal_mask(2, 3).tolist()
    [[True, True, False], [True, True, True]]
    """
    context_tokens = tokens if context_tokens is None else context_tokens
    checks.whole(tokens=tokens, context_tokens=context_tokens)
    if context_tokens < tokens:
        raise StrongTicketError(
            f"context_tokens={context_tokens} is less than tokens={tokens}: the first rows would attend to "
            "nothing",
            hint="Pass a context at least as long.",
        )
    return torch.ones(tokens, context_tokens, dtype=torch.bool).tril(context_tokens - tokens)


def masked_softmax(
    logits: Float[Tensor, "batch heads tokens context_tokens"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "batch heads tokens context_tokens"]:
    """Softmax over what each row attends to: where the mask is True."""
    return (logits if mask is None else logits.masked_fill(~mask, -torch.inf)).softmax(-1)


def prepare(
    layer: Any, x: Tensor, context: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, bool]:
    """Check the inputs of an attention layer and give them a batch dimension; last: whether they had one."""
    context = x if context is None else context
    for name, tensor, width in (("x", x, layer.dim_in), ("context", context, layer.context_dim)):
        fits = tensor.ndim in (2, 3) and tensor.shape[-1] == width and tensor.shape[-2] > 0
        if not fits or tensor.shape[:-2] != x.shape[:-2]:
            raise StrongTicketError(
                f"{name} has shape {tuple(tensor.shape)}: expected (tokens, {width}) or (batch, tokens, {width}), "
                "at least one token, and the same batch in x and context",
                hint="Without context=, x is its own context.",
            )
    batched = x.ndim == 3
    if not batched:
        x, context = x[None], context[None]
    if mask is not None:
        _check_mask(mask, (len(x), layer.heads, x.shape[1], context.shape[1]))
    return x, context, mask, batched


def _check_mask(mask: Tensor, shape: tuple[int, int, int, int]) -> None:
    try:
        attends = mask.expand(shape).any(-1)
    except RuntimeError:
        raise StrongTicketError(
            f"mask of shape {tuple(mask.shape)} does not broadcast to "
            f"(batch, heads, tokens, context_tokens) = {shape}"
        ) from None
    if mask.dtype != torch.bool or not attends.all():
        raise StrongTicketError(
            f"a mask of dtype {mask.dtype}, in which {int((~attends).sum())} rows attend to nothing: expected "
            "torch.bool, True where a row attends, at least once in every row",
            hint="Invert a mask of torch's MultiheadAttention with ~mask; an additive one is mask == 0.",
        )
