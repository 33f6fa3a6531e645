"""Job -> Finished: draw a piece's random weights, prune them, code the masks."""

import numpy as np
from scipy.sparse import csr_array

from strongticket import __version__
from strongticket.errors import StrongTicketError
from strongticket.pretrained.pieces import paper, shared
from strongticket.pretrained.pieces.job import Finished, Job
from strongticket.seeds import apply_mask, draw
from strongticket.ticket import code_mask, tensor_checksum


def solve_piece(data: bytes) -> bytes:
    """Job -> Finished, in one thread."""
    job = Job.from_bytes(data)
    if job.version != __version__:
        raise StrongTicketError(
            f"this worker has strongticket {__version__}, the driver {job.version}: "
            "install the same version on both"
        )
    piece = job.piece
    target = np.ascontiguousarray(job.target.T if piece.transposed else job.target)
    source = shared if piece.share else paper
    laws = dict(zip(piece.shapes, source.laws(job, target), strict=True))
    left, right = (draw(job.seed, name, shape, laws[name], threads=1) for name, shape in piece.shapes.items())
    *masks, error = source.prune(job, target, left, right)
    unreached = _unreached(target, np.where(masks[0], left, 0), right)
    tensors = []
    for name, weights, mask in zip(piece.shapes, (left, right), masks, strict=True):
        apply_mask(weights, mask)
        found = tensor_checksum(job.recipe, name, weights.shape, [weights])
        tensors.append(code_mask(name, mask, laws[name], found, job.seed))
    errors = {
        "problems": piece.problems,
        "largest": float(np.abs(error).max(initial=0.0)),
        "squared": float(np.square(error).sum()),
        "target_squared": float(np.square(target).sum()),
        "unreached": unreached,
    }
    return Finished(tuple(tensors), errors, job.identity()).to_bytes()


def _unreached(target: np.ndarray, left: np.ndarray, right: np.ndarray) -> int:
    """Entries that no subset reaches: larger than all that could add to them."""
    positive, negative = csr_array(np.maximum(left, 0)), csr_array(np.minimum(left, 0))
    up, down = np.maximum(right, 0).T, np.minimum(right, 0).T
    above, below = positive @ up + negative @ down, positive @ down + negative @ up
    return int(np.count_nonzero((target > above) | (target < below)))
