"""A trained model in, a ticket out: every chosen tensor as pruned random factors, piece by piece."""

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from torch import nn

from strongticket.files import dump_json, plain
from strongticket.pretrained.families import AttentionMap, attention_of
from strongticket.pretrained.options import ModelOptions
from strongticket.pretrained.pieces import Folder, Job, Progress, run
from strongticket.pretrained.quality import Quality
from strongticket.pretrained.rebuild import describe, skeleton, statistics
from strongticket.pretrained.source import Made, Source
from strongticket.pretrained.tensors import (
    check_trained,
    checksum,
    chosen,
    exact_checksum,
    find,
    parameters,
    persistent_buffers,
    to_matrix,
)
from strongticket.ticket import Ticket, recipe_text, write_pieces


def build_ticket(model: nn.Module, options: ModelOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for a loaded model; options as of `build_file`.

    >>> ticket = build_ticket(nn.MultiheadAttention(8, 2), workers=1)
    >>> ticket.network()(*3 * [torch.zeros(5, 8)])[0].shape
    torch.Size([5, 8])
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "built.ticket"
        build_file(model, path, options, **changes)
        return Ticket.load(path)


def build_file(
    model: nn.Module,
    out: Path,
    options: ModelOptions | None = None,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    folder: Path | None = None,
    tokenizer: dict[str, str] | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> None:
    """Write the ticket of a model, any module of torch, to the file `out`.

    options, changes: what is asked for, see ModelOptions: `build_file(model, out, tolerance=1e-3)`
    workers: processes on this machine, None means one per core; cluster: address of a Dask scheduler instead
    folder: where finished pieces are kept for later runs that share them; by default beside `out` until it is
        written. A call that was interrupted goes on from there. The file's bytes depend on none of these.
    tokenizer: file name -> text, stored with the ticket
    """
    asked = ModelOptions.of(options, changes)
    plan = Targets.of(model, asked)
    quality = Quality.of(asked)
    settings = plan.settings(quality)
    recipe = recipe_text(asked.seed, "pretrained", settings)
    source = Source(settings)
    pieces = Folder(Path(f"{out}.pieces") if folder is None else Path(folder))

    def jobs() -> Iterator[Job]:
        for made, target in plan.targets(source):
            near = quality.near(target)
            for piece in made.pieces:
                yield Job(piece, target[piece.place], near, asked.assignment, asked.seed, recipe)

    total = sum(piece.problems for piece in source.pieces)
    run(jobs(), pieces, total=total, workers=workers, cluster=cluster, progress=progress)
    metadata: dict[str, Any] = {
        "assignment": asked.assignment,
        "tolerance": quality.tolerance,
        "numbers": total,
        **_errors(source, pieces),
    }
    if tokenizer:  # a text beside the network, as it is beside a model's weights: its share of the file is told
        compressed = len(zstandard.ZstdCompressor(19).compress(dump_json(tokenizer)))
        metadata |= {"tokenizer": tokenizer, "tokenizer_bytes": compressed}
    write_pieces(Path(out), recipe, metadata, pieces.names, lambda name: pieces.finished(name).tensors)
    if folder is None:
        pieces.remove()


@dataclass(frozen=True)
class Targets:
    """What a build makes of a model.

    names: tensors that are made on their own; products: attention layers that are made as Theorem 3 has it
    base: checksum of the trained model, None if nothing of it is left
    """

    model: nn.Module
    attention: str
    described: dict[str, Any]
    names: tuple[str, ...]
    products: tuple[AttentionMap, ...]
    base: str | None
    rebuilt: dict[str, str]

    @classmethod
    def of(cls, model: nn.Module, options: ModelOptions) -> "Targets":
        """Everything that can be refused is refused here, before any work."""
        described = describe(model)
        fresh = None if described["library"] is None else skeleton(described)
        buffers = statistics(model, fresh)
        ties = parameters(model) | {name: [name] for name in buffers}
        layers = attention_of(model) if options.attention == "products" else []
        whole = {name: ties[name] for name in ties if not any(each.covers(name) for each in layers)}
        whole |= {each.name: [each.name] for each in layers}
        picked = chosen(whole, options.only)
        products = tuple(each for each in layers if each.name in picked)
        names = tuple(name for name in ties if name in picked and find(model, name).numel())
        for name in ties:
            if name in names or any(each.covers(name) for each in products):
                check_trained(name, find(model, name))
        exact = {} if fresh is not None else {
            name: exact_checksum(each)
            for name, each in persistent_buffers(model).items()
            if not each.is_floating_point()
        }  # fmt: skip
        base = None if len(picked) == len(whole) else checksum(model)
        return cls(model, options.attention, described, names, products, base, exact)

    def settings(self, quality: Quality) -> dict[str, Any]:
        """What the ticket says about its network."""
        shapes = {name: list(find(self.model, name).shape) for name in self.names}
        shapes |= {p.name: [p.rows, p.columns] for each in self.products for p in each.products()}
        layouts = {name: quality.layout(tuple(shape)) for name, shape in shapes.items()}
        distinct = list(dict.fromkeys(layouts.values()))
        tensors = {name: [distinct.index(layouts[name]), shape] for name, shape in shapes.items()}
        return plain("settings", self.described | {
            "attention": self.attention,
            "base": self.base,
            "layouts": [asdict(layout) for layout in distinct],
            "tensors": tensors,
            "rebuilt": self.rebuilt,
        })  # fmt: skip

    def targets(self, source: Source) -> Iterator[tuple[Made, np.ndarray]]:
        """(tensor, its matrix) one after the other; the next is computed when it is asked for."""
        for name in self.names:
            yield source.tensors[name], to_matrix(name, find(self.model, name))
        for each in self.products:
            for product, target in each.targets(self.model):
                yield source.tensors[product.name], target


def _errors(source: Source, pieces: Folder) -> dict[str, Any]:
    """Of every tensor the largest error of an entry, and the root mean square error relative to its own.

    relative_error: root mean square of the latter over all numbers, each tensor in units of its own
    """
    errors, total = {}, 0.0
    for name, made in source.tensors.items():
        found = [pieces.finished(piece.name).errors for piece in made.pieces]
        squared, target = (sum(each[key] for each in found) for key in ("squared", "target_squared"))
        relative = squared / target if target else 0.0
        errors[name] = [_rounded(max(each["largest"] for each in found)), _rounded(relative**0.5)]
        total += relative * made.size
    numbers = sum(made.size for made in source.tensors.values())
    return {"errors": errors, "relative_error": _rounded((total / numbers) ** 0.5)}


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
