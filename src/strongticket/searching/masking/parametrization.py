"""What every method attaches to a weight matrix: a parametrization from a trained parameter to the weights."""

from __future__ import annotations

import torch
from torch import nn

from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.frozen import FrozenTensor, ScaledSlice, TrainedTensor


class Parametrization(nn.Module):
    """The parametrization of one weight matrix. Tied modules share one instance.

    parameter: what is trained: scores, or weights before they are rounded
    """

    def __init__(self, parameter: nn.Parameter) -> None:
        super().__init__()
        self._parameter = [parameter]  # in a list: as an attribute it would become a second parameter
        self._final: torch.Tensor | None = None

    @property
    def parameter(self) -> nn.Parameter:
        return self._parameter[0]

    @property
    def frozen(self) -> FrozenTensor | TrainedTensor:
        """The random or trained tensor it starts from."""
        raise NotImplementedError

    @property
    def slices(self) -> tuple[ScaledSlice, ...]:
        """Its query and key slices, scaled by a factor; none if the weights are trained."""
        return self.frozen.slices

    def set_frozen(self, frozen: FrozenTensor | TrainedTensor) -> None:
        """Use another random tensor of the same shape: the query and key scale is part of it."""
        raise NotImplementedError

    def stored(self) -> StoredTensor:
        """What a ticket stores, for the parameter as it is now."""
        raise NotImplementedError

    def settle(self) -> None:
        """Fix the weights as they are now, whatever happens to the parameter later."""
        self.eval()  # what a ticket has: in training a method may soften or draw them
        with torch.no_grad():
            self._final = self(self.parameter).detach().clone()
