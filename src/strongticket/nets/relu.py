"""L linear layers with a ReLU between them (Lemma 2, Theorem 10)."""

from collections.abc import Sequence
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn

from strongticket import checks
from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject


class Linear(nn.Linear):
    """torch's own, zero at the start: nothing is drawn from the global generator."""

    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


class ReluNetwork(nn.Module):
    """W_L relu(W_{L-1} … relu(W_1 x)); the source for it is this same class with 2L layers.

    Args:
        dims: width of the input, of each hidden layer and of the output.
        bias: one flag for all layers, or one per layer.

    >>> ReluNetwork([4, 16, 2])(torch.ones(3, 4)).shape  # (…, dim_in) -> (…, dim_out)
    torch.Size([3, 2])
    """

    kind = "relu"

    def __init__(self, dims: Sequence[int], *, bias: Sequence[bool] | bool = False):
        super().__init__()
        if len(dims) < 2:
            raise StrongTicketError(
                f"dims={list(dims)}: expected at least the input's and the output's width"
            )
        checks.whole(**{f"dims[{i}]": size for i, size in enumerate(dims)})
        biases = [bias] * (len(dims) - 1) if isinstance(bias, bool) else [bool(b) for b in bias]
        if len(biases) != len(dims) - 1:
            raise StrongTicketError(
                f"bias has {len(biases)} flags for {len(dims) - 1} layers: pass one per layer, or one for all"
            )
        self.dims, self.biases, self.width = list(dims), biases, dims[0]
        layers = [Linear(a, b, flag) for a, b, flag in zip(dims[:-1], dims[1:], biases, strict=True)]
        self.layers = cast(Sequence[Linear], nn.ModuleList(layers))

    def settings(self) -> JsonObject:
        """Return what `make` needs to make a network of this shape."""
        return dict(dims=list(self.dims), bias=list(self.biases))

    def forward(self, x: Float[Tensor, "*batch dim_in"]) -> Float[Tensor, "*batch dim_out"]:
        if x.shape[-1] != self.dims[0]:
            raise StrongTicketError(
                f"x has shape {tuple(x.shape)}: expected vectors of width {self.dims[0]} (dims[0])"
            )
        for index, layer in enumerate(self.layers):
            x = layer(x if index == 0 else x.relu())
        return x
