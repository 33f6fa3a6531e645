"""Merge a network's products: queries with keys, values with outputs, the two layers of a ReLU pair.

A source's hidden layers are wide and its products cancel: run factor by factor in float32, it errs by more than
its certificate. x(W_Q W_Kᵀ)yᵀ is the same number as (xW_Q)(yW_K)ᵀ, with far fewer roundings and operations.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.nets.files import tensor_shapes
from strongticket.nets.merged import MergedAttention, MergedRelu
from strongticket.nets.relu import ReluNetwork
from strongticket.nets.transformer import Block, Transformer, norm_settings
from strongticket.nets.weights import read
from strongticket.theory.weights import (
    BlockWeights,
    Layer,
    ReluWeights,
    TransformerWeights,
    Weights,
    bias_of,
    merge_layers,
    mixing_units,
)


class Merged(nn.Module):
    """A network with its products merged, which runs in float64 and answers in the type of x or of the network.

    The answer has the wider of the two types: a network with float32 weights answers float32 inputs in float32
    and float64 inputs in float64. Certificates other than exact ones hold for this form.

    Args:
        network: one of strongticket.nets' networks; later changes to it are not seen.

    >>> network = initialise(MultiHeadAttention(4, 4, 1, 64, 64), seed=1)
    >>> x = torch.ones(3, 4)
    >>> torch.allclose(Merged(network)(x), network(x), rtol=1e-4)
    True
    """

    form = "merged"

    def __init__(self, network: nn.Module):
        super().__init__()
        self.body = merge(network, torch.float64)
        self.kind: str = network.kind  # type: ignore[assignment]
        self.answer = next(network.parameters()).dtype
        self._factors = (network,)  # in a tuple, so that it is not a submodule

    @property
    def factors(self) -> Any:
        """The network that was merged."""
        return self._factors[0]

    def forward(self, x: Tensor, *others: Any, **options: Any) -> Tensor:
        """Run on x and what else the network takes; masks are True where a row attends."""
        runs = next(self.body.parameters()).dtype

        def convert(value: Any) -> Any:
            return value.to(runs) if isinstance(value, Tensor) and value.is_floating_point() else value

        options = {name: convert(value) for name, value in options.items()}
        y: Tensor = self.body(convert(x), *map(convert, others), **options)
        return y.to(torch.promote_types(x.dtype, self.answer))


def merge(network: nn.Module, dtype: torch.dtype | None = None) -> Any:
    """Merge a network of strongticket.nets: products are taken in float64 and returned in `dtype`.

    A ReluNetwork is merged where that is exact: an even number of layers in which every unit of each pair's first
    layer keeps at most one input (as in a built source). Any other is returned as a copy.

    Args:
        network: with its factors, or a Merged.
        dtype: of the merged weights; by default the network's own.

    >>> merge(MultiHeadAttention(8, 6, heads=2, key_dim=4, value_dim=4)).query_key.shape  # (heads, dim_in, dim_in)
    torch.Size([2, 8, 8])
    """
    weight = next(network.parameters())
    return merged_module(weights_of(network)).to(weight.device, dtype or weight.dtype)


def weights_of(network: nn.Module) -> Weights:
    """Read the weights of a network or of what a Merged was made of, which must not have changed since."""
    if isinstance(network, Merged):
        weights = weights_of(network.factors)
        wanted, found = merged_module(weights).state_dict(), network.body.state_dict()
        if not all(_same(tensor, found[name]) for name, tensor in wanted.items()):
            raise StrongTicketError(
                "the network's weights or their type changed since it was merged",
                hint="Merge the network again with nets.Merged.",
            )
        return weights
    if not hasattr(network, "kind") or not hasattr(network, "settings"):
        raise StrongTicketError(
            f"cannot merge a {type(network).__name__}: "
            "expected MultiHeadAttention, ReluNetwork, Block or Transformer"
        )
    kind: Any = network.kind
    settings: Any = network.settings()  # type: ignore[operator]
    shapes = tensor_shapes(kind, settings)
    arrays = {name: tensor.double().cpu().numpy() for name, tensor in network.state_dict().items()}
    for name, array in arrays.items():
        checks.shaped(shapes[name], **{name: array})  # a parameter may have been replaced
    return read(kind, settings, arrays)


def merged_module(weights: Weights) -> Any:
    """Make the merged network of these weights, in float64."""
    if isinstance(weights, TransformerWeights):
        return Transformer(list(map(merged_module, weights.blocks)), **norm_settings(weights.norm))
    if isinstance(weights, ReluWeights):
        return _merged_relu(weights.layers)
    query_key, value_output = map(torch.from_numpy, (weights.query_key, weights.value_output))
    attention = MergedAttention(query_key, value_output, constant=weights.constant)
    if isinstance(weights, BlockWeights):
        return Block(attention, _merged_relu(weights.layers), **norm_settings(weights.norm))
    return attention


def answer_type(network: nn.Module) -> torch.dtype:
    """Type of the network's answers to inputs of this type."""
    return network.answer if isinstance(network, Merged) else next(network.parameters()).dtype


def _same(first: Tensor, second: Tensor) -> bool:
    return first.dtype == second.dtype and torch.equal(first, second.cpu())


def _merged_relu(layers: Sequence[Layer]) -> ReluNetwork | MergedRelu:
    if len(layers) % 2 or any(mixing_units(first).any() for first in layers[::2]):
        dims = [layers[0][0].shape[1], *(len(weight) for weight, _ in layers)]
        copy = ReluNetwork(dims, bias=[bias is not None for _, bias in layers])
        for linear, (weight, bias) in zip(copy.layers, layers, strict=True):
            linear.weight = nn.Parameter(torch.from_numpy(weight))
            if bias is not None:
                linear.bias = nn.Parameter(torch.from_numpy(bias))
        return copy.requires_grad_(False)
    pairs = []
    for first, second in zip(layers[::2], layers[1::2], strict=True):
        inner, outer = (
            (torch.from_numpy(layer[0]), torch.from_numpy(bias_of(layer))) for layer in (first, second)
        )
        pairs.append(merge_layers(*inner, *outer))
    return MergedRelu(pairs)
