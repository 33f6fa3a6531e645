"""A trained model in, a ticket out: every chosen tensor as pruned random factors, piece by piece."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import zstandard
from torch import nn

from strongticket.errors import StrongTicketError
from strongticket.files import check_output, dump_json, exclusive_lock, write_file
from strongticket.models.inputs import Batch, batches
from strongticket.models.tokenizers import FromFiles
from strongticket.pretrained.calibration import Calibration
from strongticket.pretrained.loss import growth, tolerance_for
from strongticket.pretrained.options import ModelOptions
from strongticket.pretrained.pieces import Folder, Job, Progress, Takeover, run
from strongticket.pretrained.quality import Quality, Sample
from strongticket.pretrained.size import choose
from strongticket.pretrained.source import Source
from strongticket.pretrained.targets import Targets
from strongticket.ticket import Ticket, chunks, recipe_text

ATTEMPTS = 4  # to reach the loss asked for; each is nearer than the one before
NEARER = 0.75
TakeoverOf = Callable[[str], Takeover | None]  # by the name of a tensor


def build_ticket(model: nn.Module, options: ModelOptions | None = None, **changes: Any) -> Ticket:
    """A ticket for a loaded model.

    model: any module of torch, with trained weights
    options, changes: as in `build_file`, along with its workers, cluster, tokenizer and progress

    >>> ticket = build_ticket(nn.MultiheadAttention(8, 2), workers=1)
    >>> ticket.network(nn.MultiheadAttention(8, 2))(*3 * [torch.zeros(5, 8)])[0].shape  # any such module is filled
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
    tokenizer: dict[str, str] | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> None:
    """Write the ticket of a `model`, any module of torch, to the file `out`.

    options, changes: what is asked for, see ModelOptions: `build_file(model, out, tolerance=1e-3)`
    workers: processes on this machine, None means one per core; cluster: address of a Dask scheduler instead
        The file's bytes depend on none of these; an interrupted call resumes from the pieces beside `out`.
    tokenizer: file name -> text, stored with the ticket
    progress: called with (numbers made, all numbers to make)
    """
    if not isinstance(model, nn.Module):
        raise StrongTicketError(
            f"model is a {type(model).__name__}: expected a torch module",
            hint="Load a folder or hub name with strongticket.models.load_model first.",
        )
    asked = ModelOptions.of(options, changes)
    targets = Targets.of(model, asked)
    out = Path(out)
    check_output(out)
    run_options: dict[str, Any] = dict(workers=workers, cluster=cluster, progress=progress)
    text = FromFiles(tokenizer).inner if tokenizer and (asked.data or asked.calibrate) else None
    takeover: TakeoverOf = lambda name: None  # noqa: E731
    if asked.calibrate is not None:
        read = batches(model, asked.calibrate, text)
        takeover = Calibration(model, targets.outputs, read).takeover
    with exclusive_lock(out):
        pieces = Folder(Path(f"{out}.pieces"))
        write = partial(_write, targets, asked, pieces, tokenizer, takeover, run_options)
        if asked.loss is None:
            write(out, choose(targets.shapes(), Sample(targets.sample), asked))
        else:
            _reach_loss(out, targets, asked, batches(model, asked.data, text), write)
        pieces.remove()


def _reach_loss(
    out: Path, targets: Targets, asked: ModelOptions, found: list[Batch], write: Callable[..., None]
) -> None:
    """The tolerance is found on the first half of the text, and the ticket checked on the second."""
    assert asked.loss is not None
    search, check = found[: -(-len(found) // 2)], found[len(found) // 2 :]
    tolerance = tolerance_for(asked.loss, targets.model, list(targets.names), search)
    sample = Sample(targets.sample)
    attempt = out.with_name(f".{out.name}.attempt")  # `out` is written only once the loss is reached
    for _ in range(ATTEMPTS):
        quality = choose(targets.shapes(), sample, replace(asked, loss=None, data=None, tolerance=tolerance))
        try:
            write(attempt, quality)
            grown = _growth(attempt, targets, check)
        finally:
            attempt.unlink(missing_ok=True)
        if grown <= asked.loss:
            measured = {"loss_against_base": f"{100 * grown:+.2f} % on {asked.data.name}"}  # type: ignore[union-attr]
            write(out, quality, measured)
            return
        tolerance *= NEARER
    raise StrongTicketError(
        f"loss={asked.loss:g} was not reached: after {ATTEMPTS} attempts it grew by {grown:.2%}",
        hint="Ask for a larger loss, or give a longer text as data.",
    )


def _growth(out: Path, targets: Targets, found: list[Batch]) -> float:
    ticket = Ticket.load(out)
    return growth(targets.model, ticket.network(base=None if targets.base is None else targets.model), found)


def _write(
    targets: Targets,
    asked: ModelOptions,
    pieces: Folder,
    tokenizer: dict[str, str] | None,
    takeover: TakeoverOf,
    run_options: dict[str, Any],
    out: Path,
    quality: Quality,
    measured: dict[str, Any] | None = None,
) -> None:
    """Solve the missing pieces and write the file."""
    settings = targets.settings(quality)
    recipe = recipe_text(asked.seed, "pretrained", settings)
    source = Source(settings)
    pieces.names.clear()

    def jobs() -> Iterator[Job]:
        for tensor, target in targets.targets(source):
            near, shares = quality.near(target), takeover(tensor.name)
            for piece in tensor.pieces:
                yield Job(piece, target[piece.place], near, asked.assignment, asked.seed, recipe, shares)

    total = sum(piece.problems for piece in source.pieces)
    run(jobs(), pieces, total=total, **run_options)
    given = {name: float(value) for name in ("bits", "units") if (value := getattr(asked, name)) is not None}
    metadata: dict[str, Any] = {
        **given,
        "assignment": asked.assignment,
        "tolerance": quality.tolerance,
        **_errors(source, pieces),
        **({"calibrated_on": asked.calibrate.name} if asked.calibrate is not None else {}),
        **(measured or {}),
    }
    if tokenizer:  # stored with the network, as beside a model's weights; its share of the file is reported
        compressed = len(zstandard.ZstdCompressor(19).compress(dump_json(tokenizer)))
        metadata |= {"tokenizer": tokenizer, "tokenizer_bytes": compressed}
    # One piece in memory at a time.
    places = sorted(
        (tensor.name, tensor.line, name, index)
        for name in pieces.names
        for index, tensor in enumerate(pieces.finished(name).tensors)
    )
    masks = (pieces.finished(name).tensors[index].data for _, _, name, index in places)
    write_file(out, chunks(recipe, None, metadata, [line for _, line, _, _ in places], masks))


def _errors(source: Source, pieces: Folder) -> dict[str, Any]:
    """For every tensor the largest error of an entry, and the root mean square error relative to its own.

    relative_error: root mean square of the latter over all numbers, each tensor in units of its own
    unreached: entries that no subset of their units comes near, because all of them together are too small
    """
    errors, total, unreached = {}, 0.0, 0
    for name, tensor in source.tensors.items():
        found = [pieces.finished(piece.name).errors for piece in tensor.pieces]
        squared, target = (sum(piece[key] for piece in found) for key in ("squared", "target_squared"))
        relative = squared / target if target else 0.0
        errors[name] = [_rounded(max(piece["largest"] for piece in found)), _rounded(relative**0.5)]
        total += relative * tensor.size
        unreached += sum(int(piece["unreached"]) for piece in found)
    numbers = sum(tensor.size for tensor in source.tensors.values())
    relative_error = _rounded((total / numbers) ** 0.5)
    return {"errors": errors, "relative_error": relative_error, "unreached": unreached}


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
