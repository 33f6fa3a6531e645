"""A matrix as pruned random ones: cut into pieces, solved anywhere, kept, resumed, folded together again.

>>> pieces = cut("w", 3, 100, Layout(12))
>>> job = Job(pieces[0], np.ones((3, 100)), tolerance=1e-2, assignment="balanced", seed=0, recipe=b"{}")
>>> Finished.from_bytes(solve_piece(job.to_bytes())).errors["largest"] < 0.2
True
"""

from strongticket.pretrained.pieces.cut import FEW as FEW
from strongticket.pretrained.pieces.cut import FEW_UNITS as FEW_UNITS
from strongticket.pretrained.pieces.cut import PROBLEMS as PROBLEMS
from strongticket.pretrained.pieces.cut import Layout as Layout
from strongticket.pretrained.pieces.cut import Piece as Piece
from strongticket.pretrained.pieces.cut import cut as cut
from strongticket.pretrained.pieces.fold import fold as fold
from strongticket.pretrained.pieces.job import Finished as Finished
from strongticket.pretrained.pieces.job import Job as Job
from strongticket.pretrained.pieces.runner import Folder as Folder
from strongticket.pretrained.pieces.runner import Progress as Progress
from strongticket.pretrained.pieces.runner import run as run
from strongticket.pretrained.pieces.shared import rows_apart as rows_apart
from strongticket.pretrained.pieces.solve import solve_piece as solve_piece
from strongticket.pretrained.pieces.takeover import Takeover as Takeover
