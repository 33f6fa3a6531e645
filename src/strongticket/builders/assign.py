"""Which row of the target each unit serves. Lemma 7 says: that of its contiguous group, blindly."""

import numpy as np
from jaxtyping import Float, Int

from strongticket.compiled import njit
from strongticket.errors import StrongTicketError

NO_ROW = -1
BEST_ROWS = 32  # how many of its best rows a unit is considered for first


def contiguous(rows: int, units: int) -> Int[np.ndarray, " units"]:
    """Lemma 7's assignment: group r of units // rows units serves row r; a remainder serves none."""
    check_width(rows, units)
    owner = np.repeat(np.arange(rows), units // rows)
    return np.append(owner, np.full(units - len(owner), NO_ROW))


def one_sign(left: Float[np.ndarray, "rows units"]) -> Int[np.ndarray, " units"]:
    """Lemma 7's groups without the units whose weight is negative, as Lemma 2 serves a positive part."""
    owner = contiguous(*left.shape)
    return np.where(left[owner, np.arange(len(owner))] > 0, owner, NO_ROW)


def by_strength(
    strength: Float[np.ndarray, "rows units"], share: Int[np.ndarray, " rows"], max_units: int
) -> Int[np.ndarray, " units"]:
    """Give each row its share of units, strongest pairs first, then what is left, up to `max_units` per row.

    `strength[r, k]` is what unit k would be worth to row r: the |weight| it keeps there. 0 means never.
    """
    rows, units = strength.shape
    candidates, worth = np.repeat(np.arange(rows)[:, None], units, axis=1), strength
    if rows > BEST_ROWS:
        candidates = np.argpartition(-strength, BEST_ROWS - 1, axis=0)[:BEST_ROWS]
        worth = np.take_along_axis(strength, candidates, axis=0)
    order = np.argsort(-worth, axis=None, kind="stable")
    owner, places = np.full(units, NO_ROW), share.astype(np.int64)
    _take_in_order(order, candidates, worth, owner, places)
    _fill_up(strength, owner, places)
    _fill_up(strength, owner, np.where(share > 0, max_units - share + places, 0))
    return owner


def check_width(rows: int, units: int) -> None:
    """Raise unless there is a unit for each row."""
    if units < rows:
        raise StrongTicketError(
            f"the width {units} is too small: each of the {rows} rows needs a unit of its own",
            hint=f"The smallest width that works is {rows}.",
        )


@njit(cache=True)
def _take_in_order(order, candidates, worth, owner, places):
    """Walk through (row, unit) pairs from the strongest on; take a pair if both are still free."""
    units = worth.shape[1]
    for pair in order:
        place, unit = pair // units, pair % units
        row = candidates[place, unit]
        if owner[unit] == NO_ROW and places[row] > 0 and worth[place, unit] > 0:
            owner[unit] = row
            places[row] -= 1


@njit(cache=True)
def _fill_up(strength, owner, places):
    """Units that no row took go to the row with free places where they are strongest."""
    rows, units = strength.shape
    for unit in range(units):
        if owner[unit] != NO_ROW:
            continue
        best, best_strength = NO_ROW, 0.0
        for row in range(rows):
            if places[row] > 0 and strength[row, unit] > best_strength:
                best, best_strength = row, strength[row, unit]
        if best != NO_ROW:
            owner[unit] = best
            places[best] -= 1
