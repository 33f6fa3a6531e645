"""Lemma 4/7: a matrix from the product of two pruned random ones, one subset sum per entry.

target ≈ scale * (left ⊙ left_mask) @ (right ⊙ right_mask).T. Each unit keeps at most one entry of
`left`, that of the row it serves; which entries of `right` it keeps is then free, entry by entry.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from strongticket import checks
from strongticket.builders import assign
from strongticket.errors import StrongTicketError
from strongticket.subset_sum import MAX_EXACT, Products
from strongticket.subset_sum.solve import solve_checked

Assignment = Literal["balanced", "paper", "one-sign"]

ROUNDS = 40  # of moving units; each round costs at most one more solve of every row
WORTH_MOVING = 3.0  # a unit about halves its new row's error and doubles its old one's: move at this ratio


@dataclass(frozen=True)
class ProductBuild:
    """The masks of one matrix, what their product gives, and how far it is from the target.

    Attributes:
        left_mask, right_mask: which weights are kept.
        product: what the kept weights give.
        error: product - target.
    """

    left_mask: Bool[np.ndarray, "rows units"]
    right_mask: Bool[np.ndarray, "columns units"]
    product: Float[np.ndarray, "rows columns"]
    error: Float[np.ndarray, "rows columns"]


def build_product(
    target: Num[np.ndarray, "rows columns"],
    left: Num[np.ndarray, "rows units"],
    right: Num[np.ndarray, "columns units"],
    *,
    scale: float = 1.0,
    assignment: Assignment | Int[np.ndarray, " units"] = "balanced",
    tolerance: float | None = None,
    kept: float | None = None,
) -> ProductBuild:
    """Prune `left` and `right` so that `scale` * left @ right.T becomes `target`.

    Args:
        target: the matrix to build.
        left: random weights; a unit keeps at most one of its own.
        right: random weights; a unit keeps any of its own.
        scale: a number other than 0.
        assignment: "paper" (contiguous groups), "one-sign" (the positive units of these groups), "balanced"
            (units go where they are strong, then from rows that are done to rows that still fail), or the row
            each unit serves, -1 for none.
        tolerance: an entry this close is close enough; None asks for the best everywhere.
        kept: share of the products of each entry that are kept: the nearest whole number of them, at least one, for
            up to 40 units a row; None for any.

    >>> target = np.array([[0.3, -0.2], [0.1, 0.4]])
    >>> left, right = (draw(0, name, (2, 32), Uniform(1.0)) for name in ("left", "right"))
    >>> built = build_product(target, left, right)
    >>> bool(abs((left * built.left_mask) @ (right * built.right_mask).T - target).max() < 1e-3)
    True
    """
    checks.finite(target=target, left=left, right=right)
    checks.shaped((None, None), left=left, right=right)
    rows, units = left.shape
    checks.shaped((len(right), units), right=right)
    checks.shaped((rows, len(right)), target=target)
    if not np.isfinite(scale) or scale == 0:
        raise StrongTicketError(f"scale={scale}: expected a finite number other than 0")
    with np.errstate(over="ignore"):
        wanted = target.astype(np.float64) / scale
    checks.finite(**{"target / scale": wanted})
    accepted = None if tolerance is None else tolerance / abs(scale)
    work = _Work(wanted, _floats(left), _floats(right), accepted, kept)
    if isinstance(assignment, np.ndarray):
        if assignment.shape != (units,) or not np.isin(assignment, np.arange(assign.NO_ROW, rows)).all():
            raise StrongTicketError(
                f"assignment={assignment}: expected a row, 0 … {rows - 1}, or -1 for each of {units} units"
            )
        work.start(assignment)
    elif assignment == "paper":
        work.start(assign.contiguous(rows, units))
    elif assignment == "one-sign":
        work.start(assign.one_sign(left))
    elif assignment == "balanced":
        wants_units = np.any(target != 0, axis=1)
        work.start(assign.by_strength(np.abs(left), _shares(wants_units, units), MAX_EXACT))
        work.balance()
    else:
        raise StrongTicketError(
            f"assignment={assignment!r}: expected balanced, paper, one-sign or a row for each unit"
        )
    return work.result(scale)


def _floats(weights: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weights, np.float32 if weights.dtype == np.float32 else np.float64)


def _shares(wanted: np.ndarray, units: int) -> np.ndarray:
    """How many units each row gets at first: the same for all that want some, the remainder from the top."""
    assign.check_width(int(wanted.sum()), units)
    rows = max(int(wanted.sum()), 1)
    share = np.where(wanted, units // rows, 0)
    share[np.flatnonzero(wanted)[: units % rows]] += 1
    return np.minimum(share, MAX_EXACT)


class _Work:
    """The state of one build: per row, the units that serve it and the subsets chosen among them."""

    def __init__(
        self,
        target: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        tolerance: float | None,
        kept: float | None,
    ) -> None:
        self.target, self.left, self.right, self.tolerance, self.kept = target, left, right, tolerance, kept

    def start(self, owner: np.ndarray) -> None:
        rows = np.arange(len(self.target))
        order = np.argsort(owner, kind="stable")
        edges = np.searchsorted(owner[order], np.append(rows, len(rows)))
        self.units = [order[a:b] for a, b in pairwise(edges)]
        self.masks, self.sums = self._solve(rows, self.units)

    def _solve(self, rows: np.ndarray, units: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """The best masks (columns, units) of these rows with these units, and the sums that they give."""
        columns, counts = self.target.shape[1], np.array([len(some) for some in units])
        masks, sums = [np.empty(0, np.bool_)] * len(rows), np.empty((len(rows), columns))
        for count in np.unique(counts):
            some = np.flatnonzero(counts == count)
            table = np.array([units[i] for i in some], dtype=np.int64).reshape(len(some), count)
            products = Products(self.left[rows[some, None], table], self.right, table)
            size = None if self.kept is None else min(int(count), max(1, round(self.kept * count)))
            found = solve_checked(products, self.target[rows[some]].ravel(), self.tolerance, size)
            sums[some] = found.sums.reshape(len(some), columns)
            for i, mask in zip(some, found.masks.reshape(len(some), columns, count), strict=True):
                masks[i] = mask
        return masks, sums

    def balance(self) -> None:
        """Move units from the rows that do best to the rows that do worst, while that lowers the worst of both."""
        tried: set[tuple[int, int, int]] = set()
        for _ in range(ROUNDS):
            moves = self._moves(tried)
            if not moves:
                return
            rows = np.array([row for move in moves for row in move[:2]])
            units = []
            for giver, taker, unit in moves:
                units.append(np.setdiff1d(self.units[giver], unit))
                units.append(np.sort(np.append(self.units[taker], unit)))
            masks, sums = self._solve_again(rows, units)
            before, after = self._errors(rows, self.sums[rows]), self._errors(rows, sums)
            for m, move in enumerate(moves):
                both = slice(2 * m, 2 * m + 2)
                if after[both].max() < before[both].max():
                    for place in range(both.start, both.stop):
                        row = int(rows[place])
                        self.units[row], self.masks[row] = units[place], masks[place]
                        self.sums[row] = sums[place]
                else:
                    tried.add(move)

    def _errors(self, rows: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """The largest error of each row."""
        largest: np.ndarray = np.abs(self.target[rows] - sums).max(axis=1)
        return largest

    def _moves(self, tried: set[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """(giver, taker, unit), each row at most once: the worst row takes from the best, and so on inwards."""
        errors = self._errors(np.arange(len(self.target)), self.sums)
        order = [int(r) for r in np.argsort(errors, kind="stable")]
        givers = [r for r in order if len(self.units[r]) > 1]
        takers = [r for r in order[::-1] if len(self.units[r]) < MAX_EXACT]
        moves: list[tuple[int, int, int]] = []
        gave: set[int] = set()
        for taker in takers:
            if not givers or errors[taker] <= (self.tolerance or 0.0):
                break
            if taker in gave or errors[taker] < WORTH_MOVING * errors[givers[0]]:
                break
            move = self._best_move(givers, taker, errors, tried)
            if move is not None:
                moves.append(move)
                givers.remove(move[0])
                gave.add(move[0])
        return moves

    def _best_move(
        self, givers: list[int], taker: int, errors: np.ndarray, tried: set[tuple[int, int, int]]
    ) -> tuple[int, int, int] | None:
        """The unit worth most to the taker and least to its giver; the best row that has one gives it up."""
        worth = self._worth(taker)
        for giver in givers:
            if giver == taker or errors[taker] < WORTH_MOVING * errors[giver]:
                return None
            units = self.units[giver]
            gain = worth[units] - 0.5 * np.abs(self.left[giver, units])
            for place in np.argsort(-gain, kind="stable"):
                unit = int(units[place])
                if worth[unit] > 0 and (giver, taker, unit) not in tried:
                    return giver, taker, unit
        return None

    def _worth(self, row: int) -> np.ndarray:
        """What each unit is worth to the row. Where its worst entry is out of reach, only the right sign helps."""
        off = self.target[row] - self.sums[row]
        column = int(np.abs(off).argmax())
        products: np.ndarray = np.sign(off[column]) * self.left[row] * self.right[column]
        reach = products[self.units[row]].clip(0).sum()
        if reach < np.sign(off[column]) * self.target[row, column]:
            return products
        strength: np.ndarray = np.abs(self.left[row])
        return strength

    def _solve_again(self, rows: np.ndarray, units: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """The same for rows that have other units now: entries that are near enough and lose none stay as they are."""
        masks, sums = self._solve(rows, units)
        if self.kept is not None:  # with more or fewer units, other sizes are asked for
            return masks, sums
        near = np.abs(self.sums[rows] - self.target[rows]) <= (self.tolerance or 0.0)
        for i, (row, new) in enumerate(zip(rows, units, strict=True)):
            stay = np.isin(self.units[row], new)
            kept = near[i] & ~self.masks[row][:, ~stay].any(axis=1)
            before = np.zeros_like(masks[i])
            before[:, np.searchsorted(new, self.units[row][stay])] = self.masks[row][:, stay]
            masks[i][kept], sums[i, kept] = before[kept], self.sums[row, kept]
        return masks, sums

    def result(self, scale: float) -> ProductBuild:
        left_mask = np.zeros(self.left.shape, np.bool_)
        right_mask = np.zeros(self.right.shape, np.bool_)
        units = np.concatenate(self.units)
        rows = np.repeat(np.arange(len(self.units)), [len(u) for u in self.units])
        chosen = np.concatenate(self.masks, axis=1)
        right_mask[:, units] = chosen
        used = chosen.any(axis=0)
        left_mask[rows[used], units[used]] = True
        product = scale * self.sums
        return ProductBuild(left_mask, right_mask, product, product - scale * self.target)
