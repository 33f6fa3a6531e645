"""Weights that are more than one masked draw: what a ticket stores of them, in masks alone.

A coded weight matrix is its masked random tensor, plus later draws under names of their own, times a small integer
per weight. Of a sparse source the mask is only over the weights that the seed leaves free. The integers are masks too:
how many bits each has, its lower bits and its sign, each over the weights that have them, so that a file codes every
one of them at its entropy. docs/ticket-format.md has the details.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strongticket.errors import StrongTicketError
from strongticket.searching.masking.source import DECISION_LAW, NONE, ScaledSlice, Sparsity, decision_name
from strongticket.seeds import Constant, Law

_PART_LAW = Constant(1.0)  # the tensor is the mask


@dataclass(frozen=True)
class StoredTensor:
    """What a ticket needs to make one weight matrix again.

    Attributes:
        law: of the random weights
        mask: True where a weight is kept
        slices: rows or columns that are scaled after the draw
        levels: an integer per weight that multiplies it, 0 exactly where the mask drops it; None means 1
        draws: further masked draws of the same law that are added, by tensor name, for weights the mask drops
        sparsity: of the source; the mask then agrees with `decision`
        decision: what the seed has decided, -1 dropped, 0 free, 1 locked; None if all weights are free
    """

    law: Law
    mask: np.ndarray
    slices: tuple[ScaledSlice, ...] = ()
    levels: np.ndarray | None = None
    draws: dict[str, np.ndarray] = field(default_factory=dict)
    sparsity: Sparsity = NONE
    decision: np.ndarray | None = None

    @property
    def kept(self) -> int:
        """How many weights are not 0."""
        return sum(int(mask.sum()) for mask in (self.mask, *self.draws.values()))

    def tensors(self, name: str) -> dict[str, tuple[np.ndarray, Law]]:
        """The ticket's tensors of this matrix: mask and law by tensor name."""
        found = {name: (self.mask, self.law)}
        if self.decision is not None:
            whole = np.ones(self.mask.shape, bool)
            found = {name: (whole, self.law), decision_name(name): (whole, DECISION_LAW)}
            found[f"{name}:free"] = (self.mask[self.decision == 0], _PART_LAW)
        found |= {draw: (mask, self.law) for draw, mask in self.draws.items()}
        parts = {} if self.levels is None else level_masks(self.levels)
        return found | {f"{name}:{part}": (mask, _PART_LAW) for part, mask in parts.items()}

    def code(self) -> dict[str, Any]:
        """The entry of this matrix in the ticket's settings; empty for a plain masked draw."""
        code: dict[str, Any] = {}
        if self.levels is not None:
            code["masks"] = {part: int(mask.size) for part, mask in level_masks(self.levels).items()}
        if self.draws:
            code["draws"] = list(self.draws)
        if self.decision is not None:
            code["free"] = {
                "dropped": self.sparsity.dropped,
                "locked": self.sparsity.locked,
                "count": int((self.decision == 0).sum()),
            }
        return code


def code_shapes(codes: Any, matrices: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors that codes add to a ticket; `codes`, from the settings of a file, is checked."""
    if not isinstance(codes, dict):
        raise StrongTicketError("codes must be an object")
    found: dict[str, tuple[int, ...]] = {}
    for name, code in codes.items():
        if name not in matrices or not isinstance(code, dict) or code.keys() - {"masks", "draws", "free"}:
            raise StrongTicketError(
                f"the code of {name!r} must be of a weight matrix, with masks, draws and free"
            )
        masks, draws = code.get("masks", {}), code.get("draws", [])
        if not isinstance(draws, list) or not all(isinstance(draw, str) for draw in draws):
            raise StrongTicketError(f"the code of {name!r}: draws must be names")
        counts: list[tuple[str, Any]] = list(masks.items()) if isinstance(masks, dict) else [("", None)]
        if "free" in code:
            free = code["free"]
            if not isinstance(free, dict) or free.keys() != {"dropped", "locked", "count"}:
                raise StrongTicketError(f"the code of {name!r}: free must have dropped, locked and count")
            Sparsity(free["dropped"], free["locked"])
            counts.append(("free", free["count"]))
            draws = [*draws, decision_name(name)]
        if not all(type(count) is int and 0 <= count <= np.prod(matrices[name]) for _, count in counts):
            raise StrongTicketError(f"the code of {name!r}: masks must be counts of at most its weights")
        extra: dict[str, tuple[int, ...]] = {f"{name}:{part}": (count,) for part, count in counts}
        extra |= dict.fromkeys(draws, matrices[name])
        if len(extra) != len(draws) + len(counts) or extra.keys() & (found.keys() | matrices.keys()):
            raise StrongTicketError(f"the code of {name!r} uses a tensor's name twice")
        found |= extra
    return found


def decode(
    code: dict[str, Any], name: str, weights: Callable[[str], np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """A matrix before its slices are scaled, and the integers to multiply it by after that, or None.

    `weights` gives the ticket's regenerated tensors by name.
    """
    matrix = weights(name)
    if "free" in code:
        matrix = _sparse(code["free"], matrix, weights(decision_name(name)), weights(f"{name}:free"))
    for draw in code.get("draws", []):
        matrix = matrix + weights(draw)
    levels = None
    if "masks" in code:
        parts = {part: weights(f"{name}:{part}") != 0 for part in code["masks"]}
        levels = np.zeros(matrix.shape, np.float32)
        levels[matrix != 0] = _read_levels(int(np.count_nonzero(matrix)), parts)
    return matrix, levels


def _sparse(free: dict[str, Any], matrix: np.ndarray, source: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The weights that are locked, and the chosen ones of those that are free."""
    decision = Sparsity(free["dropped"], free["locked"]).decide(source)
    is_free = decision == 0
    if np.count_nonzero(is_free) != chosen.size:
        raise StrongTicketError(
            f"a code says that {chosen.size} weights are free; its fractions leave {np.count_nonzero(is_free)}"
        )
    kept = decision == 1
    kept[is_free] = chosen != 0
    return np.where(kept, matrix, np.float32(0))


def level_masks(levels: np.ndarray) -> dict[str, np.ndarray]:
    """Masks that say what the integers other than 0 are; see _read_levels.

    >>> {part: mask.tolist() for part, mask in level_masks(np.array([0, 1, -2, 3])).items()}
    {'length1': [False, True, True], 'bit0': [False, True], 'sign': [False, True, False]}
    """
    values = levels[levels != 0].astype(np.int64)
    sizes = np.abs(values)
    length = np.frexp(sizes.astype(np.float64))[1]  # number of bits
    longest = int(length.max()) - 1 if values.size else 0
    masks = {f"length{i}": length[length >= i] > i for i in range(1, longest + 1)}
    masks |= {f"bit{i}": (sizes[length > i + 1] >> i & 1).astype(bool) for i in range(longest)}
    return masks | ({"sign": values < 0} if (values < 0).any() else {})


def _read_levels(count: int, masks: dict[str, np.ndarray]) -> np.ndarray:
    """`count` integers other than 0.

    lengthI, over those of at least I bits: has it more; bitI, over those of more than I + 1 bits: its bit I; sign,
    over all: is it negative.
    """
    longest = sum(part.startswith("length") for part in masks)
    expected = {f"length{i + 1}" for i in range(longest)} | {f"bit{i}" for i in range(longest)}
    if masks.keys() - {"sign"} != expected or longest > 30:
        raise StrongTicketError(f"a code has the masks {sorted(masks)}, expected {sorted(expected)} and sign")

    def read(part: str, where: np.ndarray) -> np.ndarray:
        if masks[part].size != np.count_nonzero(where):
            raise StrongTicketError(
                f"mask {part!r} of a code has {masks[part].size} entries, expected {np.count_nonzero(where)}"
            )
        return masks[part]

    length = np.ones(count, np.int64)
    for i in range(1, longest + 1):
        at_least = length >= i
        length[at_least] += read(f"length{i}", at_least)
    sizes = np.int64(1) << (length - 1)
    for i in range(longest):
        longer = length > i + 1
        sizes[longer] |= read(f"bit{i}", longer).astype(np.int64) << i
    if "sign" in masks:
        sizes[read("sign", np.ones(count, bool))] *= -1
    return sizes
