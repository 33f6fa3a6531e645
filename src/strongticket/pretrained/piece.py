"""One piece of work, anywhere: a block of a matrix in, coded masks out. All of it is bytes on the way."""

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Float64

from strongticket.errors import StrongTicketError
from strongticket.files import dump_json, parse_json
from strongticket.pretrained.products import Piece, Product
from strongticket.seeds import Uniform, apply_mask, draw
from strongticket.subset_sum import MAX_EXACT
from strongticket.ticket import CodedTensor, checksum, code_mask

FORMAT = "strongticket piece 1"
GROUP = 16  # rows among which a unit chooses
_DIGEST = 32
_one_at_a_time = Lock()  # numba's threads are not made for two callers at once


@dataclass(frozen=True)
class Job:
    """A piece, its target block (coordinates, columns) and everything else its masks depend on.

    tolerance: an entry this close to its target is close enough (absolute).
    recipe: the ticket's first line, which the checksums of its tensors cover.
    """

    piece: Piece
    target: Float64[np.ndarray, "coordinates columns"]
    tolerance: float
    assignment: str
    seed: int
    recipe: bytes
    version: str

    def to_bytes(self) -> bytes:
        """Bytes, so that a cluster keeps the work with its scheduler and not with one worker."""
        p = self.piece
        head = {
            "format": FORMAT,
            "version": self.version,
            "product": [p.product.name, p.product.rows, p.product.columns, p.product.signed],
            "piece": [p.index, p.start, p.stop, p.units],
            "tolerance": self.tolerance,
            "assignment": self.assignment,
            "seed": self.seed,
            "recipe": self.recipe.decode(),
        }
        return dump_json(head) + b"\n" + np.ascontiguousarray(self.target, "<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Job":
        line, _, rest = data.partition(b"\n")
        head = parse_json("job", line)
        piece = Piece(Product(*head["product"]), *head["piece"])
        target = np.frombuffer(rest, "<f8").reshape(piece.stop - piece.start, piece.product.columns)
        plain = {name: head[name] for name in ("tolerance", "assignment", "seed", "version")}
        return cls(piece=piece, target=target, recipe=head["recipe"].encode(), **plain)


@dataclass(frozen=True)
class Finished:
    """The tensors of a piece as the ticket will store them, and how near their product came."""

    tensors: tuple[CodedTensor, ...]
    errors: dict[str, float]

    def to_bytes(self) -> bytes:
        lines = [tensor.line for tensor in self.tensors]
        head = dump_json({"format": FORMAT, "lines": lines, "errors": self.errors})
        body = head + b"\n" + b"".join(tensor.data for tensor in self.tensors)
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Finished":
        """StrongTicketError unless every byte is as it was written."""
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        if hashlib.sha256(body).digest() != digest:
            raise StrongTicketError("the piece is damaged: its sha256 differs")
        line, _, rest = body.partition(b"\n")
        head = parse_json("piece", line)
        if head.get("format") != FORMAT:
            raise StrongTicketError(f"the piece has format {head.get('format')!r}, expected {FORMAT!r}")
        tensors, start = [], 0
        for entry in head["lines"]:
            tensors.append(CodedTensor(entry, rest[start : start + entry["bytes"]]))
            start += entry["bytes"]
        return cls(tuple(tensors), head["errors"])


def solve_piece(data: bytes) -> bytes:
    """Job -> Finished: draw the piece's random weights, prune them, code the masks. One thread."""
    from strongticket import __version__

    job = Job.from_bytes(data)
    if job.version != __version__:
        raise StrongTicketError(
            f"this worker has strongticket {__version__}, the driver {job.version}: "
            "install the same version on both"
        )
    piece = job.piece
    largest = float(np.abs(job.target).max(initial=0.0))
    # A power of two that covers the block: the one thing besides the masks that its numbers decide.
    laws = {
        piece.inner: Uniform(1.0),
        piece.outer: Uniform(float(2.0 ** np.ceil(np.log2(largest))) if largest else 1.0),
    }
    random = {
        name: draw(job.seed, name, shape, laws[name], threads=1) for name, shape in piece.shapes.items()
    }
    masks, error = prune(job, random[piece.inner], random[piece.outer])
    tensors = []
    for name, mask in zip(piece.shapes, masks, strict=True):
        apply_mask(random[name], mask)
        tensors.append(code_mask(name, mask, laws[name], checksum(job.recipe, name, random[name])))
    errors = {
        "problems": piece.problems,
        "largest": float(np.abs(error).max(initial=0.0)),
        "squared": float(np.square(error).sum()),
        "target_squared": float(np.square(job.target).sum() * (2 if piece.product.signed else 1)),
    }
    return Finished(tuple(tensors), errors).to_bytes()


def prune(job: Job, inner: np.ndarray, outer: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """((mask of inner, mask of outer), error of every entry)."""
    import numba

    left, target = inner, job.target
    if job.piece.product.signed:
        left, target = np.vstack([np.maximum(left, 0), np.maximum(-left, 0)]), np.vstack([target, -target])
    with _one_at_a_time:
        threads = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            built = _build(job, inner, left, outer, target)
        finally:
            numba.set_num_threads(threads)
    kept = built.left_mask
    if job.piece.product.signed:
        kept = kept[: len(job.target)] | kept[len(job.target) :]
    return (kept, built.right_mask), built.error


def _build(job: Job, inner: np.ndarray, left: np.ndarray, right: np.ndarray, target: np.ndarray) -> Any:
    """Units go where they are strong; they are moved, which costs, only if entries that fail are what counts."""
    from strongticket.build import assign
    from strongticket.build.product import build_product
    from strongticket.build.relu import paper_owner

    if job.assignment == "paper":
        given = paper_owner(inner, len(inner)) if job.piece.product.signed else "paper"
        return build_product(target, left, right, assignment=given, tolerance=job.tolerance)
    wanted: np.ndarray = (target != 0).any(axis=1)
    strength = (np.abs(left) * np.float32(2**15 - 1)).astype(np.int16)  # numpy sorts short integers fast
    per_row = left.shape[1] // len(left)
    groups = [
        assign.by_strength(strength[rows, units], np.where(wanted[rows], per_row, 0), MAX_EXACT)
        for rows, units in _groups(len(left), per_row)
    ]
    owner = np.concatenate([np.where(each >= 0, each + GROUP * g, each) for g, each in enumerate(groups)])
    # The mean square error is a third of tolerance² if no entry has failed.
    return build_product(
        target, left, right, assignment=owner, move_above=job.tolerance, tolerance=job.tolerance
    )


def _groups(rows: int, per_row: int) -> list[tuple[slice, slice]]:
    """Rows, some at a time, and their units: a choice among a few rows is nearly as good, and quick."""
    edges = [*range(0, rows, GROUP), rows]
    return [(slice(a, b), slice(a * per_row, b * per_row)) for a, b in pairwise(edges)]
