"""Which entries of a head no subset of their units can reach: the failures behind the largest errors."""

import numpy as np

from strongticket.builders import assign
from strongticket.nets import MergedAttention
from strongticket.seeds import draw
from strongticket.ticket import Ticket


def entries_out_of_reach(ticket: Ticket, target: MergedAttention) -> int:
    """Return how many entries of W_QK and W_VO lie beyond the sum of all their row's products of one sign.

    Args:
        ticket: of a single head without biases.
        target: what it was built for, merged.
    """
    drawn = {
        name: draw(ticket.seed, name, mask.shape, ticket.laws[name])[0].astype(np.float64)
        for name, mask in ticket.masks.items()
    }
    kept = {name: mask[0] for name, mask in ticket.masks.items()}
    total = 0
    for wanted, left, right, scale in (
        (target.query_key[0].numpy(), "query", "key", ticket.settings["key_dim"] ** -0.5),
        (target.value_output[0].numpy(), "value", "output", 1.0),
    ):
        factors = [(drawn[left], kept[left]), (drawn[right], kept[right])]
        if right == "output":  # stored as (units, columns)
            factors[1] = (drawn[right].T, kept[right].T)
        if ticket.metadata["assignment"] == "balanced" and wanted.shape[0] > wanted.shape[1]:
            wanted, factors = wanted.T, factors[::-1]  # the smaller side is structured
        (structured, mask), (free, _) = factors
        serves = _serving(ticket.metadata["assignment"], structured, mask)
        products = scale * (structured * serves)[:, None] * free[None]  # (rows, columns, units)
        above, below = products.clip(min=0).sum(-1), products.clip(max=0).sum(-1)
        total += int(((wanted > above) | (wanted < below)).sum())
    return total


def _serving(assignment: str, structured: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(rows, units): which units may serve which row.

    The builder's own rows are read off the mask, and a unit that it left unused could have served any: no failure is
    counted that did not happen.
    """
    if assignment == "balanced":
        return mask | ~mask.any(0)
    owner = assign.contiguous(*mask.shape) if assignment == "paper" else assign.one_sign(structured)
    return owner[None] == np.arange(len(mask))[:, None]
