"""A trained model in, a ticket out: every chosen matrix as pruned random ones, piece by piece."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from torch import nn

from strongticket import seeds
from strongticket.build.options import Assignment
from strongticket.errors import StrongTicketError
from strongticket.files import plain
from strongticket.pretrained import families
from strongticket.pretrained.maps import Map
from strongticket.pretrained.pieces import PROBLEMS, Folder, Job, Layout, Progress, run
from strongticket.pretrained.target import check_finite, checksum, chosen_maps, describe
from strongticket.ticket import Ticket, recipe_text, write_pieces

PER_ROW = 24
TOLERANCE = 2e-4


def build_ticket(model: nn.Module, **options: Any) -> Ticket:
    """A ticket for a loaded model; options as of `build_file`.

    >>> ticket = build_ticket(nn.MultiheadAttention(8, 2), workers=1)
    >>> ticket.network()(*3 * [torch.zeros(5, 8)])[0].shape
    torch.Size([5, 8])
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "built.ticket"
        build_file(model, path, **options)
        return Ticket.load(path)


def build_file(
    model: nn.Module,
    out: Path,
    *,
    parts: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    attention: str = "products",
    per_row: int = PER_ROW,
    tolerance: float = TOLERANCE,
    assignment: Assignment = "balanced",
    seed: int = 0,
    piece_problems: int = PROBLEMS,
    workers: int | None = None,
    cluster: str | None = None,
    folder: Path | None = None,
    tokenizer: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the ticket of a model (one of transformers' or torch's, see `families`) to the file `out`.

    parts: some of attention, feed-forward, embedding, head; layers: their numbers. None is all of them.
    attention: "products" makes W_QK and W_VO of every head as Theorem 3 does; "projections" makes each of the four
    projections as a linear map (Lemma 2), which is far less work for wide models and models with RoPE.
    per_row: hidden units a row of each matrix; tolerance: an entry this near, relative to the root mean square of
    its matrix, is near enough, and what is saved is time.
    workers: processes on this machine (None: one a core); cluster: address of a Dask scheduler instead.
    folder: where finished pieces are kept until `out` is written, by default beside it; a call that was
    interrupted goes on from there. The file's bytes depend on none of these.
    """
    seeds.key(seed, "")
    if assignment not in get_args(Assignment):
        raise StrongTicketError(
            f"assignment={assignment!r} is unknown: expected one of {', '.join(get_args(Assignment))}"
        )
    check_tolerance(tolerance)
    layout = Layout(per_row, piece_problems)
    described = describe(model)
    family = families.family_of(described["class"])
    maps, whole = chosen_maps(family, model, parts, layers, attention)
    check_finite(model)
    settings = plain("settings", described | {
        "parts": sorted({each.part for each in maps}),
        "layers": None if layers is None else sorted(set(layers)),
        "attention": attention,
        "per_row": per_row,
        "problems": piece_problems,
        "base": None if whole else checksum(model),
    })  # fmt: skip
    recipe = recipe_text(seed, "pretrained", settings)
    pieces = Folder(Path(f"{out}.pieces") if folder is None else Path(folder))
    products = [product for each in maps for product in each.products()]

    def jobs() -> Iterator[Job]:
        for product, target in targets(maps, model):
            near = tolerance * float(np.sqrt(np.square(target).mean()))
            for piece in product.pieces(layout):
                yield Job(piece, target[piece.place], near, assignment, seed, recipe)

    total = sum(product.problems for product in products)
    run(jobs(), pieces, total=total, workers=workers, cluster=cluster, progress=progress)
    metadata: dict[str, Any] = {
        "assignment": assignment,
        "tolerance": tolerance,
        "problems": total,
        "errors": {product.name: _errors(product, layout, pieces) for product in products},
    }
    if tokenizer:
        metadata["tokenizer"] = tokenizer
    write_pieces(Path(out), recipe, metadata, pieces.names, lambda name: pieces.finished(name).tensors)
    pieces.remove()


def check_tolerance(tolerance: float) -> None:
    if not isinstance(tolerance, int | float) or not 0 <= tolerance < 1:
        raise StrongTicketError(
            f"tolerance={tolerance!r}: expected a number from 0 to 1, such as {TOLERANCE}"
        )


def targets(maps: list[Map], model: nn.Module) -> Iterator[Any]:
    """(product, its numbers) one after the other; the next is computed when it is asked for."""
    for each in maps:
        yield from each.targets(model)


def _errors(product: Any, layout: Layout, pieces: Folder) -> list[float]:
    """Largest error of an entry, and the root mean square error relative to the matrix's own."""
    found = [pieces.finished(piece.name).errors for piece in product.pieces(layout)]
    squared, target = (sum(each[name] for each in found) for name in ("squared", "target_squared"))
    relative = (squared / target) ** 0.5 if target else 0.0
    return [float(f"{value:.3g}") for value in (max(each["largest"] for each in found), relative)]
