"""A matrix as pruned random ones: cut into pieces, solved anywhere, kept, resumed, folded together again.

>>> pieces = cut("w", 3, 100, Layout(12))
>>> job = Job(pieces[0], np.ones((3, 100)), tolerance=1e-2, assignment="balanced", seed=0, recipe=b"{}")
>>> Finished.from_bytes(solve_piece(job.to_bytes())).errors["largest"] < 0.2
True
"""

from strongticket.pretrained.pieces.cut import FEW, FEW_UNITS, PROBLEMS, Layout, Piece, cut
from strongticket.pretrained.pieces.fold import fold
from strongticket.pretrained.pieces.job import Finished, Job
from strongticket.pretrained.pieces.runner import Folder, Progress, run
from strongticket.pretrained.pieces.solve import solve_piece

__all__ = [
    "FEW", "FEW_UNITS", "PROBLEMS", "Finished", "Folder", "Job", "Layout", "Piece", "Progress", "cut", "fold", "run",
    "solve_piece",
]  # fmt: skip
