"""A ticket written from pieces that lie elsewhere, one piece in memory at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from strongticket.files import JsonObject, write_file
from strongticket.ticket.format import CodedTensor, chunks


def write_pieces(
    path: Path,
    recipe: bytes,
    metadata: JsonObject,
    pieces: Iterable[str],
    load: Callable[[str], Sequence[CodedTensor]],
) -> None:
    """Write the same bytes as Ticket.save; `load` returns the tensors of a piece by its name."""
    places = sorted(
        (tensor.name, piece, index, tensor.line)
        for piece in pieces
        for index, tensor in enumerate(load(piece))
    )

    def masks() -> Iterator[bytes]:
        current: str | None = None
        tensors: Sequence[CodedTensor] = ()
        for _, piece, index, _ in places:
            if piece != current:
                current, tensors = piece, load(piece)
            yield tensors[index].data

    write_file(path, chunks(recipe, None, metadata, [line for *_, line in places], masks()))
