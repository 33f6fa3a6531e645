"""A piece of work and its result, both as bytes, so that they travel to any worker and rest in any folder."""

import hashlib
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float64

from strongticket import __version__
from strongticket.errors import StrongTicketError
from strongticket.files import dump_json, parse_json
from strongticket.pretrained.pieces.cut import Piece
from strongticket.pretrained.pieces.takeover import Takeover
from strongticket.ticket import CodedTensor

FORMAT = "strongticket piece 4"
_DIGEST = 32
_PLAIN = ("tolerance", "assignment", "seed", "version")  # fields of a job that JSON has as they are


@dataclass(frozen=True)
class Job:
    """A piece, its target and everything else that its masks depend on.

    target: the block of the matrix at `piece.place`
    tolerance: an entry this close to its target is close enough (absolute)
    recipe: the ticket's first line, which the checksums of its tensors cover
    takeover: which errors later columns make up for, None for none
    """

    piece: Piece
    target: Float64[np.ndarray, "rows columns"]
    tolerance: float
    assignment: str
    seed: int
    recipe: bytes
    takeover: Takeover | None = None
    version: str = __version__

    def identity(self) -> str:
        """A hash of all that the result depends on."""
        return hashlib.sha256(self.to_bytes()).hexdigest()[:40]

    def to_bytes(self) -> bytes:
        """Bytes, so that a cluster keeps the work with its scheduler and not with one worker."""
        plain = {name: getattr(self, name) for name in _PLAIN} | {"recipe": self.recipe.decode()}
        head = {"format": FORMAT, "piece": asdict(self.piece), "takeover": self.takeover is not None, **plain}
        numbers = np.ascontiguousarray(self.target, "<f8").tobytes()
        takeover = b"" if self.takeover is None else self.takeover.to_bytes()
        return dump_json(head) + b"\n" + numbers + takeover

    @classmethod
    def from_bytes(cls, data: bytes) -> "Job":
        line, rest = data.split(b"\n", 1)
        head = parse_json("job", line)
        piece = Piece(**head["piece"])
        size = 8 * piece.problems
        target = np.frombuffer(rest[:size], "<f8").reshape([side.stop - side.start for side in piece.place])
        return cls(
            piece=piece,
            target=target,
            recipe=head["recipe"].encode(),
            takeover=Takeover.from_bytes(rest[size:], piece.columns) if head["takeover"] else None,
            **{name: head[name] for name in _PLAIN},
        )


@dataclass(frozen=True)
class Finished:
    """The tensors of a piece as a ticket will store them, and how near their product came.

    job: identity of the job that it is the result of: a piece under the name of another is noticed
    """

    tensors: tuple[CodedTensor, ...]
    errors: dict[str, float]
    job: str

    def to_bytes(self) -> bytes:
        lines = [tensor.line for tensor in self.tensors]
        head = dump_json({"format": FORMAT, "lines": lines, "errors": self.errors, "job": self.job})
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
        return cls(tuple(tensors), head["errors"], head["job"])
