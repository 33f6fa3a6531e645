"""IteRand (Chijiwa et al., NeurIPS 2021): weights that are dropped are drawn again now and then.

"Pruning randomly initialized neural networks with iterative randomization". The file stores which draw a kept weight
is of.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from strongticket.searching.config import SearchConfig
from strongticket.searching.masking.codes import StoredTensor
from strongticket.searching.masking.parameters import Attachment
from strongticket.searching.masking.source import Source
from strongticket.searching.masking.weights import Masked
from strongticket.searching.methods.edge_popup import attach_scores
from strongticket.seeds import Uniform, draw

ROUNDS = 3  # in a search, at equal distances
FRACTION = 0.1  # of the dropped weights that are drawn again in a round


def iterand(model: nn.Module, config: SearchConfig) -> Attachment:
    """Edge-popup, with a tenth of the dropped weights drawn again three times in the search."""
    attachment = attach_scores(model, config, DrawnAgain)

    def draw_again(done: int, total: int) -> None:
        number = done * (ROUNDS + 1) // total
        if done and number != (done - 1) * (ROUNDS + 1) // total:
            attachment.refresh()
            for matrix in attachment.masked:
                matrix.weights.draw_dropped(number, matrix.parameter)

    attachment.before_step = draw_again
    return attachment


class DrawnAgain(Masked):
    """Masked weights of several draws: `draw_of` says which draw each is of, 0 for the first."""

    draw_of: torch.Tensor

    def __init__(self, source: Source, frozen: torch.Tensor | None = None) -> None:
        super().__init__(source, frozen)
        self.register_buffer("frozen", self.frozen)  # persistent: checkpoints keep what was drawn again
        self.register_buffer("draw_of", torch.zeros(source.shape, dtype=torch.uint8))

    def draw_dropped(self, number: int, scores: torch.Tensor) -> None:
        """Draw some of the dropped weights again; which ones follows from the seed."""
        source, device = self.source, self.frozen.device
        chosen = draw(source.seed, f"{source.name}.redraw{number}", source.shape, Uniform(1.0))
        again = torch.from_numpy(chosen < 2 * FRACTION - 1).to(device) & (self.gate(scores) == 0)
        later = replace(source, name=_name(source.name, number)).weights()
        self.frozen[again] = torch.from_numpy(later).to(device)[again]
        self.draw_of[again] = number

    def stored(self, scores: torch.Tensor) -> StoredTensor:
        found, of = super().stored(scores), self.draw_of.cpu().numpy()
        numbers = [int(number) for number in np.unique(of[found.mask]) if number]
        draws = {_name(self.source.name, number): found.mask & (of == number) for number in numbers}
        return replace(found, mask=found.mask & (of == 0), draws=draws)


def _name(name: str, number: int) -> str:
    """Tensor name of a later draw."""
    return f"{name}:draw{number}"
