"""Edge-popup's parametrization: a weight is its frozen random value where its |score| is in the top k, else 0.

Ramanujan et al. (2020): the forward pass uses w * [|s| in the top k], the backward pass goes straight through
the selection, so ds = dw * w * sign(s). The mask is computed again only when a score has changed (torch counts
the in-place changes of a tensor): once per optimiser step, never for a second micro-batch or an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.frozen import FrozenTensor, TrainedTensor
from strongticket.searching.masking.parametrization import Parametrization
from strongticket.searching.masking.store import Redraw, WeightStore
from strongticket.searching.masking.topk import Cut, RawCut, keep_count, top_k


def _count_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    increment_version([parameter for group in optimizer.param_groups for parameter in group["params"]])


# torch's fused optimisers change parameters without counting it: without this the masks would never move.
register_optimizer_step_post_hook(_count_step)


class Selection:
    """Tensors that share one top-k: a single one, or all of a model. A method may choose in another way."""

    def __init__(self, kept: float) -> None:
        self.kept = kept
        self.members: list[Masked] = []
        self._seen: list[tuple[int, int]] = []

    def choose(self, scores: Sequence[torch.Tensor]) -> Sequence[Cut]:
        """Where each tensor of scores is cut."""
        return top_k(scores, keep_count(self.kept, sum(part.numel() for part in scores)))

    def is_stale(self) -> bool:
        """Whether a score has changed since the last update."""
        return self._state() != self._seen

    def update(self) -> None:
        """Find the thresholds again if a score has changed."""
        if not self.is_stale():
            return
        scores = [member.competing() for member in self.members]
        try:
            cuts = self.choose(scores)
        except StrongTicketError:
            bad = next(member for member in self.members if not bool(member.scores.isfinite().all()))
            raise StrongTicketError(
                f"a score of {bad.frozen.name!r} is not finite: the search has diverged",
                hint="Lower the learning rate.",
            ) from None
        for member, cut in zip(self.members, cuts, strict=True):
            member.set_cut(cut)
        self._seen = self._state()

    def _state(self) -> list[tuple[int, int]]:
        # The address too: moving a model to another device gives its parameters new data without counting it.
        return [(member.scores._version, member.scores.data_ptr()) for member in self.members]

    def forget(self) -> None:
        self._seen = []


class RawSelection(Selection):
    """The largest scores themselves, not their sizes."""

    def choose(self, scores: Sequence[torch.Tensor]) -> Sequence[Cut]:
        return top_k(scores, keep_count(self.kept, sum(part.numel() for part in scores)), RawCut)


class Masked(Parametrization):
    """Frozen weights where the mask of the scores keeps them.

    frozen: the random or trained tensor
    scores: one per weight; the parameter that is trained
    selection: which tensors compete for the kept fraction
    redraw: hold no more than dense training does: scores, and either the masked weights or their gradient. The
        frozen weights are drawn from the seed again, once in the forward and once in the backward pass.
    """

    def __init__(
        self,
        frozen: FrozenTensor | TrainedTensor,
        scores: nn.Parameter,
        selection: Selection,
        *,
        redraw: Redraw,
    ) -> None:
        super().__init__(scores)
        self.store = WeightStore(frozen, redraw=redraw)
        self.selection = selection
        selection.members.append(self)
        self._cut = Cut(0.0)
        self._weight: torch.Tensor | None = None
        self._meeting: torch.Tensor | None = None
        self._fates: torch.Tensor | None = None
        if frozen.sparsity:
            self._fates = torch.from_numpy(frozen.fates())

    @property
    def frozen(self) -> FrozenTensor | TrainedTensor:
        return self.store.tensor

    @property
    def scores(self) -> nn.Parameter:
        return self.parameter

    @property
    def mask(self) -> torch.Tensor:
        """Bool of the tensor's shape, for the scores as they are now."""
        with torch.inference_mode(False), torch.no_grad():
            self.selection.update()
            return self.gate() != 0

    def competing(self) -> torch.Tensor:
        """The scores of the weights that a selection may choose: all, or those that a sparse source leaves free."""
        fates = self.fates()
        return self.scores if fates is None else self.scores[fates == 0]

    def fates(self) -> torch.Tensor | None:
        """What the seed has decided about each weight of a sparse source: -1 dropped, 0 free, 1 locked."""
        if self._fates is not None and self._fates.device != self.scores.device:
            self._fates = self._fates.to(self.scores.device)
        return self._fates

    def gate(self) -> torch.Tensor:
        """What each frozen weight is multiplied by: 1 where it is kept, else 0; some methods have other values."""
        return self._with_fates(self._cut.gate)

    def training_gate(self) -> torch.Tensor:
        """The same in a training step; a method may soften it."""
        return self.gate()

    def _with_fates(self, gate_of: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """The gate of the competing scores where the source leaves weights free; elsewhere 1 or 0, as the seed says."""
        fates = self.fates()
        if fates is None:
            return gate_of(self.scores)
        gate = (fates == 1).to(self.scores.dtype)
        gate[fates == 0] = gate_of(self.competing())
        return gate

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        if self._final is not None:
            return self._final
        if self.selection.is_stale() or self._weight is None:
            with torch.inference_mode(False), torch.no_grad():
                self.selection.update()
                self._weight = self.training_gate() if self.training else self.gate()
                for rows, weights in self.store.chunks(scores.device):
                    self._weight[rows].mul_(weights)
                self.finish(self._weight)
                self._weight.add_(0.0)  # -0.0 becomes 0.0, as in a ticket
            meeting = self._meeting
            if meeting is None or (meeting.device, meeting.requires_grad) != (
                scores.device,
                scores.requires_grad,
            ):
                with torch.inference_mode(False), torch.enable_grad():
                    self._meeting = _Scores.apply(scores, self.store, self._cut.by_size)  # type: ignore[no-untyped-call]
        weight: torch.Tensor = _Weight.apply(self._meeting, self)  # type: ignore[no-untyped-call]
        return weight

    def finish(self, weight: torch.Tensor) -> None:
        """Change the masked weights in place; a method may."""

    def set_cut(self, cut: Cut) -> None:
        self._cut = cut
        self._weight = None

    def set_frozen(self, frozen: FrozenTensor | TrainedTensor) -> None:
        self.store = WeightStore(frozen, redraw=self.store.redraw)
        self._weight = self._meeting = None

    def stored(self) -> StoredTensor:
        mask, fates = self.mask, self.fates()  # finds the cut
        levels = None
        if self._cut.has_levels:
            levels = self.gate().cpu().numpy().astype(np.int64)
        return StoredTensor(
            self.frozen.law,
            mask.cpu().numpy(),
            self.slices,
            levels,
            sparsity=self.frozen.sparsity,
            fates=None if fates is None else fates.cpu().numpy(),
        )

    def release(self) -> None:
        """Called when the weights' gradient arrives. The graph keeps what it still needs."""
        if self.store.draws_again(self.scores.device):
            self._weight = None

    def __getstate__(self) -> dict[str, Any]:
        # For deepcopy: what a graph or a version number refers to is computed again.
        self.selection.forget()
        return self.__dict__ | {"_weight": None, "_meeting": None}


class _Weight(torch.autograd.Function):
    """One use of the masked weights. Two tied uses meet in one _Scores node, which sees their sum."""

    @staticmethod
    def forward(ctx: Any, meeting: torch.Tensor, masked: Masked) -> torch.Tensor:
        ctx.masked = masked
        assert masked._weight is not None
        return masked._weight.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.masked.release()
        return gradient, None


class _Scores(torch.autograd.Function):
    """From the weights' gradient to the scores'. Its output has the weights' shape and no memory."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, store: WeightStore, by_size: bool) -> torch.Tensor:
        # Not saved with save_for_backward: accumulation goes backward through this node several times.
        ctx.scores, ctx.store, ctx.by_size = scores.detach(), store, by_size
        return scores.new_empty(()).expand(scores.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        out = torch.empty_like(ctx.scores)
        for rows, weights in ctx.store.chunks(gradient.device):
            torch.mul(weights, gradient[rows], out=out[rows])
            if ctx.by_size:
                out[rows].mul_(ctx.scores[rows].sign())
        return out, None, None
