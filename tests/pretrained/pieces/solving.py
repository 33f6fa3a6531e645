"""Solve a matrix piece by piece, as a build does, and read its product back from the ticket's bytes."""

import numpy as np

from strongticket.pretrained.pieces import Finished, Job, Layout, Takeover, cut, fold, solve_piece
from strongticket.ticket import Ticket
from strongticket.ticket.format import chunks, recipe_text

RECIPE = recipe_text(0, "pretrained", {})


def solved(
    target: np.ndarray, layout: Layout, *, tolerance: float = 0.0, takeover: Takeover | None = None
) -> tuple[np.ndarray, list[Finished], int]:
    """(the product of the pruned factors, what solved them, bytes of all masks)."""
    pieces = cut("w", *target.shape, layout)
    jobs = [Job(piece, target[piece.place], tolerance, "balanced", 0, RECIPE, takeover) for piece in pieces]
    finished = [Finished.from_bytes(solve_piece(job.to_bytes())) for job in jobs]
    tensors = sorted((tensor for each in finished for tensor in each.tensors), key=lambda tensor: tensor.name)
    lines, masks = [tensor.line for tensor in tensors], [tensor.data for tensor in tensors]
    ticket = Ticket.from_bytes(b"".join(chunks(RECIPE, None, {}, lines, masks)))
    product = np.zeros(target.shape)
    for piece in pieces:
        product[piece.place] = fold(piece, ticket)
    return product, finished, sum(map(len, masks))
