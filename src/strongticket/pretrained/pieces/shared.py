"""The source of real models: one-sided right weights, and hidden units that a few rows share.

Weights of one sign keep the centre of all subset sums near 0 whatever the column, where symmetric ones would move it as
much as the sums spread. Rows that share units are made by sums of vectors: one bit of the mask serves several entries,
and of 2^(rows·units) vectors the nearest is closer than the nearest of 2^units numbers in each row.
"""

import numpy as np

from strongticket.pretrained.pieces.cut import FEW, FEW_UNITS, Layout, Piece
from strongticket.pretrained.pieces.job import Job
from strongticket.pretrained.pieces.kernel import MAX_TRIED, WINDOW, best_subsets
from strongticket.seeds import Law, OneSided, Uniform, draw
from strongticket.ticket import balance, tuples

# By rows in a tuple: the best deviation of subset sums for normal numbers, in theirs; and the error in the middle of
# the sums, in their deviation over 2^units. Both measured; theory for random sums has √3, √2, √(5/3).
DEVIATION = {1: 1.8, 2: 1.5, 3: 1.4}
ERROR = {1: 2.3, 2: 1.45, 3: 1.3}
REACH = 0.6  # in deviations times √units: where sums become rare
VECTOR_REACH = 0.4  # a vector's largest number, in the largest sum of its sign
VECTOR_TOLERANCE = 2e-4  # and how near its entries need to come, in its root mean square
_SIGNIFICANT = 5  # bits of the scale, which the file has to carry
_WORTH = 0.5  # bits for each number that rows apart must save


def laws(job: Job, target: np.ndarray) -> tuple[Law, Law]:
    """Of left and right."""
    if not target.any():
        return Uniform(1.0), OneSided(1.0)
    if len(target) <= FEW:
        wanted = vector_scale(job, target)
    else:
        rows, units = largest_tuple(job.piece)
        # A unit adds left · right or nothing: deviation ½ √(E left² · E right²), where E left² = 1/3, E right² = 7/12.
        wanted = best_deviation(target, rows, units) / (0.5 * np.sqrt(units * 7 / 36))
    exponent = np.floor(np.log2(wanted)) + 1 - _SIGNIFICANT
    return Uniform(1.0), OneSided(float(np.round(wanted / 2.0**exponent) * 2.0**exponent))


def vector_scale(job: Job, target: np.ndarray) -> float:
    """What brings every entry within reach of the left weights as drawn.

    A few rows have no others to exchange units with. If most of a row's left weights are negative, its positive sums
    are small, so a scale for the average draw would leave numbers of about the same size, as in a norm, out of reach.
    """
    piece = job.piece
    left = draw(job.seed, piece.left, piece.shapes[piece.left], Uniform(1.0), threads=1)
    kept = balance(left, piece.share)
    left = np.where(kept & (np.cumsum(kept, axis=1) <= MAX_TRIED), left, 0)
    # Right weights are 3/4 of their scale on average. A side of less than 1 counts as 1, to keep the scale bounded.
    reach = [0.75 * np.maximum(np.maximum(side, 0).sum(axis=1), 1.0) for side in (left, -left)]
    largest = [np.maximum(side, 0).max(axis=1) for side in (target, -target)]
    return float(np.max(np.divide(largest, reach))) / VECTOR_REACH


def largest_tuple(piece: Piece) -> tuple[int, int]:
    """(rows, units) of the piece's first full tuple."""
    sizes = np.diff(tuples(piece.stop - piece.start, piece.units, piece.share), axis=0)
    rows, units = max(map(tuple, sizes.tolist()))
    return rows, units


def best_deviation(target: np.ndarray, rows: int, units: int) -> float:
    """What makes the expected square error smallest: of entries within reach of the sums, and of those beyond."""
    sizes = np.sort(np.abs(target).reshape(-1))[::-1]
    sizes = sizes[: max(1000, len(sizes) // 50)]  # what could be out of reach
    normal = DEVIATION[rows] * float(np.sqrt(np.square(target).mean()))
    options = normal * 1.07 ** np.arange(40)
    inside = np.square(ERROR[rows] * options * 2.0 ** (-units / rows))
    beyond = [np.square(np.maximum(sizes - REACH * np.sqrt(units) * scale, 0)).sum() for scale in options]
    return float(options[np.argmin(inside + np.array(beyond) / target.size)])


def rows_apart(target: np.ndarray, layout: Layout) -> tuple[int, ...]:
    """Rows whose largest numbers would stretch the scale of all others, so that units of their own cost fewer bits.

    target: its rows are those of the side with the structure. Sums that reach twice as far need a bit more for each
    number of the matrix; a row apart needs FEW_UNITS bits for its own numbers.
    """
    side, share = len(target), layout.rows_sharing
    if layout.paper or side <= FEW or layout.units >= FEW_UNITS:
        return ()
    usual = float(np.median(np.sqrt(np.square(target).mean(axis=1))))
    if not usual:
        return ()
    reach = REACH * np.sqrt(layout.units * share) * DEVIATION[share] * usual
    largest = np.abs(target).max(axis=1)
    order = np.argsort(-largest, kind="stable")
    stretched = np.log2(np.maximum(largest[order] / reach, 1))  # if all rows before it are apart
    bits = side * stretched + (FEW_UNITS - layout.units) * np.arange(side)
    count = int(np.argmin(bits))
    if bits[0] - bits[count] < _WORTH * side:
        return ()
    return tuple(sorted(order[:count].tolist()))


def prune(
    job: Job, target: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mask of left, mask of right, error of every entry).

    With takeover, columns are solved in its order, and later ones make up for the errors of earlier ones.
    """
    piece, tolerance = job.piece, job.tolerance
    if len(target) <= FEW:
        tolerance = VECTOR_TOLERANCE * float(np.sqrt(np.square(target).mean()))
    left_mask = balance(left, piece.share)
    right_mask, error = np.zeros(right.shape, np.bool_), np.empty(target.shape)
    order, takeover = np.arange(len(right), dtype=np.int32), np.zeros((0, 0), np.float32)
    if job.takeover is not None:
        order, takeover = job.takeover.order, job.takeover.shares
    edges = tuples(len(target), piece.units, piece.share)
    for first, stop in zip(edges[:-1, 0], edges[1:, 0], strict=True):
        units = np.flatnonzero(left_mask[first])
        mask = np.zeros((len(right), len(units)), np.bool_)
        wanted = np.array(target[first:stop, order], order="C")
        missed = np.empty(wanted.shape)
        best_subsets(
            np.ascontiguousarray(left[first:stop, units]),
            np.ascontiguousarray(right[order][:, units]),
            wanted,
            tolerance,
            WINDOW[stop - first],
            mask,
            missed,
            takeover,
        )
        right_mask[order[:, None], units] = mask
        error[first:stop, order] = missed + (wanted - target[first:stop, order])
    return left_mask, right_mask, error
